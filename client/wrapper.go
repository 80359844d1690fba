// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/wherry-dev/wherry/client/apiutil"
)

// A layer is what a wrapped client adds to every call: the wrapped clients of this package are rows, not re-implementations.
type layer struct {
	// first is an option that goes before those of the call, so that the call can override it; last goes behind them. Each
	// is used by the verbs whose option interface it implements. Nil adds nothing.
	first, last any
	// namespace, if not empty, is the only namespace that calls may be about.
	namespace string
}

// wrapClient puts the layers that options ask for around a client.
func wrapClient(c WithWatch, options Options) WithWatch {
	if options.FieldOwner != "" {
		c = wrap(c, fieldOwnerLayer(options.FieldOwner))
	}
	if options.FieldValidation != "" {
		c = wrap(c, fieldValidationLayer(FieldValidation(options.FieldValidation)))
	}
	if options.DryRun != nil && *options.DryRun {
		c = wrap(c, dryRunLayer)
	}
	return c
}

// The rows.
var dryRunLayer = layer{last: DryRunAll}

func fieldOwnerLayer(owner string) layer { return layer{first: FieldOwner(owner)} }

func fieldValidationLayer(validation FieldValidation) layer { return layer{first: validation} }

func namespaceLayer(namespace string) layer { return layer{namespace: namespace} }

// NewDryRunClient returns a client that makes every write of c a dry run, whatever the call asks for.
func NewDryRunClient(c Client) Client { return wrap(c, dryRunLayer) }

// WithFieldOwner returns a client that gives owner as the field manager of all writes which name none.
func WithFieldOwner(c Client, owner string) Client { return wrap(c, fieldOwnerLayer(owner)) }

// WithFieldValidation returns a client that gives validation to all writes which name none.
func WithFieldValidation(c Client, validation FieldValidation) Client {
	return wrap(c, fieldValidationLayer(validation))
}

// NewNamespacedClient returns a client for which a namespace that is not given is ns, and any other namespace is an error.
// Kinds without a namespace are not affected.
func NewNamespacedClient(c Client, ns string) Client { return wrap(c, namespaceLayer(ns)) }

// wrapped is a client with one layer around it.
type wrapped struct {
	Client
	layer layer
}

var _ WithWatch = (*wrapped)(nil)

func wrap(c Client, l layer) *wrapped { return &wrapped{Client: c, layer: l} }

// around puts a layer's options around those of a call, in a new slice.
func around[Option any](l *layer, opts []Option) []Option {
	first, hasFirst := l.first.(Option)
	last, hasLast := l.last.(Option)
	if !hasFirst && !hasLast {
		return opts
	}
	all := make([]Option, 0, len(opts)+2)
	if hasFirst {
		all = append(all, first)
	}
	all = append(all, opts...)
	if hasLast {
		all = append(all, last)
	}
	return all
}

// confine gives the namespace that a call about obj's kind is made in: that of the layer if the kind has namespaces, else
// the one that was given.
func (w *wrapped) confine(given string, obj runtime.Object) (string, error) {
	if w.layer.namespace == "" {
		return given, nil
	}
	namespaced, err := w.IsObjectNamespaced(obj)
	if err != nil {
		return given, err
	}
	return w.layer.confine(given, namespaced, fmt.Sprintf("%T", obj))
}

func (l *layer) confine(given string, namespaced bool, what string) (string, error) {
	if !namespaced {
		return given, nil
	}
	if given != "" && given != l.namespace {
		return given, fmt.Errorf("namespace %s of the object %s does not match the namespace %s on the client", given, what, l.namespace)
	}
	return l.namespace, nil
}

// confineObject is confine for an object, which it changes.
func (w *wrapped) confineObject(obj Object) error {
	if w.layer.namespace == "" {
		return nil
	}
	if apiutil.IsNil(obj) {
		return apiutil.ErrNilObject
	}
	namespace, err := w.confine(obj.GetNamespace(), obj)
	if err == nil && namespace != obj.GetNamespace() {
		obj.SetNamespace(namespace)
	}
	return err
}

// confineConfig is confine for an apply configuration, which it changes.
func (w *wrapped) confineConfig(config runtime.ApplyConfiguration) error {
	if w.layer.namespace == "" {
		return nil
	}
	body, err := newApplyBody(config)
	if err != nil {
		return err
	}
	namespaced, err := apiutil.IsGVKNamespaced(body.kind, w.RESTMapper())
	if err != nil {
		return err
	}
	namespace, err := w.layer.confine(body.key.Namespace, namespaced, body.key.Name)
	if err != nil || namespace == body.key.Namespace {
		return err
	}
	return setConfigNamespace(config, namespace)
}

// setConfigNamespace sets the namespace of an apply configuration: through its JSON form, since generated configurations
// share no interface for it.
func setConfigNamespace(config runtime.ApplyConfiguration, namespace string) error {
	if u, ok := config.(*unstructuredApplyConfiguration); ok {
		u.SetNamespace(namespace)
		return nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"namespace": namespace}})
	if err != nil {
		return err
	}
	return json.Unmarshal(patch, config)
}

// Get reads an object.
func (w *wrapped) Get(ctx context.Context, key ObjectKey, obj Object, opts ...GetOption) error {
	namespace, err := w.confine(key.Namespace, obj)
	if err != nil {
		return err
	}
	key.Namespace = namespace
	return w.Client.Get(ctx, key, obj, around(&w.layer, opts)...)
}

