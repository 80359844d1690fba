// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package fake

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	"context"

	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/client/interceptor"
)

// FK-1, with Identity on.
func TestIdentity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		c := NewClientBuilder().WithServerBehaviour(Identity).WithObjects(cm("a", "pre")).Build()
		o := cm("a", "c")
		o.UID = "mine"
		must(t, c.Create(ctx, o))
		u1 := o.UID
		if u1 == "mine" || u1 == "" || o.CreationTimestamp.IsZero() || o.CreationTimestamp.Nanosecond() != 0 {
			t.Errorf("got %s", text(o))
		}
		must(t, c.Delete(ctx, o))
		o = cm("a", "c")
		must(t, c.Create(ctx, o))
		if o.UID == u1 {
			t.Error("a recreated object has the UID of the one before")
		}
		if err := c.Delete(ctx, o, client.Preconditions{UID: &u1}); !apierrors.IsConflict(err) {
			t.Errorf("delete of another UID: %v", err)
		}
		wrong := o.DeepCopy()
		wrong.UID = u1
		if err := c.Update(ctx, wrong); !apierrors.IsConflict(err) {
			t.Errorf("update of another UID: %v", err)
		}
		if err := c.Delete(ctx, o, client.Preconditions{UID: &o.UID, ResourceVersion: ptr.To("77")}); !apierrors.IsConflict(err) {
			t.Errorf("delete of another version: %v", err)
		}
		must(t, c.Delete(ctx, o, client.Preconditions{UID: &o.UID}))
		if pre := get[corev1.ConfigMap](t, c, client.ObjectKey{Namespace: "a", Name: "pre"}); pre.UID == "" {
			t.Error("a preloaded object has no UID")
		}

		f := cm("a", "f")
		f.Finalizers = []string{"example.com/f"}
		must(t, c.Create(ctx, f))
		must(t, c.Delete(ctx, f))
		first := get[corev1.ConfigMap](t, c, client.ObjectKeyFromObject(f))
		time.Sleep(time.Second)
		must(t, c.Delete(ctx, f))
		if second := get[corev1.ConfigMap](t, c, client.ObjectKeyFromObject(f)); text(first) != text(second) {
			t.Errorf("a second delete changed\n%s to\n%s", text(first), text(second))
		}
	})
}

// FK-5.
func TestUpdateWithoutVersion(t *testing.T) {
	m := metav1.ObjectMeta{Namespace: "a", Name: "x"}
	for _, test := range []struct {
		obj client.Object
		is  func(error) bool
	}{
		{&corev1.ConfigMap{ObjectMeta: m}, nil},
		{&networkingv1.Ingress{ObjectMeta: m}, nil},
		{&coordinationv1.Lease{ObjectMeta: m}, apierrors.IsInvalid},
		{&policyv1.PodDisruptionBudget{ObjectMeta: m}, apierrors.IsInvalid},
		{widget("a", "x"), apierrors.IsInvalid},
	} {
		t.Run(fmt.Sprintf("%T", test.obj), func(t *testing.T) {
			c := NewFakeClient(test.obj)
			err := c.Update(t.Context(), test.obj)
			if test.is == nil && err != nil || test.is != nil && (!test.is(err) || !strings.Contains(err.Error(), "metadata.resourceVersion")) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// FK-6, with GracefulPods on.
func TestGracefulPods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		pod := func(name, node string, phase corev1.PodPhase) *corev1.Pod {
			return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name}, Spec: corev1.PodSpec{NodeName: node}, Status: corev1.PodStatus{Phase: phase}}
		}
		c := NewClientBuilder().WithServerBehaviour(GracefulPods).
			WithObjects(pod("p1", "n1", ""), pod("p2", "", ""), pod("p3", "n1", corev1.PodSucceeded)).Build()
		w, err := c.Watch(ctx, &corev1.PodList{})
		must(t, err)
		for _, name := range []string{"p1", "p2", "p3"} {
			must(t, c.Delete(ctx, pod(name, "", "")))
		}
		p1 := get[corev1.Pod](t, c, client.ObjectKey{Namespace: "a", Name: "p1"})
		if *p1.DeletionGracePeriodSeconds != 30 || p1.DeletionTimestamp.Unix() != time.Now().Unix()+30 {
			t.Errorf("got %s", text(p1.ObjectMeta))
		}
		time.Sleep(5 * time.Second)
		must(t, c.Delete(ctx, p1))
		if again := get[corev1.Pod](t, c, client.ObjectKeyFromObject(p1)); !again.DeletionTimestamp.Equal(p1.DeletionTimestamp) {
			t.Error("a second delete moved the time")
		}
		must(t, c.Delete(ctx, p1, client.GracePeriodSeconds(10)))
		if less := get[corev1.Pod](t, c, client.ObjectKeyFromObject(p1)); less.DeletionTimestamp.Unix() != p1.DeletionTimestamp.Unix()-20 {
			t.Errorf("with less time it is %s", less.DeletionTimestamp)
		}
		must(t, c.Delete(ctx, p1, client.GracePeriodSeconds(0)))
		if got := seen(t, w, 6); got != "MODIFIED p1, DELETED p2, DELETED p3, MODIFIED p1, MODIFIED p1, DELETED p1" {
			t.Errorf("events: %s", got)
		}
	})
}

