// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package envtest_test

import (
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/test/envtest"
)

// gone reports an error as long as an object is there.
func gone(t *testing.T, c client.Client, obj client.Object) func() error {
	return func() error {
		err := c.Get(t.Context(), client.ObjectKeyFromObject(obj), obj)
		if err == nil {
			return errors.New("it is still there")
		}
		return client.IgnoreNotFound(err)
	}
}

// TestNamespacesGo deletes a namespace with objects in it, one of them held by a
// finalizer: with controller-runtime's envtest it would stay for ever.
func TestNamespacesGo(t *testing.T) {
	dir := folder(t, map[string]string{"w.yaml": widgetCRD})
	cfg := start(t, &envtest.Environment{CRDDirectoryPaths: []string{dir}})
	c, err := client.New(cfg, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "short"}}
	held := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns.Name, Name: "held", Finalizers: []string{"example.com/mine"}}}
	free := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns.Name, Name: "free"}}
	custom := widget("custom")
	custom.SetNamespace(ns.Name)
	for _, obj := range []client.Object{ns, held, free, custom} {
		if err := c.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Delete(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	eventually(t, "what nobody holds goes", gone(t, c, free))
	eventually(t, "custom resources go", gone(t, c, custom))
	eventually(t, "what a finalizer holds is deleted but there", func() error {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(held), held); err != nil || held.DeletionTimestamp == nil {
			return fmt.Errorf("deleted at %v: %w", held.DeletionTimestamp, err)
		}
		return nil
	})
	held.Finalizers = nil
	if err := c.Update(t.Context(), held); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the namespace goes", gone(t, c, ns))
	ns.ResourceVersion = ""
	if err := c.Create(t.Context(), ns); err != nil {
		t.Errorf("the name cannot be used again: %v", err)
	}
}

// TestGarbageIsCollected deletes owners in each of the three ways.
func TestGarbageIsCollected(t *testing.T) {
	cfg := start(t, &envtest.Environment{})
	c, err := client.New(cfg, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for policy, stays := range map[metav1.DeletionPropagation]bool{
		metav1.DeletePropagationBackground: false, metav1.DeletePropagationForeground: false, metav1.DeletePropagationOrphan: true,
	} {
		t.Run(string(policy), func(t *testing.T) {
			owner := configMap("owner", "")
			if err := c.Create(t.Context(), owner); err != nil {
				t.Fatal(err)
			}
			owned := configMap("owned", "")
			owned.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID, BlockOwnerDeletion: new(true)}}
			if err := c.Create(t.Context(), owned); err != nil {
				t.Fatal(err)
			}
			if err := c.Delete(t.Context(), owner, client.PropagationPolicy(policy)); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the owner goes", gone(t, c, owner))
			if !stays {
				eventually(t, "what it owned goes", gone(t, c, owned))
				return
			}
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(owned), owned); err != nil || len(owned.OwnerReferences) > 0 {
				t.Errorf("the orphan: %v, %v", owned.OwnerReferences, err)
			}
			if err := c.Delete(t.Context(), owned); err != nil && !apierrors.IsNotFound(err) {
				t.Error(err)
			}
		})
	}
}
