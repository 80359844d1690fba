// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/wherry-dev/wherry/client/apiutil"
)

// Create creates obj.
func (c *client) Create(ctx context.Context, obj Object, opts ...CreateOption) error {
	form, kind, err := c.pick(obj)
	if err != nil {
		return err
	}
	options := new(CreateOptions).ApplyOptions(opts)
	call := form.call("create", VerbCreate, kind, ObjectKeyFromObject(obj))
	call.noRYW = options.DisableReadYourWritesConsistency
	codec := form.answered(call, obj, kind)
	raw := options.AsCreateOptions()
	call.query, call.dryRun = createQuery(raw), len(raw.DryRun) > 0
	return form.write(ctx, call, codec, obj)
}

// Update replaces obj.
func (c *client) Update(ctx context.Context, obj Object, opts ...UpdateOption) error {
	form, kind, err := c.pick(obj)
	if err != nil {
		return err
	}
	options := new(UpdateOptions).ApplyOptions(opts)
	call := form.call("update", VerbUpdate, kind, ObjectKeyFromObject(obj))
	call.uid, call.noRYW = obj.GetUID(), options.DisableReadYourWritesConsistency
	codec := form.answered(call, obj, kind)
	raw := options.AsUpdateOptions()
	call.query, call.dryRun = updateQuery(raw), len(raw.DryRun) > 0
	return form.write(ctx, call, codec, obj)
}

// Patch patches obj.
func (c *client) Patch(ctx context.Context, obj Object, patch Patch, opts ...PatchOption) error {
	form, kind, err := c.pick(obj)
	if err != nil {
		return err
	}
	options := new(PatchOptions).ApplyOptions(opts)
	call := form.call("patch", VerbPatch, kind, ObjectKeyFromObject(obj))
	call.uid, call.noRYW = obj.GetUID(), options.DisableReadYourWritesConsistency
	form.answered(call, obj, kind)
	return form.patch(ctx, call, obj, patch, options.AsPatchOptions())
}

// Apply sends an apply configuration.
func (c *client) Apply(ctx context.Context, config runtime.ApplyConfiguration, opts ...ApplyOption) error {
	options := new(ApplyOptions).ApplyOptions(opts)
	body, err := newApplyBody(config)
	if err != nil {
		return err
	}
	call := c.typedClient.call("apply", VerbApply, body.kind, body.key)
	call.noRYW = options.DisableReadYourWritesConsistency
	return c.typedClient.apply(ctx, call, body, options.AsPatchOptions())
}

// Delete deletes obj.
func (c *client) Delete(ctx context.Context, obj Object, opts ...DeleteOption) error {
	form, kind, err := c.pick(obj)
	if err != nil {
		return err
	}
	options := new(DeleteOptions).ApplyOptions(opts)
	call := form.call("delete", VerbDelete, kind, ObjectKeyFromObject(obj))
	call.uid, call.noRYW = obj.GetUID(), options.DisableReadYourWritesConsistency
	if apiutil.FormOf(obj) == apiutil.Typed { // the object is in the answer, and who keeps it decodes it
		call.accept = codecFor(obj, kind, form.path.plain).accept
	}
	return form.delete(ctx, call, options.AsDeleteOptions())
}

// DeleteAllOf deletes all objects of obj's kind that the options select.
func (c *client) DeleteAllOf(ctx context.Context, obj Object, opts ...DeleteAllOfOption) error {
	form, kind, err := c.pick(obj)
	if err != nil {
		return err
	}
	options := new(DeleteAllOfOptions).ApplyOptions(opts)
	call := form.call("delete all of", VerbDeleteAllOf, kind, ObjectKey{Namespace: options.ListOptions.Namespace})
	call.collection, call.list, call.noRYW = true, &options.ListOptions, options.DeleteOptions.DisableReadYourWritesConsistency
	call.query = listQuery(options.AsListOptions())
	return form.delete(ctx, call, options.AsDeleteOptions())
}

// write sends obj as the body of a call.
func (f *formClient) write(ctx context.Context, call *call, codec *codec, obj runtime.Object) error {
	var err error
	if call.body, err = codec.encode(obj, call.intoKind); err != nil {
		return fmt.Errorf("%s: %w", call, err)
	}
	call.bodyType = codec.contentType
	return f.path.do(ctx, call)
}

// patch sends the patch that leads to obj.
func (f *formClient) patch(ctx context.Context, call *call, obj Object, patch Patch, options *metav1.PatchOptions) error {
	if apiutil.IsNil(patch) {
		return fmt.Errorf("%s: the patch is nil", call)
	}
	call.query, call.dryRun = patchQuery(options), len(options.DryRun) > 0
	var err error
	if call.body, err = patch.Data(obj); err != nil {
		return fmt.Errorf("%s: %w", call, err)
	}
	call.bodyType = string(patch.Type())
	return f.path.do(ctx, call)
}

// apply sends an apply configuration and writes the answer back into it.
func (f *formClient) apply(ctx context.Context, call *call, body *applyBody, options *metav1.PatchOptions) error {
	call.query, call.dryRun = patchQuery(options), len(options.DryRun) > 0
	if options.FieldManager == "" {
		return fmt.Errorf("%s: a server-side apply needs a field manager: give FieldOwner, or make the client with Options.FieldOwner", call)
	}
	call.body, call.bodyType, call.accept = body.data, string(types.ApplyPatchType), jsonType
	call.intoConfig = body.config
	return f.path.do(ctx, call)
}

// deleteOptionsKind is the kind under which every server knows the options of a delete.
var deleteOptionsKind = schema.GroupVersionKind{Version: "v1", Kind: "DeleteOptions"}

func (f *formClient) delete(ctx context.Context, call *call, options *metav1.DeleteOptions) error {
	if options.Preconditions != nil && options.Preconditions.UID != nil {
		call.uid = *options.Preconditions.UID
	}
	call.dryRun = len(options.DryRun) > 0
	var err error
	if call.body, err = encodeJSON(options, deleteOptionsKind); err != nil {
		return fmt.Errorf("%s: %w", call, err)
	}
	call.bodyType = jsonType
	if call.accept == "" {
		call.accept = jsonType
	}
	return f.path.do(ctx, call)
}