func TestDryRun(t *testing.T) {
	ctx := t.Context()
	c := NewFakeClient(cm("a", "old"))
	w, err := c.Watch(ctx, &corev1.ConfigMapList{})
	must(t, err)
	before := get[corev1.ConfigMap](t, c, client.ObjectKey{Namespace: "a", Name: "old"})
	made, changed := cm("a", "new"), before.DeepCopy()
	changed.Data["a"] = "changed"
	must(t, c.Create(ctx, made, client.DryRunAll))
	must(t, c.Update(ctx, changed, client.DryRunAll))
	must(t, c.Patch(ctx, changed, client.RawPatch(types.MergePatchType, []byte(`{"data":{"z":"z"}}`)), client.DryRunAll))
	must(t, c.Delete(ctx, changed, client.DryRunAll))
	must(t, c.DeleteAllOf(ctx, cm("", ""), client.InNamespace("a"), client.DryRunAll))
	if text(changed.Data) != `{"a":"b","z":"z"}` {
		t.Errorf("the answer of the patch is %s", text(changed))
	}
	if err := c.Create(ctx, cm("a", "old"), client.DryRunAll); !apierrors.IsAlreadyExists(err) {
		t.Errorf("got %v", err)
	}
	list := &corev1.ConfigMapList{}
	must(t, c.List(ctx, list))
	if len(list.Items) != 1 || text(list.Items[0]) != text(before) {
		t.Errorf("left are %s", text(list.Items))
	}
	seen(t, w, 0)
}

func TestNoOpWritesAndGenerations(t *testing.T) {
	ctx := t.Context()
	c := NewClientBuilder().WithServerBehaviour(NoOpWrites, Generations).WithStatusSubresource(widget("", "")).Build()
	o := widget("a", "w")
	must(t, c.Create(ctx, o))
	must(t, c.Update(ctx, o))
	if o.GetResourceVersion() != "1" || o.GetGeneration() != 1 {
		t.Errorf("got %s", text(o))
	}
	must(t, unstructured.SetNestedField(o.Object, int64(2), "spec", "size"))
	must(t, c.Update(ctx, o))
	if o.GetResourceVersion() != "2" || o.GetGeneration() != 2 {
		t.Errorf("got %s", text(o))
	}
	must(t, unstructured.SetNestedField(o.Object, "Ready", "status", "phase"))
	must(t, c.Status().Update(ctx, o))
	o.SetLabels(map[string]string{"a": "b"})
	must(t, c.Update(ctx, o))
	if o.GetResourceVersion() != "4" || o.GetGeneration() != 2 {
		t.Errorf("got %s", text(o))
	}
}

func TestNamespacesAndValidation(t *testing.T) {
	ctx := t.Context()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "bye", Finalizers: []string{"example.com/f"}, DeletionTimestamp: ptr.To(metav1.Now())}}
	c := NewClientBuilder().WithServerBehaviour(Namespaces, Validation).
		WithObjects(ns, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "a"}}).Build()
	label := cm("a", "l")
	label.Labels = map[string]string{"bad label!": "x"}
	for name, test := range map[string]struct {
		obj  client.Object
		is   func(error) bool
		says string
	}{
		"no namespace":          {cm("", "x"), func(err error) bool { return apierrors.ReasonForError(err) == metav1.StatusReasonUnknown }, "namespace"},
		"absent namespace":      {cm("zz", "x"), apierrors.IsNotFound, `namespaces "zz" not found`},
		"terminating namespace": {cm("bye", "x"), func(err error) bool { return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) }, "being terminated"},
		"bad name":              {cm("a", "Bad_Name"), apierrors.IsInvalid, "metadata.name"},
		"bad label":             {label, apierrors.IsInvalid, "metadata.labels"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := c.Create(ctx, test.obj); !test.is(err) || !strings.Contains(err.Error(), test.says) {
				t.Errorf("got %v", err)
			}
		})
	}
	must(t, c.Create(ctx, cm("a", "fine")))
}

