// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package examples_test

import (
	"errors"
	"fmt"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/wherry-dev/wherry/client"
)

// The README's operator does what the README says, at the ports that it names.
func TestHerald(t *testing.T) {
	p := start(t, "herald")
	p.awaitReady("127.0.0.1:8081")
	n := 0
	p.eventually("the webhook gives a title", func() error {
		n++
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprint("somebody-", n)}, Data: map[string]string{"name": "world"}}
		if err := live.Create(t.Context(), cm); err != nil {
			return err
		}
		if cm.Data["title"] != "citizen" {
			return errors.New("it has none")
		}
		return nil
	})
	p.eventually("it is announced", func() error {
		var all eventsv1.EventList
		if err := live.List(t.Context(), &all, client.InNamespace("default")); err != nil {
			return err
		}
		for _, e := range all.Items {
			if e.Reason == "Announced" && e.Regarding.Name == fmt.Sprint("somebody-", n) && e.Note == "make way for citizen world" {
				return nil
			}
		}
		return fmt.Errorf("no such event among %d", len(all.Items))
	})
	lease := &coordinationv1.Lease{}
	if err := live.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "herald"}, lease); err != nil || ptr.Deref(lease.Spec.HolderIdentity, "") == "" {
		t.Errorf("the lease: %v, %+v", err, lease.Spec)
	}
	for token, code := range map[string]int{"": 401, token(t, "herald-reader", true): 200} {
		if got, _, err := get("https://127.0.0.1:8443/metrics", token); err != nil || got != code {
			t.Errorf("metrics: %d, want %d; %v", got, code, err)
		}
	}
	p.interrupt()
}
