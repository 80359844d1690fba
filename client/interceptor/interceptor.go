// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/wherry-dev/wherry/client"
)

// Funcs are the functions that take the place of verbs. A nil one leaves its verb to the client. Each gets the client that
// is wrapped, which does not call back into the functions, and may use it or not.
type Funcs struct {
	// Get is called in the place of Get.
	Get func(ctx context.Context, client client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error
	// List is called in the place of List.
	List func(ctx context.Context, client client.WithWatch, list client.ObjectList, opts ...client.ListOption) error
	// Create is called in the place of Create.
	Create func(ctx context.Context, client client.WithWatch, obj client.Object, opts ...client.CreateOption) error
	// Delete is called in the place of Delete.
	Delete func(ctx context.Context, client client.WithWatch, obj client.Object, opts ...client.DeleteOption) error
	// DeleteAllOf is called in the place of DeleteAllOf.
	DeleteAllOf func(ctx context.Context, client client.WithWatch, obj client.Object, opts ...client.DeleteAllOfOption) error
	// Update is called in the place of Update.
	Update func(ctx context.Context, client client.WithWatch, obj client.Object, opts ...client.UpdateOption) error
	// Patch is called in the place of Patch.
	Patch func(ctx context.Context, client client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error
	// Apply is called in the place of Apply.
	Apply func(ctx context.Context, client client.WithWatch, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error
	// Watch is called in the place of Watch.
	Watch func(ctx context.Context, client client.WithWatch, obj client.ObjectList, opts ...client.ListOption) (watch.Interface, error)
	// SubResource is called in the place of SubResource, and of Status with the name "status". The functions below are not
	// called for what it returns.
	SubResource func(client client.WithWatch, subResource string) client.SubResourceClient
	// SubResourceGet is called in the place of SubResource(name).Get.
	SubResourceGet func(ctx context.Context, client client.Client, subResourceName string, obj client.Object, subResource client.Object, opts ...client.SubResourceGetOption) error
	// SubResourceCreate is called in the place of SubResource(name).Create.
	SubResourceCreate func(ctx context.Context, client client.Client, subResourceName string, obj client.Object, subResource client.Object, opts ...client.SubResourceCreateOption) error
	// SubResourceUpdate is called in the place of SubResource(name).Update.
	SubResourceUpdate func(ctx context.Context, client client.Client, subResourceName string, obj client.Object, opts ...client.SubResourceUpdateOption) error
	// SubResourcePatch is called in the place of SubResource(name).Patch.
	SubResourcePatch func(ctx context.Context, client client.Client, subResourceName string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error
	// SubResourceApply is called in the place of SubResource(name).Apply.
	SubResourceApply func(ctx context.Context, client client.Client, subResourceName string, obj runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption) error
}

// NewClient returns a client that calls funcs in the place of the verbs of interceptedClient.
func NewClient(interceptedClient client.WithWatch, funcs Funcs) client.WithWatch {
	return &interceptor{WithWatch: interceptedClient, funcs: funcs}
}

// interceptor is a client some of whose verbs are replaced; whatever it does not override is the client's own.
type interceptor struct {
	client.WithWatch
	funcs Funcs
}

func (c *interceptor) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if c.funcs.Get != nil {
		return c.funcs.Get(ctx, c.WithWatch, key, obj, opts...)
	}
	return c.WithWatch.Get(ctx, key, obj, opts...)
}

func (c *interceptor) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if c.funcs.List != nil {
		return c.funcs.List(ctx, c.WithWatch, list, opts...)
	}
	return c.WithWatch.List(ctx, list, opts...)
}

func (c *interceptor) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	if c.funcs.Create != nil {
		return c.funcs.Create(ctx, c.WithWatch, obj, opts...)
	}
	return c.WithWatch.Create(ctx, obj, opts...)
}

func (c *interceptor) Delete(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error {
	if c.funcs.Delete != nil {
		return c.funcs.Delete(ctx, c.WithWatch, obj, opts...)
	}
	return c.WithWatch.Delete(ctx, obj, opts...)
}

func (c *interceptor) DeleteAllOf(ctx context.Context, obj client.Object, opts ...client.DeleteAllOfOption) error {
	if c.funcs.DeleteAllOf != nil {
		return c.funcs.DeleteAllOf(ctx, c.WithWatch, obj, opts...)
	}
	return c.WithWatch.DeleteAllOf(ctx, obj, opts...)
}

func (c *interceptor) Update(ctx context.Context, obj client.Object, opts ...client.UpdateOption) error {
	if c.funcs.Update != nil {
		return c.funcs.Update(ctx, c.WithWatch, obj, opts...)
	}
	return c.WithWatch.Update(ctx, obj, opts...)
}

func (c *interceptor) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	if c.funcs.Patch != nil {
		return c.funcs.Patch(ctx, c.WithWatch, obj, patch, opts...)
	}
	return c.WithWatch.Patch(ctx, obj, patch, opts...)
}

func (c *interceptor) Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	if c.funcs.Apply != nil {
		return c.funcs.Apply(ctx, c.WithWatch, obj, opts...)
	}
	return c.WithWatch.Apply(ctx, obj, opts...)
}

