// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package admission_test

import (
	"context"
	"errors"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/wherry-dev/wherry/webhook/admission"
)

// noLatest keeps images without a fixed tag out, and puts a label on each pod.
type noLatest struct{}

func (noLatest) Default(_ context.Context, pod *corev1.Pod) error {
	if pod.Labels == nil {
		pod.Labels = map[string]string{}
	}
	pod.Labels["checked"] = "true"
	return nil
}

func (noLatest) ValidateCreate(_ context.Context, pod *corev1.Pod) (admission.Warnings, error) {
	for _, c := range pod.Spec.Containers {
		if c.Image == "app:latest" {
			return nil, errors.New("container " + c.Name + ": the image has no fixed tag")
		}
	}
	return nil, nil
}

func (v noLatest) ValidateUpdate(ctx context.Context, _, pod *corev1.Pod) (admission.Warnings, error) {
	return v.ValidateCreate(ctx, pod)
}

func (noLatest) ValidateDelete(context.Context, *corev1.Pod) (admission.Warnings, error) {
	return nil, nil
}

func createPod() admission.Request {
	req := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{UID: "1", Operation: admissionv1.Create}}
	req.Object.Raw = []byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"app:latest"}]}}`)
	return req
}

func ExampleWithDefaulter() {
	hook := admission.WithDefaulter[*corev1.Pod](nil, noLatest{})
	response := hook.Handle(context.Background(), createPod())
	fmt.Println(response.Allowed, string(response.Patch))
	// Output: true [{"op":"add","path":"/metadata/labels","value":{"checked":"true"}}]
}

func ExampleWithValidator() {
	hook := admission.WithValidator[*corev1.Pod](nil, noLatest{})
	response := hook.Handle(context.Background(), createPod())
	fmt.Println(response.Allowed, response.Result.Code, response.Result.Message)
	// Output: false 403 container c: the image has no fixed tag
}

func ExamplePatchResponseFromRaw() {
	response := admission.PatchResponseFromRaw([]byte(`{"a":1,"b":2}`), []byte(`{"a":1,"c":3}`))
	for _, change := range response.Patches {
		fmt.Println(change.Operation, change.Path)
	}
	// Output:
	// add /c
	// remove /b
}
