// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package podwebhook_test

import (
	"context"
	"errors"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/client/fake"
	"github.com/wherry-dev/wherry/client/interceptor"
	"github.com/wherry-dev/wherry/examples/replicaset/podwebhook"
	"github.com/wherry-dev/wherry/webhook/admission"
)

// pod is one of the ReplicaSet web, as its changes make it.
func pod(changes ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "web-1", Labels: map[string]string{"app": "web"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "u", Controller: ptr.To(true)}},
		},
		Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyAlways, Containers: []corev1.Container{{Name: "main"}, {Name: "side"}}},
	}
	for _, change := range changes {
		change(p)
	}
	return p
}

func labelled(value string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Labels = map[string]string{"app": value} }
}
func nobodys(p *corev1.Pod) { p.OwnerReferences = nil }
func ofAJob(p *corev1.Pod) {
	p.OwnerReferences[0].APIVersion, p.OwnerReferences[0].Kind = "batch/v1", "Job"
}
func onlyOwned(p *corev1.Pod)   { p.OwnerReferences[0].Controller = nil }
func ofAnother(p *corev1.Pod)   { p.OwnerReferences[0].UID = "another" }
func ofAnUnknown(p *corev1.Pod) { p.OwnerReferences[0].Name = "unknown" }
func onceOnly(p *corev1.Pod)    { p.Spec.RestartPolicy = corev1.RestartPolicyNever }

func webhook(t *testing.T) *podwebhook.Pod {
	t.Helper()
	return &podwebhook.Pod{Reader: fake.NewClientBuilder().WithObjects(&appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "u"},
		Spec:       appsv1.ReplicaSetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}},
	}).Build()}
}

func TestDefault(t *testing.T) {
	for name, c := range map[string]struct {
		pod  *corev1.Pod
		want string
	}{
		"of a ReplicaSet": {pod(), "main"},
		"named already":   {pod(func(p *corev1.Pod) { p.Annotations = map[string]string{podwebhook.DefaultContainer: "side"} }), "side"},
		"no containers":   {pod(func(p *corev1.Pod) { p.Spec.Containers = nil }), ""},
		"nobody's":        {pod(nobodys), ""},
		"of a Job":        {pod(ofAJob), ""},
		"only owned":      {pod(onlyOwned), ""},
	} {
		if err := webhook(t).Default(t.Context(), c.pod); err != nil || c.pod.Annotations[podwebhook.DefaultContainer] != c.want {
			t.Errorf("%s: %v, %v", name, c.pod.Annotations, err)
		}
	}
}

func TestValidateCreate(t *testing.T) {
	for name, c := range map[string]struct {
		pod    *corev1.Pod
		fields []string
	}{
		"good":                       {pod(), nil},
		"no restart policy yet":      {pod(func(p *corev1.Pod) { p.Spec.RestartPolicy = "" }), nil},
		"other labels":               {pod(labelled("db")), []string{"metadata.labels"}},
		"ends by itself":             {pod(onceOnly), []string{"spec.restartPolicy"}},
		"both":                       {pod(labelled("db"), onceOnly), []string{"spec.restartPolicy", "metadata.labels"}},
		"nobody's":                   {pod(nobodys, labelled("db"), onceOnly), nil},
		"of a Job":                   {pod(ofAJob, labelled("db"), onceOnly), nil},
		"of a ReplicaSet not seen":   {pod(ofAnUnknown, labelled("db")), nil},
		"of a namesake not seen yet": {pod(ofAnother, labelled("db")), nil},
	} {
		warnings, err := webhook(t).ValidateCreate(t.Context(), c.pod)
		if (err == nil) != (len(c.fields) == 0) || len(warnings) > 0 {
			t.Errorf("%s: %v, %v", name, warnings, err)
			continue
		}
		var status apierrors.APIStatus
		if err == nil {
			continue
		}
		if !errors.As(err, &status) || !apierrors.IsInvalid(err) || len(status.Status().Details.Causes) != len(c.fields) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for i, want := range c.fields {
			if got := status.Status().Details.Causes[i].Field; got != want {
				t.Errorf("%s: field %s, want %s", name, got, want)
			}
		}
	}
}

func TestValidateUpdate(t *testing.T) {
	for name, c := range map[string]struct {
		before, after *corev1.Pod
		warned        bool
	}{
		"nothing of ours":     {pod(), pod(), false},
		"taken out":           {pod(), pod(labelled("debug")), true},
		"taken out before":    {pod(labelled("debug")), pod(labelled("debug2")), false},
		"let go in one":       {pod(), pod(nobodys, labelled("debug")), false},
		"of one not seen yet": {pod(ofAnother), pod(ofAnother, labelled("debug")), false},
	} {
		warnings, err := webhook(t).ValidateUpdate(t.Context(), c.before, c.after)
		if err != nil || (len(warnings) == 1) != c.warned {
			t.Errorf("%s: %q, %v", name, warnings, err)
		}
	}
	if warnings, err := webhook(t).ValidateDelete(t.Context(), pod()); err != nil || len(warnings) > 0 {
		t.Errorf("delete: %v, %v", warnings, err)
	}
}

// A ReplicaSet that cannot be read keeps no pod from being written.
func TestUnreadableReplicaSet(t *testing.T) {
	p := &podwebhook.Pod{Reader: interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return errors.New("broken")
		},
	})}
	for name, validate := range map[string]func() (admission.Warnings, error){
		"create": func() (admission.Warnings, error) { return p.ValidateCreate(t.Context(), pod()) },
		"update": func() (admission.Warnings, error) { return p.ValidateUpdate(t.Context(), pod(), pod()) },
	} {
		warnings, err := validate()
		if err != nil || len(warnings) != 1 || warnings[0] != "not checked: read ReplicaSet default/web: broken" {
			t.Errorf("%s: %q, %v", name, warnings, err)
		}
	}
	if _, err := p.ValidateCreate(t.Context(), pod(onceOnly)); !apierrors.IsInvalid(err) {
		t.Errorf("what needs no ReplicaSet to be wrong: %v", err)
	}
}
