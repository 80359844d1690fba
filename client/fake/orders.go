// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package fake

import (
	"encoding/json"
	"errors"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/wherry-dev/wherry/client"
)

// read gives body as a T, whatever form it has.
func read[T any](body client.Object) (*T, error) {
	data, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	as := new(T)
	return as, json.Unmarshal(data, as)
}

// addressed reports whether an order names the object it is sent to. Without a name it does: a live client fills it in.
func addressed(w *write, name string) bool { return name == "" || name == w.key.Name }

// evict deletes a pod. Disruption budgets are not asked.
func evict(e *engine, w *write, body client.Object) error {
	eviction, err := read[policyv1.Eviction](body)
	if err != nil {
		return err
	}
	if !addressed(w, eviction.Name) {
		return badRequestf("name in URL does not match name in Eviction object")
	}
	opts := eviction.DeleteOptions
	if opts == nil {
		opts = &metav1.DeleteOptions{}
	}
	if len(opts.DryRun) > 0 {
		w.dryRun = true
	}
	return e.remove(w, opts)
}

// Every token is the same, and good for ever: nothing here checks them.
const fakeToken = "fake-token"

var farAway = time.Date(6041, time.January, 1, 0, 0, 0, 0, time.UTC)

// issueToken answers a TokenRequest.
func issueToken(e *engine, w *write, body client.Object) error {
	if _, err := e.get(w.k, w.key); err != nil {
		return err
	}
	request, err := read[authenticationv1.TokenRequest](body)
	if err != nil {
		return err
	}
	request.Status.Token = fakeToken
	request.Status.ExpirationTimestamp = metav1.NewTime(farAway)
	return fillOther(request, body)
}

// bind puts a pod on a node, as a scheduler asks for.
func bind(e *engine, w *write, body client.Object) error {
	binding, err := read[corev1.Binding](body)
	if err != nil {
		return err
	}
	if !addressed(w, binding.Name) {
		return badRequestf("name in URL does not match name in Binding object")
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	old, err := e.rows.get(w.k, w.key)
	if err != nil {
		return err
	}
	if old == nil {
		return w.k.notFound(w.key.Name)
	}
	if node, _, _ := podFacts(old.obj); node != "" {
		return apierrors.NewConflict(schema.GroupResource{Resource: "pods/binding"}, w.key.Name, errors.New("pod "+w.key.Name+" is already assigned to node \""+node+"\""))
	}
	next := old.obj.DeepCopyObject().(client.Object)
	switch pod := next.(type) {
	case *corev1.Pod:
		pod.Spec.NodeName = binding.Target.Name
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
			Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: now(),
		})
	case *unstructured.Unstructured:
		if err := unstructured.SetNestedField(pod.Object, binding.Target.Name, specField, "nodeName"); err != nil {
			return err
		}
	}
	_, err = e.commit(w, old, next)
	return err
}
