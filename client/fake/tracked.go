// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package fake

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/testing"

	"github.com/wherry-dev/wherry/client"
)

// tracked is rows in one of client-go's trackers. The tracker has no place for pending writes, so managed fields of what was
// written are known only as far as they were worked out.
type tracked struct{ testing.ObjectTracker }

func (t tracked) get(k *kind, key types.NamespacedName) (*record, error) {
	obj, err := t.Get(k.gvr, key.Namespace, key.Name)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return asRecord(k, obj)
}

func asRecord(k *kind, obj runtime.Object) (*record, error) {
	o, ok := obj.DeepCopyObject().(client.Object)
	if !ok {
		return nil, fmt.Errorf("the tracker holds a %T, which has no object metadata", obj)
	}
	o.GetObjectKind().SetGroupVersionKind(k.gvk)
	return &record{obj: o}, nil
}

func (t tracked) put(k *kind, key types.NamespacedName, r, old *record) error {
	if old == nil {
		return t.Create(k.gvr, r.obj.DeepCopyObject(), key.Namespace)
	}
	return t.Update(k.gvr, r.obj.DeepCopyObject(), key.Namespace)
}

func (t tracked) remove(k *kind, key types.NamespacedName, _ client.Object) error {
	return t.Delete(k.gvr, key.Namespace, key.Name)
}

func (t tracked) all(k *kind, namespace string) ([]*record, error) {
	list, err := t.List(k.gvr, k.gvk, namespace)
	if err != nil {
		return nil, err
	}
	var found []*record
	err = meta.EachListItem(list, func(obj runtime.Object) error {
		r, err := asRecord(k, obj)
		found = append(found, r)
		return err
	})
	slices.SortFunc(found, func(a, b *record) int {
		return compareKeys(client.ObjectKeyFromObject(a.obj), client.ObjectKeyFromObject(b.obj))
	})
	return found, err
}

// watch is the tracker's own watch, which also tells of what is written to the tracker directly. Its goroutine ends when the
// watch is stopped: that closes the tracker's channel.
func (t tracked) watch(ctx context.Context, k *kind, sub *subscription) (watch.Interface, error) {
	inner, err := t.Watch(k.gvr, sub.s.namespace, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	sub.watcher = newWatcher(ctx, func(*watcher) { inner.Stop() })
	go func() {
		for event := range inner.ResultChan() {
			if r, err := asRecord(k, event.Object); err == nil && sub.s.matches(r.obj) {
				sub.emit(event.Type, r.obj)
			}
		}
	}()
	return sub.watcher, nil
}
