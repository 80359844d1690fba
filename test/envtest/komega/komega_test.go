// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package komega_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/client/fake"
	"github.com/wherry-dev/wherry/client/interceptor"
	"github.com/wherry-dev/wherry/test/envtest/komega"
)

func deployment(name string) *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: appsv1.DeploymentSpec{Replicas: new(int32(1))}}
}

// api is either a Komega or the functions of the package.
type api struct {
	get          func(client.Object) func() error
	list         func(client.ObjectList, ...client.ListOption) func() error
	update       func(client.Object, func(), ...client.UpdateOption) func() error
	updateStatus func(client.Object, func(), ...client.SubResourceUpdateOption) func() error
	object       func(client.Object) func() (client.Object, error)
	objectList   func(client.ObjectList, ...client.ListOption) func() (client.ObjectList, error)
}

// TestKomega runs one test through a Komega and through the package's functions.
func TestKomega(t *testing.T) {
	for name, make := range map[string]func(client.Client) api{
		"value": func(c client.Client) api {
			k := komega.New(c)
			return api{k.Get, k.List, k.Update, k.UpdateStatus, k.Object, k.ObjectList}
		},
		"package": func(c client.Client) api {
			komega.SetClient(c)
			return api{komega.Get, komega.List, komega.Update, komega.UpdateStatus, komega.Object, komega.ObjectList}
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithStatusSubresource(&appsv1.Deployment{}).WithObjects(deployment("a"), deployment("b")).Build()
			k := make(c)
			if err := k.get(deployment("none"))(); !apierrors.IsNotFound(err) {
				t.Errorf("Get of what is not there: %v", err)
			}
			d := deployment("a")
			if err := k.update(d, func() { d.Spec.Replicas = new(int32(3)) })(); err != nil {
				t.Fatal(err)
			}
			if err := k.updateStatus(d, func() { d.Status.ReadyReplicas = 2 })(); err != nil {
				t.Fatal(err)
			}
			if err := k.update(deployment("none"), func() { t.Error("changed what is not there") })(); !apierrors.IsNotFound(err) {
				t.Errorf("Update of what is not there: %v", err)
			}
			got, err := k.object(deployment("a"))()
			if d := got.(*appsv1.Deployment); err != nil || *d.Spec.Replicas != 3 || d.Status.ReadyReplicas != 2 {
				t.Errorf("Object: %v, %v", got, err)
			}
			list, err := k.objectList(&appsv1.DeploymentList{}, client.InNamespace("default"))()
			if n := len(list.(*appsv1.DeploymentList).Items); err != nil || n != 2 {
				t.Errorf("ObjectList: %d items, %v", n, err)
			}
			var none appsv1.DeploymentList
			if err := k.list(&none, client.InNamespace("other"))(); err != nil || len(none.Items) != 0 {
				t.Errorf("List: %d items, %v", len(none.Items), err)
			}
		})
	}
}

// TestUpdateReadsAfresh has somebody write between two calls of one function.
func TestUpdateReadsAfresh(t *testing.T) {
	c := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(deployment("a")).Build()
	d := deployment("a")
	label := komega.New(c).Update(d, func() {
		if d.Labels == nil {
			d.Labels = map[string]string{}
		}
		d.Labels["seen"] += "x"
	})
	for range 2 {
		other := deployment("a")
		if err := komega.New(c).Update(other, func() { other.Spec.Paused = !other.Spec.Paused })(); err != nil {
			t.Fatal(err)
		}
		if err := label(); err != nil {
			t.Fatal(err)
		}
	}
	if d.Labels["seen"] != "xx" {
		t.Errorf("label %q after two calls", d.Labels["seen"])
	}
}

func TestContext(t *testing.T) {
	type key struct{}
	var seen any
	c := interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme.Scheme).Build(), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, k client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			seen = ctx.Value(key{})
			return errors.New("no")
		},
	})
	k := komega.New(c)
	_ = k.WithContext(context.WithValue(t.Context(), key{}, "mine")).Get(deployment("a"))() // it fails as told
	if seen != "mine" {
		t.Errorf("WithContext: the client saw %v", seen)
	}
	_ = k.Get(deployment("a"))()
	if seen != nil {
		t.Errorf("WithContext changed its receiver: the client saw %v", seen)
	}
	komega.SetClient(c)
	komega.SetContext(context.WithValue(t.Context(), key{}, "all"))
	defer komega.SetContext(context.Background())
	_ = komega.Get(deployment("a"))()
	if seen != "all" {
		t.Errorf("SetContext: the client saw %v", seen)
	}
}

func TestNoClient(t *testing.T) {
	komega.SetClient(nil)
	defer func() {
		if said, _ := recover().(string); !strings.Contains(said, "SetClient") {
			t.Errorf("panic %q does not name SetClient", said)
		}
	}()
	komega.Get(deployment("a"))
}
