// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/wherry-dev/wherry/client"
)

// key names the pod of the examples in an otherwise empty object.
func key() *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
	}
}

func ExampleGetOptions() {
	must(newClient(client.Options{}).Get(ctx, web, &corev1.Pod{}, &client.GetOptions{Raw: &metav1.GetOptions{ResourceVersion: "0"}}))
	// Output:
	// GET /api/v1/namespaces/default/pods/web?resourceVersion=0
}

// Label options add up, all others replace what came before.
func ExampleListOptions() {
	pods := &corev1.PodList{}
	must(newClient(client.Options{}).List(ctx, pods,
		client.InNamespace("default"), client.MatchingLabels{"app": "web"}, client.HasLabels{"tier"},
		client.MatchingFields{"spec.nodeName": "n1"}, client.Limit(50)))
	fmt.Println(len(pods.Items))
	must(newClient(client.Options{}).List(ctx, pods, &client.ListOptions{Namespace: "default", LabelSelector: labels.SelectorFromSet(labels.Set{"app": "web"})}))
	// Output:
	// GET /api/v1/namespaces/default/pods?fieldSelector=spec.nodeName%3Dn1&labelSelector=app%3Dweb%2Ctier&limit=50
	// 1
	// GET /api/v1/namespaces/default/pods?labelSelector=app%3Dweb
}

func ExampleCreateOptions() {
	pod := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"generateName": "web-", "namespace": "default"}}}
	must(newClient(client.Options{}).Create(ctx, pod, client.FieldOwner("me"), client.FieldValidation("Strict"), client.DryRunAll))
	// Output:
	// POST /api/v1/namespaces/default/pods?dryRun=All&fieldManager=me&fieldValidation=Strict {"apiVersion":"v1","kind":"Pod","metadata":{"generateName":"web-","namespace":"default"}}
}

func ExampleUpdateOptions() {
	pod := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "web", "namespace": "default"}}}
	must(newClient(client.Options{}).Update(ctx, pod, &client.UpdateOptions{FieldManager: "me"}, client.FieldOwner("later")))
	// Output:
	// PUT /api/v1/namespaces/default/pods/web?fieldManager=later {"apiVersion":"v1","kind":"Pod","metadata":{"name":"web","namespace":"default"}}
}

func ExamplePatchOptions() {
	must(newClient(client.Options{}).Patch(ctx, key(), client.RawPatch(types.ApplyPatchType, []byte(`{}`)), client.FieldOwner("me"), client.ForceOwnership))
	// Output:
	// PATCH /api/v1/namespaces/default/pods/web?fieldManager=me&force=true {}
}

func ExampleApplyOptions() {
	pod := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "web", "namespace": "default"}}}
	must(newClient(client.Options{}).Apply(ctx, client.ApplyConfigurationFromUnstructured(pod), &client.ApplyOptions{FieldManager: "me", Force: new(true)}))
	fmt.Println("answered with version", pod.GetResourceVersion())
	// Output:
	// PATCH /api/v1/namespaces/default/pods/web?fieldManager=me&force=true {"apiVersion":"v1","kind":"Pod","metadata":{"name":"web","namespace":"default"}}
	// answered with version 7
}

func ExampleApplyConfigurationFromUnstructured() {
	pod := &unstructured.Unstructured{}
	pod.SetAPIVersion("v1")
	pod.SetKind("Pod")
	pod.SetNamespace("default")
	pod.SetName("web")
	must(newClient(client.Options{FieldOwner: "me"}).Apply(ctx, client.ApplyConfigurationFromUnstructured(pod)))
	// Output:
	// PATCH /api/v1/namespaces/default/pods/web?fieldManager=me {"apiVersion":"v1","kind":"Pod","metadata":{"name":"web","namespace":"default"}}
}

func ExampleDeleteOptions() {
	must(newClient(client.Options{}).Delete(ctx, key(), client.GracePeriodSeconds(0),
		client.Preconditions{UID: new(types.UID("u1"))}, client.PropagationPolicy(metav1.DeletePropagationForeground)))
	// Output:
	// DELETE /api/v1/namespaces/default/pods/web {"kind":"DeleteOptions","apiVersion":"v1","gracePeriodSeconds":0,"preconditions":{"uid":"u1"},"propagationPolicy":"Foreground"}
}

func ExampleDeleteAllOfOptions() {
	must(newClient(client.Options{}).DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace("default"), client.MatchingLabels{"app": "web"}, client.GracePeriodSeconds(5)))
	// Output:
	// DELETE /api/v1/namespaces/default/pods?labelSelector=app%3Dweb {"kind":"DeleteOptions","apiVersion":"v1","gracePeriodSeconds":5}
}

func deployment() *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}
}