func TestOrders(t *testing.T) {
	ctx := t.Context()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "p"}}
	sa := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "sa"}}
	c := NewFakeClient(pod, sa)
	request := &authenticationv1.TokenRequest{}
	must(t, c.SubResource("token").Create(ctx, sa, request))
	if request.Status.Token != fakeToken {
		t.Errorf("got %s", text(request))
	}
	must(t, c.SubResource("binding").Create(ctx, pod, &corev1.Binding{Target: corev1.ObjectReference{Name: "n"}}))
	if got := get[corev1.Pod](t, c, client.ObjectKeyFromObject(pod)); got.Spec.NodeName != "n" {
		t.Errorf("got %s", text(got))
	}
	if err := c.SubResource("binding").Create(ctx, pod, &corev1.Binding{Target: corev1.ObjectReference{Name: "m"}}); !apierrors.IsConflict(err) {
		t.Errorf("got %v", err)
	}
	must(t, c.SubResource("eviction").Create(ctx, pod, &policyv1.Eviction{}))
	if err := c.SubResource("eviction").Create(ctx, pod, &policyv1.Eviction{}); !apierrors.IsNotFound(err) {
		t.Errorf("got %v", err)
	}
	if err := c.SubResource("eviction").Create(ctx, sa, &policyv1.Eviction{}); !apierrors.IsNotFound(err) {
		t.Errorf("got %v", err)
	}
}

func TestInterceptorAndIndexBehindIt(t *testing.T) {
	ctx := t.Context()
	calls := 0
	c := NewClientBuilder().WithObjects(cm("a", "c")).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			calls++
			return c.Get(ctx, key, obj, opts...)
		},
	}).Build()
	get[corev1.ConfigMap](t, c, client.ObjectKey{Namespace: "a", Name: "c"})
	if calls != 1 {
		t.Errorf("called %d times", calls)
	}
	must(t, AddIndex(c, &corev1.ConfigMap{}, "x", func(client.Object) []string { return []string{"1"} }))
	list := &corev1.ConfigMapList{}
	must(t, c.List(ctx, list, client.MatchingFields{"x": "1"}))
	if len(list.Items) != 1 {
		t.Errorf("got %d", len(list.Items))
	}
}

func TestObjectTrackerIsShared(t *testing.T) {
	ctx := t.Context()
	tracker := clienttesting.NewObjectTracker(scheme.Scheme, scheme.Codecs.UniversalDecoder())
	c := NewClientBuilder().WithObjectTracker(tracker).WithObjects(cm("a", "pre")).Build()
	w, err := c.Watch(ctx, &corev1.ConfigMapList{}, client.MatchingLabels{"x": "y"})
	must(t, err)
	defer w.Stop()
	gvr := corev1.SchemeGroupVersion.WithResource("configmaps")
	if _, err := tracker.Get(gvr, "a", "pre"); err != nil {
		t.Error(err)
	}
	direct := cm("a", "direct")
	direct.Labels = map[string]string{"x": "y"}
	must(t, tracker.Create(gvr, direct, "a"))
	if name := (<-w.ResultChan()).Object.(client.Object).GetName(); name != "direct" {
		t.Errorf("got an event of %s", name)
	}
	o := get[corev1.ConfigMap](t, c, client.ObjectKey{Namespace: "a", Name: "direct"})
	o.Data["n"] = "m"
	must(t, c.Update(ctx, o))
	list := &corev1.ConfigMapList{}
	must(t, c.List(ctx, list))
	if len(list.Items) != 2 || list.Items[0].Data["n"] != "m" {
		t.Errorf("got %s", text(list.Items))
	}
	must(t, c.Delete(ctx, o))
	if _, err := tracker.Get(gvr, "a", "direct"); !apierrors.IsNotFound(err) {
		t.Errorf("got %v", err)
	}
}

// One of two updates that start from the same version must lose, whoever they are.
func TestConcurrentWriters(t *testing.T) {
	ctx := t.Context()
	c := NewClientBuilder().WithObjects(cm("a", "c")).Build()
	w, err := c.Watch(ctx, &corev1.ConfigMapList{})
	must(t, err)
	defer w.Stop()
	const writers, each = 8, 25
	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() {
			for done := 0; done < each; {
				o := &corev1.ConfigMap{}
				if err := c.Get(ctx, client.ObjectKey{Namespace: "a", Name: "c"}, o); err != nil {
					t.Error(err)
					return
				}
				o.Data["a"] += "."
				o.Data[fmt.Sprint(i)] = fmt.Sprint(done)
				err := c.Update(ctx, o)
				if err == nil {
					done++
				} else if !apierrors.IsConflict(err) {
					t.Error(err)
					return
				}
				if err := c.List(ctx, &corev1.ConfigMapList{}); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	o := get[corev1.ConfigMap](t, c, client.ObjectKey{Namespace: "a", Name: "c"})
	if got := strings.Count(o.Data["a"], "."); got != writers*each {
		t.Errorf("%d of %d updates are there", got, writers*each)
	}
}

func TestStrictFields(t *testing.T) {
	ctx := t.Context()
	c := NewFakeClient()
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"namespace": "a", "name": "c"}, "dada": map[string]any{"a": "b"}}}
	if err := c.Create(ctx, u.DeepCopy(), client.FieldValidation("Strict")); !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), `unknown field "dada"`) {
		t.Errorf("got %v", err)
	}
	must(t, c.Create(ctx, u))
	if _, ok := u.Object["dada"]; ok {
		t.Error("a field that the kind does not have was kept")
	}
}
