// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package fake

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/client/apiutil"
)

const (
	scaleSubresource    = "scale"
	evictionSubresource = "eviction"
	tokenSubresource    = "token"
	bindingSubresource  = "binding"
)

// partSubresources are those through which one part of an object is written, beside status.
var partSubresources = map[schema.GroupKind]map[string]string{
	{Kind: "Pod"}:       {"ephemeralcontainers": specField, "resize": specField},
	{Kind: "Namespace"}: {"finalize": specField},
	{Group: "certificates.k8s.io", Kind: "CertificateSigningRequest"}: {"approval": statusField},
}

const specField = "spec"

// subresourceClient is a client of one sub-resource.
type subresourceClient struct {
	c    *fakeClient
	name string
}

var _ client.SubResourceClient = &subresourceClient{}

func (s *subresourceClient) Get(ctx context.Context, obj, subResource client.Object, _ ...client.SubResourceGetOption) error {
	w, err := s.begin(ctx, "get", obj)
	if err != nil {
		return err
	}
	stored, err := s.c.e.get(w.k, w.key)
	if err != nil {
		return err
	}
	if s.name == scaleSubresource {
		scale, err := scaleOf(stored)
		if err != nil {
			return err
		}
		return fillOther(scale, subResource)
	}
	return s.c.e.fill(w.k, stored, subResource)
}

func (s *subresourceClient) Create(ctx context.Context, obj, subResource client.Object, opts ...client.SubResourceCreateOption) error {
	do, ok := creators[s.name]
	if !ok {
		return fmt.Errorf("the fake client does not support create for the sub-resource %q", s.name)
	}
	if apiutil.IsNil(subResource) {
		return fmt.Errorf("create %s: the body: %w", s.name, apiutil.ErrNilObject)
	}
	w, err := s.c.begin(ctx, "create "+s.name+" of", obj)
	if err != nil {
		return err
	}
	o := new(client.SubResourceCreateOptions).ApplyOptions(opts).AsCreateOptions()
	if err := w.options("CreateOptions", o.DryRun, o.FieldManager); err != nil {
		return err
	}
	w.subresource = s.name
	if do.kind != w.k.gvk.Kind {
		return w.k.noSubresource(w.key.Name, s.name)
	}
	return do.create(s.c.e, w, subResource)
}

func (s *subresourceClient) Update(ctx context.Context, obj client.Object, opts ...client.SubResourceUpdateOption) error {
	w, err := s.begin(ctx, "update", obj)
	if err != nil {
		return err
	}
	o := new(client.SubResourceUpdateOptions).ApplyOptions(opts)
	body := bodyOr(o.SubResourceBody, obj)
	raw := o.AsUpdateOptions()
	if s.name != scaleSubresource {
		return s.c.update(ctx, s.name, obj, body, raw)
	}
	if err := w.options("UpdateOptions", raw.DryRun, raw.FieldManager); err != nil {
		return err
	}
	scale, err := toScale(body)
	if err != nil {
		return err
	}
	answer, err := s.c.e.scale(w, scale)
	if err != nil {
		return err
	}
	return fillOther(answer, body)
}

func (s *subresourceClient) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
	w, err := s.begin(ctx, "patch", obj)
	if err != nil {
		return err
	}
	o := new(client.SubResourcePatchOptions).ApplyOptions(opts)
	body := bodyOr(o.SubResourceBody, obj)
	raw := o.AsPatchOptions()
	if s.name != scaleSubresource {
		return s.c.patch(ctx, s.name, obj, body, patch, raw)
	}
	if err := w.options("PatchOptions", raw.DryRun, raw.FieldManager); err != nil {
		return err
	}
	p, err := s.c.patching(patch, body, raw)
	if err != nil {
		return err
	}
	answer, err := s.c.e.patchScale(w, p)
	if err != nil {
		return err
	}
	if body == obj {
		stored, err := s.c.e.get(w.k, w.key)
		return s.c.end(w, stored, err, obj)
	}
	return fillOther(answer, body)
}

func (s *subresourceClient) Apply(ctx context.Context, config runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption) error {
	o := new(client.SubResourceApplyOptions).ApplyOpts(opts)
	body := config
	if !apiutil.IsNil(o.SubResourceBody) {
		body = o.SubResourceBody
	}
	obj, err := named(config)
	if err != nil {
		return err
	}
	w, err := s.begin(ctx, "apply", obj)
	if err != nil {
		return err
	}
	raw := o.AsPatchOptions()
	if s.name != scaleSubresource {
		return s.c.apply(ctx, s.name, config, body, raw)
	}
	if err := w.options("PatchOptions", raw.DryRun, raw.FieldManager); err != nil {
		return err
	}
	return s.c.e.applyScale(w, body, raw)
}

// begin resolves what a call is about and refuses sub-resources that the kind does not have.
func (s *subresourceClient) begin(ctx context.Context, does string, obj client.Object) (*write, error) {
	w, err := s.c.begin(ctx, does+" "+s.name+" of", obj)
	if err != nil {
		return nil, err
	}
	w.subresource = s.name
	_, part := partSubresources[w.k.gvk.GroupKind()][s.name]
	switch {
	case part,
		s.name == statusField && w.k.has(hasStatus),
		s.name == scaleSubresource && hasScale(w.k):
		return w, nil
	}
	return nil, w.k.noSubresource(w.key.Name, s.name)
}

func bodyOr(body, obj client.Object) client.Object {
	if apiutil.IsNil(body) {
		return obj
	}
	return body
}

// creator is a sub-resource that is created: an order to the server rather than a part of the object.
type creator struct {
	kind   string
	create func(e *engine, w *write, body client.Object) error
}

var creators = map[string]creator{
	evictionSubresource: {"Pod", evict},
	tokenSubresource:    {"ServiceAccount", issueToken},
	bindingSubresource:  {"Pod", bind},
}

// copyPart gives to the spec of from.
func copyPart(to, from client.Object, part string) {
	if part == statusField {
		copyStatus(to, from)
		return
	}
	switch t := to.(type) {
	case *corev1.Pod:
		t.Spec = from.(*corev1.Pod).Spec
	case *corev1.Namespace:
		t.Spec = from.(*corev1.Namespace).Spec
	case *unstructured.Unstructured:
		t.Object[specField] = from.(*unstructured.Unstructured).Object[specField]
	}
}
