// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	theirs "sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	ours "github.com/wherry-dev/wherry/webhook/admission"
)

// podRules is a defaulter and a validator of pods, as an operator has them.
type podRules struct {
	// label is put on each pod; without one the defaulter changes nothing.
	label string
}

func (r podRules) Default(_ context.Context, pod *corev1.Pod) error {
	if r.label == "" {
		return nil
	}
	if pod.Labels == nil {
		pod.Labels = map[string]string{}
	}
	pod.Labels[r.label] = "true"
	for i := range pod.Spec.Containers {
		pod.Spec.Containers[i].ImagePullPolicy = corev1.PullAlways
	}
	return nil
}

func judgePod(pod *corev1.Pod) error {
	for _, c := range pod.Spec.Containers {
		if strings.HasSuffix(c.Image, ":latest") {
			return errors.New("an image without a fixed tag")
		}
	}
	return nil
}

// ourRules and theirRules are podRules with each library's type of warnings.
type ourRules struct{ podRules }

func (ourRules) ValidateCreate(_ context.Context, pod *corev1.Pod) (ours.Warnings, error) {
	return nil, judgePod(pod)
}
func (ourRules) ValidateUpdate(_ context.Context, _, pod *corev1.Pod) (ours.Warnings, error) {
	return nil, judgePod(pod)
}
func (ourRules) ValidateDelete(context.Context, *corev1.Pod) (ours.Warnings, error) { return nil, nil }

type theirRules struct{ podRules }

func (theirRules) ValidateCreate(_ context.Context, pod *corev1.Pod) (theirs.Warnings, error) {
	return nil, judgePod(pod)
}
func (theirRules) ValidateUpdate(_ context.Context, _, pod *corev1.Pod) (theirs.Warnings, error) {
	return nil, judgePod(pod)
}
func (theirRules) ValidateDelete(context.Context, *corev1.Pod) (theirs.Warnings, error) {
	return nil, nil
}

// podReview is the question whether a pod of usual size may be created.
func podReview() (string, error) {
	pod := &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "team-00", Name: "web-00000", Labels: map[string]string{"app": "web", "tier": "front"}},
	}
	for i := range 2 {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{
			Name: fmt.Sprint("c", i), Image: "registry.example.com/web:1.2.3", Args: []string{"--listen=:8080", "--verbose"},
			Env:   []corev1.EnvVar{{Name: "A", Value: "1"}, {Name: "B", Value: "2"}, {Name: "C", Value: "3"}},
			Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080, Protocol: corev1.ProtocolTCP}},
			Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("64Mi")},
				Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("128Mi")},
			},
			VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/data"}, {Name: "token", MountPath: "/var/run/token", ReadOnly: true}},
		})
	}
	object, err := json.Marshal(pod)
	if err != nil {
		return "", err
	}
	review, err := json.Marshal(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
		Request: &admissionv1.AdmissionRequest{
			UID: "0f8e7d6c", Operation: admissionv1.Create, Namespace: pod.Namespace, Name: pod.Name,
			Kind: metav1.GroupVersionKind{Version: "v1", Kind: "Pod"}, Resource: metav1.GroupVersionResource{Version: "v1", Resource: "pods"},
			Object: runtime.RawExtension{Raw: object},
		},
	})
	return string(review), err
}

// overHTTPS posts the review to defaulter and validator, one after the other: what an API server does for a pod.
func overHTTPS(defaulter, validator http.Handler) (work, error) {
	review, err := podReview()
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("/mutate", defaulter)
	mux.Handle("/validate", validator)
	server := httptest.NewTLSServer(mux)
	c := server.Client()
	post := func(path string) error {
		resp, err := c.Post(server.URL+path, "application/json", strings.NewReader(review))
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		answer, err := io.ReadAll(resp.Body)
		if err == nil && !strings.Contains(string(answer), `"allowed":true`) {
			err = fmt.Errorf("%s: %s", path, answer)
		}
		return err
	}
	return func(n int) error {
		return times(n, func() error { return errors.Join(post("/mutate"), post("/validate")) })
	}, nil
}

func admissionRow(name, label string) row {
	const target = 0.7
	return row{
		name: "admission over HTTPS: " + name, n: 300, targets: map[unit]float64{cpu: target, allocs: target, bytes: 0},
		ours: func() (work, error) {
			scheme := runtime.NewScheme()
			rules := ourRules{podRules{label}}
			d, errD := ours.StandaloneWebhook(ours.WithDefaulter(scheme, rules), ours.StandaloneOptions{MetricsPath: "/mutate"})
			v, errV := ours.StandaloneWebhook(ours.WithValidator(scheme, rules), ours.StandaloneOptions{MetricsPath: "/validate"})
			if err := errors.Join(corev1.AddToScheme(scheme), errD, errV); err != nil {
				return nil, err
			}
			return overHTTPS(d, v)
		},
		theirs: func() (work, error) {
			scheme := runtime.NewScheme()
			rules := theirRules{podRules{label}}
			if err := corev1.AddToScheme(scheme); err != nil {
				return nil, err
			}
			d, errD := theirs.StandaloneWebhook(theirs.WithDefaulter(scheme, rules), theirs.StandaloneOptions{MetricsPath: "/mutate"})
			v, errV := theirs.StandaloneWebhook(theirs.WithValidator(scheme, rules), theirs.StandaloneOptions{MetricsPath: "/validate"})
			if err := errors.Join(errD, errV); err != nil {
				return nil, err
			}
			return overHTTPS(d, v)
		},
	}
}

func webhookRows() []row {
	return []row{admissionRow("pod unchanged", ""), admissionRow("pod patched", "checked")}
}
