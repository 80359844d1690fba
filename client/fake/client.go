// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package fake

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/client/apiutil"
)

// fakeClient is a client on an engine. It turns calls with options into writes and selections, as a live client turns them
// into requests; the rules are the engine's.
type fakeClient struct {
	e       *engine
	indexes *indexes
}

var _ client.WithWatch = &fakeClient{}

// kindOf resolves what obj is, once for each call.
func (c *fakeClient) kindOf(obj runtime.Object) (*kind, error) {
	gvk, err := apiutil.GVKForObject(obj, c.e.scheme)
	if err != nil {
		return nil, err
	}
	return c.e.served(gvk)
}

// served gives what is known about a kind, or why there is no such kind.
func (e *engine) served(gvk schema.GroupVersionKind) (*kind, error) {
	k := e.of(gvk)
	if k.missing != nil && e.behaviour.has(Validation) {
		return nil, k.missing
	}
	return k, nil
}

// begin resolves kind and key of a write to obj.
func (c *fakeClient) begin(ctx context.Context, does string, obj client.Object) (*write, error) {
	k, err := c.kindOf(obj)
	if err != nil {
		return nil, err
	}
	key := k.key(obj.GetNamespace(), obj.GetName())
	if err := alive(ctx); err != nil {
		return nil, fmt.Errorf("%s %s %q: %w", does, k.gvk.Kind, key, err)
	}
	return &write{k: k, key: key}, c.e.needsNamespace(k, key)
}

// end writes the engine's answer into the caller's object.
func (c *fakeClient) end(w *write, stored client.Object, err error, into runtime.Object) error {
	if err != nil {
		return err
	}
	return c.e.fill(w.k, stored, into)
}

func (c *fakeClient) Get(ctx context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	k, err := c.kindOf(obj)
	if err != nil {
		return err
	}
	if err := alive(ctx); err != nil {
		return fmt.Errorf("get %s %q: %w", k.gvk.Kind, key, err)
	}
	key = k.key(key.Namespace, key.Name)
	if err := c.e.needsNamespace(k, key); err != nil {
		return err
	}
	stored, err := c.e.get(k, key)
	if err != nil {
		return err
	}
	return c.e.fill(k, stored, obj)
}

func (c *fakeClient) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	w, err := c.begin(ctx, "create", obj)
	if err != nil {
		return err
	}
	o := new(client.CreateOptions).ApplyOptions(opts).AsCreateOptions()
	stored, err := c.incoming(w, "CreateOptions", obj, o.DryRun, o.FieldManager, o.FieldValidation)
	if err != nil {
		return err
	}
	stored, err = c.e.create(w, stored)
	return c.end(w, stored, err, obj)
}

func (c *fakeClient) Update(ctx context.Context, obj client.Object, opts ...client.UpdateOption) error {
	return c.update(ctx, "", obj, obj, new(client.UpdateOptions).ApplyOptions(opts).AsUpdateOptions())
}

// update replaces obj, or a sub-resource of it, by body.
func (c *fakeClient) update(ctx context.Context, subresource string, obj, body client.Object, o *metav1.UpdateOptions) error {
	w, err := c.begin(ctx, "update", obj)
	if err != nil {
		return err
	}
	w.subresource = subresource
	stored, err := c.incoming(w, "UpdateOptions", body, o.DryRun, o.FieldManager, o.FieldValidation)
	if err != nil {
		return err
	}
	stored, err = c.e.update(w, stored)
	return c.end(w, stored, err, body)
}

// incoming takes over the common options of a write and gives what was sent in stored form.
func (c *fakeClient) incoming(w *write, kind string, obj runtime.Object, dryRun []string, manager, validation string) (client.Object, error) {
	if err := w.options(kind, dryRun, manager); err != nil {
		return nil, err
	}
	data, err := json.Marshal(obj)
	if err != nil {
		return nil, err
	}
	if validation == metav1.FieldValidationStrict {
		if err := c.e.strict(w.k, data); err != nil {
			return nil, badRequestf("%s in version %q cannot be handled as a %s: %v", w.k.gvk.Kind, w.k.gvk.Version, w.k.gvk.Kind, err)
		}
	}
	stored, err := c.e.decode(w.k, data)
	if err != nil {
		return nil, badRequestf("%s in version %q cannot be handled as a %s: %v", w.k.gvk.Kind, w.k.gvk.Version, w.k.gvk.Kind, err)
	}
	return stored, nil
}