func (c *interceptor) Watch(ctx context.Context, list client.ObjectList, opts ...client.ListOption) (watch.Interface, error) {
	if c.funcs.Watch != nil {
		return c.funcs.Watch(ctx, c.WithWatch, list, opts...)
	}
	return c.WithWatch.Watch(ctx, list, opts...)
}

func (c *interceptor) Status() client.SubResourceWriter { return c.SubResource("status") }

func (c *interceptor) SubResource(subResource string) client.SubResourceClient {
	if c.funcs.SubResource != nil {
		return c.funcs.SubResource(c.WithWatch, subResource)
	}
	return &subResourceInterceptor{client: c.WithWatch, name: subResource, funcs: &c.funcs}
}

// subResourceInterceptor is a client of a sub-resource some of whose verbs are replaced.
type subResourceInterceptor struct {
	client client.WithWatch
	name   string
	funcs  *Funcs
}

func (s *subResourceInterceptor) Get(ctx context.Context, obj, subResource client.Object, opts ...client.SubResourceGetOption) error {
	if s.funcs.SubResourceGet != nil {
		return s.funcs.SubResourceGet(ctx, s.client, s.name, obj, subResource, opts...)
	}
	return s.client.SubResource(s.name).Get(ctx, obj, subResource, opts...)
}

func (s *subResourceInterceptor) Create(ctx context.Context, obj, subResource client.Object, opts ...client.SubResourceCreateOption) error {
	if s.funcs.SubResourceCreate != nil {
		return s.funcs.SubResourceCreate(ctx, s.client, s.name, obj, subResource, opts...)
	}
	return s.client.SubResource(s.name).Create(ctx, obj, subResource, opts...)
}

func (s *subResourceInterceptor) Update(ctx context.Context, obj client.Object, opts ...client.SubResourceUpdateOption) error {
	if s.funcs.SubResourceUpdate != nil {
		return s.funcs.SubResourceUpdate(ctx, s.client, s.name, obj, opts...)
	}
	return s.client.SubResource(s.name).Update(ctx, obj, opts...)
}

func (s *subResourceInterceptor) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
	if s.funcs.SubResourcePatch != nil {
		return s.funcs.SubResourcePatch(ctx, s.client, s.name, obj, patch, opts...)
	}
	return s.client.SubResource(s.name).Patch(ctx, obj, patch, opts...)
}

func (s *subResourceInterceptor) Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption) error {
	if s.funcs.SubResourceApply != nil {
		return s.funcs.SubResourceApply(ctx, s.client, s.name, obj, opts...)
	}
	return s.client.SubResource(s.name).Apply(ctx, obj, opts...)
}
