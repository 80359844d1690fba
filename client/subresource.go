// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/wherry-dev/wherry/client/apiutil"
)

// subResourceClient is a client of one sub-resource, of any kind and in any form.
type subResourceClient struct {
	client *client
	name   string
}

// call starts a call about the sub-resource of parent, whose answer goes into body.
func (s *subResourceClient) call(does string, verb Verb, parent, body Object) (*formClient, *call, *codec, error) {
	does = fmt.Sprintf("%s %s of", does, s.name)
	form, kind, err := s.client.pick(parent)
	if err != nil {
		return nil, nil, nil, err
	}
	bodyKind, err := kind, error(nil)
	if body != parent {
		if bodyKind, err = s.client.GroupVersionKindFor(body); err != nil {
			return nil, nil, nil, fmt.Errorf("%s %s %q: the body: %w", does, kind.Kind, ObjectKeyFromObject(parent), err)
		}
	}
	c := form.call(does, verb, kind, ObjectKeyFromObject(parent))
	c.subResource, c.uid = s.name, parent.GetUID()
	if s.name == "" {
		return nil, nil, nil, fmt.Errorf("%s: the name of the sub-resource is empty", c)
	}
	return form, c, form.answered(c, body, bodyKind), nil
}

// Get reads the sub-resource of obj into subResource.
func (s *subResourceClient) Get(ctx context.Context, obj, subResource Object, opts ...SubResourceGetOption) error {
	form, c, _, err := s.call("get", "", obj, subResource)
	if err != nil {
		return err
	}
	c.method = http.MethodGet
	c.query = getQuery(new(SubResourceGetOptions).ApplyOptions(opts).AsGetOptions())
	return form.path.do(ctx, c)
}

// Create creates the sub-resource of obj. A subResource without a name gets that of obj.
func (s *subResourceClient) Create(ctx context.Context, obj, subResource Object, opts ...SubResourceCreateOption) error {
	form, c, codec, err := s.call("create", VerbCreate, obj, subResource)
	if err != nil {
		return err
	}
	if subResource.GetName() == "" {
		subResource.SetName(obj.GetName()) // the server wants the body to name what the path names
	}
	options := new(SubResourceCreateOptions).ApplyOptions(opts)
	c.noRYW = options.DisableReadYourWritesConsistency
	raw := options.AsCreateOptions()
	c.query, c.dryRun = createQuery(raw), len(raw.DryRun) > 0
	return form.write(ctx, c, codec, subResource)
}

// Update replaces the sub-resource of obj.
func (s *subResourceClient) Update(ctx context.Context, obj Object, opts ...SubResourceUpdateOption) error {
	options := new(SubResourceUpdateOptions).ApplyOptions(opts)
	body := bodyOr(options.SubResourceBody, obj)
	form, c, codec, err := s.call("update", VerbUpdate, obj, body)
	if err != nil {
		return err
	}
	c.noRYW = options.DisableReadYourWritesConsistency
	raw := options.AsUpdateOptions()
	c.query, c.dryRun = updateQuery(raw), len(raw.DryRun) > 0
	return form.write(ctx, c, codec, body)
}

// Patch patches the sub-resource of obj.
func (s *subResourceClient) Patch(ctx context.Context, obj Object, patch Patch, opts ...SubResourcePatchOption) error {
	options := new(SubResourcePatchOptions).ApplyOptions(opts)
	body := bodyOr(options.SubResourceBody, obj)
	form, c, _, err := s.call("patch", VerbPatch, obj, body)
	if err != nil {
		return err
	}
	c.noRYW = options.DisableReadYourWritesConsistency
	return form.patch(ctx, c, body, patch, options.AsPatchOptions())
}

// Apply sends an apply configuration to the sub-resource.
func (s *subResourceClient) Apply(ctx context.Context, config runtime.ApplyConfiguration, opts ...SubResourceApplyOption) error {
	options := new(SubResourceApplyOptions).ApplyOpts(opts)
	does := fmt.Sprintf("apply %s of", s.name)
	parent, err := newApplyBody(config)
	if err != nil {
		return fmt.Errorf("%s: %w", does, err)
	}
	body := parent
	if !apiutil.IsNil(options.SubResourceBody) {
		if body, err = newApplyBody(options.SubResourceBody); err != nil {
			return fmt.Errorf("%s %s %q: the body: %w", does, parent.kind.Kind, parent.key, err)
		}
	}
	form := &s.client.typedClient.formClient
	c := form.call(does, VerbApply, parent.kind, parent.key)
	c.subResource, c.noRYW = s.name, options.DisableReadYourWritesConsistency
	if s.name == "" {
		return fmt.Errorf("%s: the name of the sub-resource is empty", c)
	}
	return form.apply(ctx, c, body, options.AsPatchOptions())
}

func bodyOr(body, obj Object) Object {
	if apiutil.IsNil(body) {
		return obj
	}
	return body
}