// confineList adds the layer's namespace to the options of a list.
func confineList[Option any](w *wrapped, obj runtime.Object, opts []Option, namespace func(InNamespace) Option) ([]Option, error) {
	opts = around(&w.layer, opts)
	confined, err := w.confine("", obj)
	if err != nil || confined == "" {
		return opts, err
	}
	return append(opts[:len(opts):len(opts)], namespace(InNamespace(confined))), nil
}

// List reads a list.
func (w *wrapped) List(ctx context.Context, list ObjectList, opts ...ListOption) error {
	opts, err := confineList(w, list, opts, func(n InNamespace) ListOption { return n })
	if err != nil {
		return err
	}
	return w.Client.List(ctx, list, opts...)
}

// Watch watches a list, if the client that is wrapped can.
func (w *wrapped) Watch(ctx context.Context, list ObjectList, opts ...ListOption) (watch.Interface, error) {
	watcher, ok := w.Client.(WithWatch)
	if !ok {
		return nil, fmt.Errorf("watch %T: the wrapped client, a %T, cannot watch", list, w.Client)
	}
	opts, err := confineList(w, list, opts, func(n InNamespace) ListOption { return n })
	if err != nil {
		return nil, err
	}
	return watcher.Watch(ctx, list, opts...)
}

// Create creates obj.
func (w *wrapped) Create(ctx context.Context, obj Object, opts ...CreateOption) error {
	if err := w.confineObject(obj); err != nil {
		return err
	}
	return w.Client.Create(ctx, obj, around(&w.layer, opts)...)
}

// Update replaces obj.
func (w *wrapped) Update(ctx context.Context, obj Object, opts ...UpdateOption) error {
	if err := w.confineObject(obj); err != nil {
		return err
	}
	return w.Client.Update(ctx, obj, around(&w.layer, opts)...)
}

// Patch patches obj.
func (w *wrapped) Patch(ctx context.Context, obj Object, patch Patch, opts ...PatchOption) error {
	if err := w.confineObject(obj); err != nil {
		return err
	}
	return w.Client.Patch(ctx, obj, patch, around(&w.layer, opts)...)
}

// Apply sends an apply configuration.
func (w *wrapped) Apply(ctx context.Context, config runtime.ApplyConfiguration, opts ...ApplyOption) error {
	if err := w.confineConfig(config); err != nil {
		return err
	}
	return w.Client.Apply(ctx, config, around(&w.layer, opts)...)
}

// Delete deletes obj.
func (w *wrapped) Delete(ctx context.Context, obj Object, opts ...DeleteOption) error {
	if err := w.confineObject(obj); err != nil {
		return err
	}
	return w.Client.Delete(ctx, obj, around(&w.layer, opts)...)
}

// DeleteAllOf deletes all objects of obj's kind that the options select.
func (w *wrapped) DeleteAllOf(ctx context.Context, obj Object, opts ...DeleteAllOfOption) error {
	opts, err := confineList(w, obj, opts, func(n InNamespace) DeleteAllOfOption { return n })
	if err != nil {
		return err
	}
	return w.Client.DeleteAllOf(ctx, obj, opts...)
}

// Status returns a writer of the status sub-resource.
func (w *wrapped) Status() SubResourceWriter { return w.SubResource("status") }

// SubResource returns a client of a sub-resource.
func (w *wrapped) SubResource(subResource string) SubResourceClient {
	return &wrappedSubResource{SubResourceClient: w.Client.SubResource(subResource), wrapped: w}
}

// wrappedSubResource is a client of a sub-resource with one layer around it.
type wrappedSubResource struct {
	SubResourceClient
	wrapped *wrapped
}

// Get reads the sub-resource of obj.
func (s *wrappedSubResource) Get(ctx context.Context, obj, subResource Object, opts ...SubResourceGetOption) error {
	if err := s.wrapped.confineObject(obj); err != nil {
		return err
	}
	return s.SubResourceClient.Get(ctx, obj, subResource, around(&s.wrapped.layer, opts)...)
}

// Create creates the sub-resource of obj.
func (s *wrappedSubResource) Create(ctx context.Context, obj, subResource Object, opts ...SubResourceCreateOption) error {
	if err := s.wrapped.confineObject(obj); err != nil {
		return err
	}
	return s.SubResourceClient.Create(ctx, obj, subResource, around(&s.wrapped.layer, opts)...)
}

// Update replaces the sub-resource of obj.
func (s *wrappedSubResource) Update(ctx context.Context, obj Object, opts ...SubResourceUpdateOption) error {
	if err := s.wrapped.confineObject(obj); err != nil {
		return err
	}
	return s.SubResourceClient.Update(ctx, obj, around(&s.wrapped.layer, opts)...)
}

// Patch patches the sub-resource of obj.
func (s *wrappedSubResource) Patch(ctx context.Context, obj Object, patch Patch, opts ...SubResourcePatchOption) error {
	if err := s.wrapped.confineObject(obj); err != nil {
		return err
	}
	return s.SubResourceClient.Patch(ctx, obj, patch, around(&s.wrapped.layer, opts)...)
}

// Apply sends an apply configuration to the sub-resource.
func (s *wrappedSubResource) Apply(ctx context.Context, config runtime.ApplyConfiguration, opts ...SubResourceApplyOption) error {
	if err := s.wrapped.confineConfig(config); err != nil {
		return err
	}
	return s.SubResourceClient.Apply(ctx, config, around(&s.wrapped.layer, opts)...)
}