// options takes over what all writes have.
func (w *write) options(kind string, dryRun []string, manager string) error {
	if len(dryRun) > 0 && !slices.Equal(dryRun, []string{metav1.DryRunAll}) {
		return invalidOptions(kind, field.NotSupported(field.NewPath("dryRun"), dryRun, []string{metav1.DryRunAll}))
	}
	w.dryRun, w.manager = len(dryRun) > 0, manager
	return nil
}

func (c *fakeClient) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	return c.patch(ctx, "", obj, obj, patch, new(client.PatchOptions).ApplyOptions(opts).AsPatchOptions())
}

// patch patches obj, or a sub-resource of it, by what patch makes of body.
func (c *fakeClient) patch(ctx context.Context, subresource string, obj, body client.Object, patch client.Patch, o *metav1.PatchOptions) error {
	w, err := c.begin(ctx, "patch", obj)
	if err != nil {
		return err
	}
	w.subresource = subresource
	if err := w.options("PatchOptions", o.DryRun, o.FieldManager); err != nil {
		return err
	}
	p, err := c.patching(patch, body, o)
	if err != nil {
		return err
	}
	stored, err := c.e.patch(w, p)
	return c.end(w, stored, err, body)
}

func (c *fakeClient) patching(patch client.Patch, obj client.Object, o *metav1.PatchOptions) (patching, error) {
	data, err := patch.Data(obj)
	if err != nil {
		return patching{}, err
	}
	p := patching{kind: patch.Type(), data: data, force: o.Force != nil && *o.Force}
	if p.kind != types.ApplyPatchType && o.Force != nil {
		return patching{}, invalidOptions("PatchOptions", field.Forbidden(field.NewPath("force"), "may not be specified for non-apply patch"))
	}
	return p, nil
}

func (c *fakeClient) Delete(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error {
	w, err := c.begin(ctx, "delete", obj)
	if err != nil {
		return err
	}
	o := new(client.DeleteOptions).ApplyOptions(opts).AsDeleteOptions()
	if err := w.options("DeleteOptions", o.DryRun, ""); err != nil {
		return err
	}
	return c.e.remove(w, o)
}

func (c *fakeClient) DeleteAllOf(ctx context.Context, obj client.Object, opts ...client.DeleteAllOfOption) error {
	k, err := c.kindOf(obj)
	if err != nil {
		return err
	}
	if err := alive(ctx); err != nil {
		return fmt.Errorf("delete all %s: %w", k.gvk.Kind, err)
	}
	all := new(client.DeleteAllOfOptions).ApplyOptions(opts)
	s, err := c.e.selection(k, c.indexes, &all.ListOptions)
	if err != nil {
		return err
	}
	w := &write{k: k}
	o := all.AsDeleteOptions()
	if err := w.options("DeleteOptions", o.DryRun, ""); err != nil {
		return err
	}
	return c.e.removeAll(w, s, o)
}

func (c *fakeClient) Status() client.SubResourceWriter { return c.SubResource(statusField) }

func (c *fakeClient) SubResource(name string) client.SubResourceClient {
	return &subresourceClient{c: c, name: name}
}

func (c *fakeClient) Scheme() *runtime.Scheme { return c.e.scheme }

func (c *fakeClient) RESTMapper() meta.RESTMapper { return c.e.mapper }

func (c *fakeClient) GroupVersionKindFor(obj runtime.Object) (schema.GroupVersionKind, error) {
	return apiutil.GVKForObject(obj, c.e.scheme)
}

func (c *fakeClient) IsObjectNamespaced(obj runtime.Object) (bool, error) {
	return apiutil.IsObjectNamespaced(obj, c.e.scheme, c.e.mapper)
}
