// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"net/http/httptest"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/wherry-dev/wherry/cache"
	"github.com/wherry-dev/wherry/client"
	hubs "github.com/wherry-dev/wherry/client/conversion"
	"github.com/wherry-dev/wherry/webhook/conversion"
)

// oneInformer is a cache and its only informer.
type oneInformer struct {
	cache.Cache
	cache.Informer
	synced bool
	why    error
	get    error
}

func (o *oneInformer) GetInformer(_ context.Context, _ client.Object, opts ...cache.InformerGetOption) (cache.Informer, error) {
	if len(opts) != 1 {
		return nil, errors.New("asked to block")
	}
	return o, o.get
}
func (o *oneInformer) HasSynced() bool  { return o.synced }
func (o *oneInformer) LastError() error { return o.why }

// checked is a manager as far as a check looks at it.
type checked struct {
	Manager
	cache    cache.Cache
	scheme   *runtime.Scheme
	registry conversion.Registry
}

func (c *checked) GetCache() cache.Cache                     { return c.cache }
func (c *checked) GetScheme() *runtime.Scheme                { return c.scheme }
func (c *checked) GetConverterRegistry() conversion.Registry { return c.registry }

func newChecked(c cache.Cache) *checked {
	return &checked{cache: c, scheme: runtime.NewScheme(), registry: conversion.NewRegistry()}
}

func TestCacheSyncedCheck(t *testing.T) {
	for _, c := range []struct {
		name string
		c    oneInformer
		err  string
	}{
		{"synced", oneInformer{synced: true}, ""},
		{"on its way", oneInformer{}, "cache of *v1.ConfigMap is not filled yet"},
		{"forbidden", oneInformer{why: errors.New("configmaps is forbidden")}, "cache of *v1.ConfigMap is not filled: configmaps is forbidden"},
		{"synced, with trouble since", oneInformer{synced: true, why: errors.New("watch broken")}, ""},
		{"no informer", oneInformer{get: errors.New("no such kind")}, "cache of *v1.ConfigMap: no such kind"},
	} {
		m := newChecked(&c.c)
		if err := corev1.AddToScheme(m.scheme); err != nil {
			t.Fatal(err)
		}
		err := CacheSyncedCheck(m, &corev1.ConfigMap{})(httptest.NewRequest("GET", "/", nil))
		if got := text(err); got != c.err {
			t.Errorf("%s: %q, want %q", c.name, got, c.err)
		}
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// one and two are versions of a kind that convert into each other by their types.
type (
	one struct{ metav1.PartialObjectMetadata }
	two struct{ metav1.PartialObjectMetadata }
)

func (o *one) DeepCopyObject() runtime.Object { return &one{*o.DeepCopy()} }
func (o *two) DeepCopyObject() runtime.Object { return &two{*o.DeepCopy()} }
func (*one) Hub()                             {}
func (*two) ConvertTo(hubs.Hub) error         { return nil }
func (*two) ConvertFrom(hubs.Hub) error       { return nil }

// A kind that this process converts keeps nothing waiting: the API server can list it only once the process is ready.
func TestCacheSyncedCheckLeavesOutWhatIsConvertedHere(t *testing.T) {
	group := schema.GroupVersion{Group: "example.com", Version: "v1"}
	for name, c := range map[string]struct {
		versions map[string]runtime.Object
		register bool
		ready    bool
	}{
		"one version":           {map[string]runtime.Object{"v1": &one{}}, false, true}, // a hub alone counts as convertible
		"hub and spoke":         {map[string]runtime.Object{"v1": &one{}, "v2": &two{}}, false, true},
		"no hub":                {map[string]runtime.Object{"v1": &corev1.Pod{}}, false, false},
		"no hub, but converter": {map[string]runtime.Object{"v1": &corev1.Pod{}}, true, true},
		"no hub among spokes":   {map[string]runtime.Object{"v1": &corev1.Pod{}, "v2": &two{}}, false, false},
	} {
		m := newChecked(&oneInformer{})
		for version, object := range c.versions {
			m.scheme.AddKnownTypeWithName(group.WithKind("Thing").GroupKind().WithVersion(version), object)
		}
		if c.register {
			if err := m.registry.RegisterConverter(group.WithKind("Thing").GroupKind(), conversion.Converter(nopConverter{})); err != nil {
				t.Fatal(err)
			}
		}
		for form, object := range map[string]client.Object{
			"typed":    c.versions["v1"].(client.Object),
			"metadata": &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: group.String(), Kind: "Thing"}},
		} {
			err := CacheSyncedCheck(m, object)(httptest.NewRequest("GET", "/", nil))
			if (err == nil) != c.ready {
				t.Errorf("%s, %s: %v", name, form, err)
			}
		}
	}
}

type nopConverter struct{}

func (nopConverter) ConvertObject(context.Context, runtime.Object, runtime.Object) error { return nil }
