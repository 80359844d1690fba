// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package fake

import (
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// kind is what is known about one kind, settled when it is first met.
type kind struct {
	gvk      schema.GroupVersionKind
	gvr      schema.GroupVersionResource
	traits   traits
	typed    bool  // objects are stored as the scheme's Go type, else as unstructured
	scoped   bool  // the scope is known
	missing  error // what the mapper says of a kind that is neither built in nor known to it
	hasPatch bool  // strategic merge patches work: there is a Go type with patch tags
}

func (k *kind) has(t traits) bool { return k.traits&t == t }

func (k *kind) resource() schema.GroupResource { return k.gvr.GroupResource() }

// namespaced reports whether the kind is known to live in namespaces.
func (k *kind) namespaced() bool { return k.scoped && !k.has(clusterScoped) }

// key gives the key an object is stored under. Cluster-scoped kinds have no namespace, whatever the caller gave: a request
// for them has no place for one.
func (k *kind) key(namespace, name string) types.NamespacedName {
	return types.NamespacedName{Namespace: k.namespace(namespace), Name: name}
}

func (k *kind) namespace(namespace string) string {
	if k.has(clusterScoped) {
		return ""
	}
	return namespace
}

// kinds finds and keeps kinds.
type kinds struct {
	scheme *runtime.Scheme
	mapper meta.RESTMapper
	status map[schema.GroupKind]bool // those given to WithStatusSubresource
	known  sync.Map                  // schema.GroupVersionKind → *kind
}

// of gives what is known about gvk.
func (s *kinds) of(gvk schema.GroupVersionKind) *kind {
	if k, ok := s.known.Load(gvk); ok {
		return k.(*kind)
	}
	k := &kind{gvk: gvk, traits: traitsOf(gvk.GroupKind()), typed: s.scheme.Recognizes(gvk)}
	k.scoped = isBuiltin(gvk.Group)
	k.hasPatch = k.typed
	k.gvr, _ = meta.UnsafeGuessKindToResource(gvk)
	m, err := s.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil && !k.scoped {
		k.missing = err
	}
	if err == nil {
		k.gvr, k.scoped = m.Resource, true
		k.traits &^= clusterScoped
		if m.Scope.Name() == meta.RESTScopeNameRoot {
			k.traits |= clusterScoped
		}
	}
	if s.status[gvk.GroupKind()] {
		k.traits |= hasStatus
	}
	kept, _ := s.known.LoadOrStore(gvk, k)
	return kept.(*kind)
}
