// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package program_test

import (
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// TestWritesIntoATerminatingNamespace is the server's half of case ST-4.
func TestWritesIntoATerminatingNamespace(t *testing.T) {
	s := serve(t)
	c := clientFor(t, s.Config())
	w := define(t, s.Config(), "st4.example.com")
	newNamespace(t, c, "bye")
	first, err := c.CoreV1().Namespaces().Get(t.Context(), "bye", metav1.GetOptions{})
	must(t, err)
	held := configMap("f")
	held.Finalizers = []string{"example.com/hold"}
	held, err = c.CoreV1().ConfigMaps("bye").Create(t.Context(), held, metav1.CreateOptions{})
	must(t, err)
	_, err = w.Namespace("bye").Create(t.Context(), widget("st4.example.com", "w"), metav1.CreateOptions{})
	must(t, err)
	mapsSeen, err := c.CoreV1().ConfigMaps("bye").Watch(t.Context(), metav1.ListOptions{ResourceVersion: held.ResourceVersion})
	must(t, err)
	defer mapsSeen.Stop()
	widgetsSeen, err := w.Namespace("bye").Watch(t.Context(), metav1.ListOptions{})
	must(t, err)
	defer widgetsSeen.Stop()

	must(t, c.CoreV1().Namespaces().Delete(t.Context(), "bye", metav1.DeleteOptions{}))
	eventually(t, 5*time.Second, func() string {
		if apierrors.IsNotFound(second(w.Namespace("bye").Get(t.Context(), "w", metav1.GetOptions{}))) {
			return ""
		}
		return "the widget is still there"
	})
	for name, err := range map[string]error{
		"config map": second(c.CoreV1().ConfigMaps("bye").Create(t.Context(), configMap("n"), metav1.CreateOptions{})),
		"widget":     second(w.Namespace("bye").Create(t.Context(), widget("st4.example.com", "n"), metav1.CreateOptions{})),
		"event": second(c.CoreV1().Events("bye").Create(t.Context(), &core.Event{ObjectMeta: metav1.ObjectMeta{Name: "e"},
			InvolvedObject: core.ObjectReference{Namespace: "bye", Name: "x"}}, metav1.CreateOptions{})),
	} {
		if !apierrors.IsForbidden(err) || !apierrors.HasStatusCause(err, core.NamespaceTerminatingCause) {
			t.Errorf("a new %s: %v; want Forbidden with the cause NamespaceTerminating", name, err)
		}
	}
	_, err = c.CoreV1().ConfigMaps("bye").Patch(t.Context(), "f", types.MergePatchType, []byte(`{"data":{"k":"late"}}`), metav1.PatchOptions{})
	must(t, err)
	if _, err := c.CoreV1().Namespaces().Get(t.Context(), "bye", metav1.GetOptions{}); err != nil {
		t.Errorf("the namespace went before its finalizer: %v", err)
	}
	_, err = c.CoreV1().ConfigMaps("bye").Patch(t.Context(), "f", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	must(t, err)
	eventually(t, 10*time.Second, func() string {
		if apierrors.IsNotFound(second(c.CoreV1().Namespaces().Get(t.Context(), "bye", metav1.GetOptions{}))) {
			return ""
		}
		return "the namespace is still there"
	})
	newNamespace(t, c, "bye")
	again, err := c.CoreV1().Namespaces().Get(t.Context(), "bye", metav1.GetOptions{})
	if err != nil || again.UID == first.UID {
		t.Errorf("the new namespace has the UID of the old one (%v)", err)
	}
	for name, seen := range map[string]watch.Interface{"config maps": mapsSeen, "widgets": widgetsSeen} {
		eventually(t, 5*time.Second, func() string {
			select {
			case e := <-seen.ResultChan():
				if e.Type == watch.Deleted {
					return ""
				}
			default:
			}
			return "the watch of " + name + " saw no deletion"
		})
	}
}
