// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package fake

import (
	"encoding/json"
	"fmt"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/client/apiutil"
)

// scaled are the built-in kinds with a scale. That of a custom resource is in its definition, which the fake does not read.
var scaled = map[schema.GroupKind]bool{
	{Kind: "ReplicationController"}:           true,
	{Group: "apps", Kind: "Deployment"}:       true,
	{Group: "apps", Kind: "ReplicaSet"}:       true,
	{Group: "apps", Kind: "StatefulSet"}:      true,
	{Group: "extensions", Kind: "Deployment"}: true,
	{Group: "extensions", Kind: "ReplicaSet"}: true,
}

func hasScale(k *kind) bool { return scaled[k.gvk.GroupKind()] }

// defaultReplicas is what the server makes of a spec that does not say.
const defaultReplicas = 1

// scalable is the part of a stored object that its scale is made of.
type scalable struct {
	Spec struct {
		Replicas *int32          `json:"replicas"`
		Selector json.RawMessage `json:"selector"`
	} `json:"spec"`
	Status struct {
		Replicas int32 `json:"replicas"`
	} `json:"status"`
}

// scaleOf makes the scale of a stored object.
func scaleOf(stored client.Object) (*autoscalingv1.Scale, error) {
	data, err := json.Marshal(stored)
	if err != nil {
		return nil, err
	}
	var from scalable
	if err := json.Unmarshal(data, &from); err != nil {
		return nil, err
	}
	scale := &autoscalingv1.Scale{ObjectMeta: metav1.ObjectMeta{
		Name: stored.GetName(), Namespace: stored.GetNamespace(), UID: stored.GetUID(),
		ResourceVersion: stored.GetResourceVersion(), CreationTimestamp: stored.GetCreationTimestamp(),
	}}
	scale.SetGroupVersionKind(autoscalingv1.SchemeGroupVersion.WithKind("Scale"))
	scale.Spec.Replicas = defaultReplicas
	if from.Spec.Replicas != nil {
		scale.Spec.Replicas = *from.Spec.Replicas
	}
	scale.Status.Replicas = from.Status.Replicas
	scale.Status.Selector, err = selectorText(from.Spec.Selector)
	return scale, err
}

// selectorText writes a selector, of either of the two forms that kinds use, as labels are selected on the command line.
func selectorText(raw json.RawMessage) (string, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return "", nil
	}
	var plain map[string]string
	if err := json.Unmarshal(raw, &plain); err == nil {
		return labels.SelectorFromSet(plain).String(), nil
	}
	var rich metav1.LabelSelector
	if err := json.Unmarshal(raw, &rich); err != nil {
		return "", err
	}
	selector, err := metav1.LabelSelectorAsSelector(&rich)
	if err != nil {
		return "", err
	}
	return selector.String(), nil
}

// toScale reads a scale from whatever form the caller has it in.
func toScale(body client.Object) (*autoscalingv1.Scale, error) {
	if s, ok := body.(*autoscalingv1.Scale); ok {
		return s, nil
	}
	if u, ok := body.(*unstructured.Unstructured); ok && u.GetKind() == "Scale" {
		scale := &autoscalingv1.Scale{}
		return scale, runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, scale)
	}
	return nil, fmt.Errorf("update scale: the body is a %T; give an autoscaling/v1 Scale with client.WithSubResourceBody", body)
}

// fillOther writes an answer that is not a stored object into the caller's.
func fillOther(answer, into client.Object) error {
	if u, ok := into.(runtime.Unstructured); ok {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(answer)
		if err != nil {
			return err
		}
		u.SetUnstructuredContent(content)
		return nil
	}
	data, err := json.Marshal(answer)
	if err != nil {
		return err
	}
	apiutil.Zero(into)
	if err := utiljson.Unmarshal(data, into); err != nil {
		return err
	}
	into.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	return nil
}

// scale writes the replicas that want asks for.
func (e *engine) scale(w *write, want *autoscalingv1.Scale) (*autoscalingv1.Scale, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	old, err := e.rows.get(w.k, w.key)
	if err != nil {
		return nil, err
	}
	if old == nil {
		return nil, w.k.notFound(w.key.Name)
	}
	return e.scaleLocked(w, old, want)
}

func (e *engine) scaleLocked(w *write, old *record, want *autoscalingv1.Scale) (*autoscalingv1.Scale, error) {
	content, err := toMap(w.k, old.obj)
	if err != nil {
		return nil, err
	}
	if err := unstructured.SetNestedField(content, int64(want.Spec.Replicas), specField, "replicas"); err != nil {
		return nil, err
	}
	next, err := e.toStored(w.k, &unstructured.Unstructured{Object: content})
	if err != nil {
		return nil, err
	}
	next.SetManagedFields(nil)
	next.SetResourceVersion(want.ResourceVersion)
	next.SetUID(want.UID)
	stored, err := e.replace(w, old, next)
	if err != nil {
		return nil, err
	}
	return scaleOf(stored)
}

// patchScale patches the scale of an object.
func (e *engine) patchScale(w *write, p patching) (*autoscalingv1.Scale, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	old, err := e.rows.get(w.k, w.key)
	if err != nil {
		return nil, err
	}
	if old == nil {
		return nil, w.k.notFound(w.key.Name)
	}
	current, err := scaleOf(old.obj)
	if err != nil {
		return nil, err
	}
	before, err := json.Marshal(current)
	if err != nil {
		return nil, err
	}
	after, err := e.patchJSON(scaleKind, before, p)
	if err != nil {
		return nil, err
	}
	want := &autoscalingv1.Scale{}
	if err := utiljson.Unmarshal(after, want); err != nil {
		return nil, badRequestf("%v", err)
	}
	return e.scaleLocked(w, old, want)
}

var scaleKind = &kind{gvk: autoscalingv1.SchemeGroupVersion.WithKind("Scale")}

// applyScale applies a scale: what is applied is the one field of the object that it stands for.
func (e *engine) applyScale(w *write, body runtime.ApplyConfiguration, o *metav1.PatchOptions) error {
	data, err := json.Marshal(body)
	if err != nil {
		return err
	}
	var want scalable
	if err := json.Unmarshal(data, &want); err != nil {
		return err
	}
	fields := map[string]any{}
	if want.Spec.Replicas != nil {
		fields["replicas"] = *want.Spec.Replicas
	}
	applied, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"name": w.key.Name, "namespace": w.key.Namespace}, specField: fields,
	})
	if err != nil {
		return err
	}
	stored, err := e.apply(w, patching{kind: types.ApplyPatchType, data: applied, force: o.Force != nil && *o.Force})
	if err != nil {
		return err
	}
	scale, err := scaleOf(stored)
	if err != nil {
		return err
	}
	content, err := json.Marshal(scale)
	if err != nil {
		return err
	}
	if u, ok := body.(runtime.Unstructured); ok {
		m := map[string]any{}
		if err := utiljson.Unmarshal(content, &m); err != nil {
			return err
		}
		u.SetUnstructuredContent(m)
		return nil
	}
	apiutil.Zero(body)
	return utiljson.Unmarshal(content, body)
}