func ExampleSubResourceGetOptions() {
	scale := &autoscalingv1.Scale{}
	must(newClient(client.Options{}).SubResource("scale").Get(ctx, deployment(), scale, &client.SubResourceGetOptions{Raw: &metav1.GetOptions{ResourceVersion: "0"}}))
	fmt.Println(scale.Spec.Replicas)
	// Output:
	// GET /apis/apps/v1/namespaces/default/deployments/web/scale?resourceVersion=0
	// 3
}

func ExampleSubResourceCreateOptions() {
	eviction := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "policy/v1", "kind": "Eviction"}}
	must(newClient(client.Options{}).SubResource("eviction").Create(ctx, key(), eviction, client.DryRunAll))
	// Output:
	// POST /api/v1/namespaces/default/pods/web/eviction?dryRun=All {"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"web"}}
}

// A sub-resource with a kind of its own is sent as the body.
func ExampleWithSubResourceBody() {
	scale := &autoscalingv1.Scale{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}, Spec: autoscalingv1.ScaleSpec{Replicas: 5}}
	must(newClient(client.Options{}).SubResource("scale").Update(ctx, deployment(), client.WithSubResourceBody(scale)))
	// Output:
	// PUT /apis/apps/v1/namespaces/default/deployments/web/scale {"kind":"Scale","apiVersion":"autoscaling/v1","metadata":{"name":"web","namespace":"default"},"spec":{"replicas":5},"status":{"replicas":0}}
}

func ExampleSubResourceUpdateOptions() {
	pod := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "web", "namespace": "default"}, "status": map[string]any{"phase": "Failed"}}}
	must(newClient(client.Options{}).Status().Update(ctx, pod, client.FieldOwner("me")))
	// Output:
	// PUT /api/v1/namespaces/default/pods/web/status?fieldManager=me {"apiVersion":"v1","kind":"Pod","metadata":{"name":"web","namespace":"default"},"status":{"phase":"Failed"}}
}

func ExampleSubResourcePatchOptions() {
	pod := readWeb()
	before := pod.DeepCopy()
	pod.Status.Phase = corev1.PodFailed
	must(newClient(client.Options{}).Status().Patch(ctx, pod, client.MergeFrom(before), client.FieldOwner("me")))
	// Output:
	// PATCH /api/v1/namespaces/default/pods/web/status?fieldManager=me {"status":{"phase":"Failed"}}
}

func ExampleSubResourceApplyOptions() {
	status := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "web", "namespace": "default"}, "status": map[string]any{"phase": "Failed"}}}
	must(newClient(client.Options{}).SubResource("status").Apply(ctx, client.ApplyConfigurationFromUnstructured(status), client.FieldOwner("me"), client.ForceOwnership))
	// Output:
	// PATCH /api/v1/namespaces/default/pods/web/status?fieldManager=me&force=true {"apiVersion":"v1","kind":"Pod","metadata":{"name":"web","namespace":"default"},"status":{"phase":"Failed"}}
}

func ExampleNewDryRunClient() {
	must(client.NewDryRunClient(newClient(client.Options{})).Delete(ctx, key()))
	// Output:
	// DELETE /api/v1/namespaces/default/pods/web {"kind":"DeleteOptions","apiVersion":"v1","dryRun":["All"]}
}

func ExampleNewNamespacedClient() {
	c := client.NewNamespacedClient(newClient(client.Options{}), "default")
	must(c.Get(ctx, client.ObjectKey{Name: "web"}, &corev1.Pod{}))
	fmt.Println(c.Get(ctx, client.ObjectKey{Namespace: "other", Name: "web"}, &corev1.Pod{}))
	// Output:
	// GET /api/v1/namespaces/default/pods/web
	// namespace other of the object *v1.Pod does not match the namespace default on the client
}

func ExampleWithFieldOwner() {
	c := client.WithFieldOwner(newClient(client.Options{}), "my-operator")
	must(c.Patch(ctx, key(), client.RawPatch(types.MergePatchType, []byte(`{}`))))
	must(c.Patch(ctx, key(), client.RawPatch(types.MergePatchType, []byte(`{}`)), client.FieldOwner("this-once")))
	// Output:
	// PATCH /api/v1/namespaces/default/pods/web?fieldManager=my-operator {}
	// PATCH /api/v1/namespaces/default/pods/web?fieldManager=this-once {}
}

func ExampleWithFieldValidation() {
	c := client.WithFieldValidation(newClient(client.Options{}), metav1.FieldValidationStrict)
	must(c.Patch(ctx, key(), client.RawPatch(types.MergePatchType, []byte(`{}`))))
	// Output:
	// PATCH /api/v1/namespaces/default/pods/web?fieldValidation=Strict {}
}
