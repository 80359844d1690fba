// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"net/http"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/wherry-dev/wherry/client/apiutil"
)

// formClient sends the calls of one form. All forms take the same path; the codec is what differs.
type formClient struct {
	form apiutil.Form
	path *requestPath
}

type (
	typedClient        struct{ formClient }
	unstructuredClient struct{ formClient }
	metadataClient     struct{ formClient }
)

// call starts a call about one object.
func (f *formClient) call(does string, verb Verb, kind schema.GroupVersionKind, key ObjectKey) *call {
	return &call{
		does: does, verb: verb, method: methods[verb],
		form: f.form, kind: kind, namespace: key.Namespace, name: key.Name,
	}
}

// answered makes a call fill obj with its answer.
func (f *formClient) answered(c *call, obj Object, kind schema.GroupVersionKind) *codec {
	codec := codecFor(obj, kind, f.path.plain)
	c.into, c.intoKind, c.accept = obj, kind, codec.accept
	return codec
}

func (f *formClient) get(ctx context.Context, kind schema.GroupVersionKind, key ObjectKey, obj Object, opts []GetOption) error {
	c := f.call("get", "", kind, key)
	c.method = http.MethodGet
	f.answered(c, obj, kind)
	if len(opts) > 0 {
		c.query = getQuery(new(GetOptions).ApplyOptions(opts).AsGetOptions())
	}
	return f.path.do(ctx, c)
}

func (f *formClient) list(ctx context.Context, item schema.GroupVersionKind, list ObjectList, opts []ListOption) error {
	options := new(ListOptions).ApplyOptions(opts)
	c := f.listCall("list", item, list, options)
	c.into, c.intoKind = list, apiutil.ListKind(item)
	c.query = listQuery(options.AsListOptions())
	return f.path.do(ctx, c)
}

func (f *formClient) listCall(does string, item schema.GroupVersionKind, list ObjectList, options *ListOptions) *call {
	c := f.call(does, "", item, ObjectKey{Namespace: options.Namespace})
	c.method, c.collection, c.accept = http.MethodGet, true, codecFor(list, item, f.path.plain).acceptList
	return c
}
