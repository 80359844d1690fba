// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package fake

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"

	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/client/apiutil"
)

// itemKind resolves what a list lists.
func (c *fakeClient) itemKind(ctx context.Context, does string, list client.ObjectList) (*kind, error) {
	gvk, err := apiutil.GVKForObject(list, c.e.scheme)
	if err != nil {
		return nil, err
	}
	k, err := c.e.served(apiutil.ItemKind(gvk))
	if err != nil {
		return nil, err
	}
	if err := alive(ctx); err != nil {
		return nil, fmt.Errorf("%s %s: %w", does, k.gvk.Kind, err)
	}
	return k, nil
}

func (c *fakeClient) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	k, err := c.itemKind(ctx, "list", list)
	if err != nil {
		return err
	}
	o := new(client.ListOptions).ApplyOptions(opts)
	s, err := c.e.selection(k, c.indexes, o)
	if err != nil {
		return err
	}
	objs, err := c.e.selected(k, s)
	if err != nil {
		return err
	}
	raw := o.AsListOptions()
	page, rest, err := pageOf(objs, raw)
	if err != nil {
		return err
	}
	if err := c.fillList(k, page, list); err != nil {
		return err
	}
	if version := c.e.listVersion(); version != "" {
		list.SetResourceVersion(version)
	}
	if rest > 0 {
		last := page[len(page)-1]
		list.SetContinue(tokenAfter(client.ObjectKeyFromObject(last)))
		if raw.LabelSelector == "" && raw.FieldSelector == "" {
			list.SetRemainingItemCount(ptr.To(int64(rest)))
		}
	}
	return nil
}

// listVersion gives the version of a list made now.
func (e *engine) listVersion() string {
	if !e.behaviour.has(ListVersions) {
		return ""
	}
	e.mu.RLock()
	defer e.mu.RUnlock()
	return strconv.FormatUint(e.versions.current, 10)
}

// continueAt is what a continue token holds: the last object of the page before.
type continueAt struct{ Namespace, Name string }

func tokenAfter(key types.NamespacedName) string {
	data, _ := json.Marshal(continueAt(key)) // two strings
	return base64.RawURLEncoding.EncodeToString(data)
}

// pageOf cuts the page that opts ask for out of objs, and tells how many follow it.
func pageOf(objs []client.Object, opts *metav1.ListOptions) ([]client.Object, int, error) {
	if opts.Continue != "" {
		data, err := base64.RawURLEncoding.DecodeString(opts.Continue)
		var at continueAt
		if err == nil {
			err = json.Unmarshal(data, &at)
		}
		if err != nil {
			return nil, 0, apierrors.NewBadRequest("invalid continue token: continue key is not valid: " + err.Error())
		}
		for len(objs) > 0 && compareKeys(client.ObjectKeyFromObject(objs[0]), types.NamespacedName(at)) <= 0 {
			objs = objs[1:]
		}
	}
	if opts.Limit <= 0 || int64(len(objs)) <= opts.Limit {
		return objs, 0, nil
	}
	return objs[:opts.Limit], len(objs) - int(opts.Limit), nil
}

// fillList writes objs into the caller's list, in the list's form.
func (c *fakeClient) fillList(k *kind, objs []client.Object, list client.ObjectList) error {
	switch apiutil.FormOf(list) {
	case apiutil.Unstructured:
		u, ok := list.(*unstructured.UnstructuredList)
		if !ok {
			return fmt.Errorf("list into a %T: want *unstructured.UnstructuredList", list)
		}
		u.Items = make([]unstructured.Unstructured, len(objs))
		for i, obj := range objs {
			if err := c.e.fill(k, c.e.visible(obj), &u.Items[i]); err != nil {
				return err
			}
		}
		u.Object = map[string]any{"apiVersion": u.GetAPIVersion(), "kind": u.GetKind()}
		return nil
	case apiutil.Metadata:
		m := list.(*metav1.PartialObjectMetadataList)
		m.ListMeta = metav1.ListMeta{}
		m.Items = make([]metav1.PartialObjectMetadata, len(objs))
		for i, obj := range objs {
			m.Items[i] = *partial(k, c.e.visible(obj))
		}
		return nil
	}
	return c.fillTyped(k, objs, list)
}

func (c *fakeClient) fillTyped(k *kind, objs []client.Object, list client.ObjectList) error {
	items, err := meta.GetItemsPtr(list)
	if err != nil {
		return fmt.Errorf("list into a %T: %w", list, err)
	}
	slice := reflect.ValueOf(items).Elem()
	made := reflect.MakeSlice(slice.Type(), len(objs), len(objs))
	for i, obj := range objs {
		item := made.Index(i)
		if item.Kind() == reflect.Pointer {
			item.Set(reflect.New(item.Type().Elem()))
		} else {
			item = item.Addr()
		}
		into, ok := item.Interface().(runtime.Object)
		if !ok {
			return fmt.Errorf("list into a %T: its items are %s, which are no objects", list, made.Type().Elem())
		}
		if err := c.e.fill(k, c.e.visible(obj), into); err != nil {
			return err
		}
	}
	reflect.ValueOf(list).Elem().SetZero()
	slice.Set(made)
	list.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	return nil
}

func (c *fakeClient) Watch(ctx context.Context, list client.ObjectList, opts ...client.ListOption) (watch.Interface, error) {
	k, err := c.itemKind(ctx, "watch", list)
	if err != nil {
		return nil, err
	}
	o := new(client.ListOptions).ApplyOptions(opts)
	s, err := c.e.selection(k, c.indexes, o)
	if err != nil {
		return nil, err
	}
	form := apiutil.FormOf(list)
	return c.e.watch(ctx, k, s, o.AsListOptions(), func(obj client.Object) (runtime.Object, error) {
		into, err := c.e.newInForm(k, form)
		if err != nil {
			return nil, err
		}
		return into, c.e.fill(k, obj, into)
	})
}

// newInForm gives an empty object for a watch event.
func (s *kinds) newInForm(k *kind, form apiutil.Form) (runtime.Object, error) {
	switch form {
	case apiutil.Unstructured:
		return &unstructured.Unstructured{}, nil
	case apiutil.Metadata:
		return &metav1.PartialObjectMetadata{}, nil
	}
	return s.newStored(k)
}
