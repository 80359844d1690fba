// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"fmt"
	"testing"
	"time"
	"unsafe"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/wherry-dev/wherry/client"
)

// referencePod is a pod as clusters have them: 5 labels, 3 annotations, an owner, 2 entries of managedFields, 2
// volumes, a container with environment, probe and resources, 5 conditions and a container status. 50 pods share a
// deployment, and so the label app; there are 100 namespaces and 500 nodes.
func referencePod(i int) *corev1.Pod {
	app := fmt.Sprintf("app-%05d", i/50)
	yes, now := true, metav1.NewTime(time.Unix(1_800_000_000, 0))
	conditions := []corev1.PodCondition{}
	for _, typ := range []corev1.PodConditionType{"PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"} {
		conditions = append(conditions, corev1.PodCondition{Type: typ, Status: corev1.ConditionTrue, LastTransitionTime: now})
	}
	fieldsOf := func(n int) *metav1.FieldsV1 {
		raw := fmt.Appendf(nil, `{"f:metadata":{"f:labels":{".":{},"f:app":{}}},"f:spec":{%q:{}}}`, fmt.Sprintf("f:%0*d", n, i))
		return metav1.NewFieldsV1(string(raw))
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("%s-7c9d8f5b6-%05d", app, i), GenerateName: app + "-7c9d8f5b6-", Namespace: fmt.Sprintf("ns-%03d", i%100),
			UID: typesUID(fmt.Sprintf("2c9b5f1e-%08d", i)), ResourceVersion: fmt.Sprint(1000 + i), CreationTimestamp: now,
			Labels: map[string]string{"app": app, "tier": "backend", "pod-template-hash": "7c9d8f5b6",
				"version": "v1", "percent": fmt.Sprint(i % 100)},
			Annotations:     map[string]string{"prometheus.io/scrape": "true", "prometheus.io/port": "8080", "checksum/config": "d41d8cd98f00b204e9800998ecf8427e"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: app + "-7c9d8f5b6", UID: "9d1f", Controller: &yes, BlockOwnerDeletion: &yes}},
			ManagedFields: []metav1.ManagedFieldsEntry{
				{Manager: "kube-controller-manager", Operation: "Update", APIVersion: "v1", Time: &now, FieldsType: "FieldsV1", FieldsV1: fieldsOf(1200)},
				{Manager: "kubelet", Operation: "Update", APIVersion: "v1", Time: &now, FieldsType: "FieldsV1", FieldsV1: fieldsOf(700), Subresource: "status"},
			},
		},
		Spec: corev1.PodSpec{
			NodeName: fmt.Sprintf("node-%03d", i%500), ServiceAccountName: "default", RestartPolicy: corev1.RestartPolicyAlways,
			Volumes: []corev1.Volume{
				{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: app}}}},
				{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
			},
			Containers: []corev1.Container{{
				Name: "main", Image: "registry.example.com/team/app:1.2.3", Ports: []corev1.ContainerPort{{ContainerPort: 8080, Protocol: "TCP"}},
				Env: []corev1.EnvVar{{Name: "MODE", Value: "production"}, {Name: "POD_IP", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "status.podIP"}}}},
				Resources: corev1.ResourceRequirements{
					Requests: corev1.ResourceList{"cpu": resource.MustParse("100m"), "memory": resource.MustParse("128Mi")},
					Limits:   corev1.ResourceList{"memory": resource.MustParse("256Mi")},
				},
				LivenessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/healthz", Port: intstr.FromInt32(8080)}}},
				VolumeMounts:  []corev1.VolumeMount{{Name: "config", MountPath: "/etc/app"}, {Name: "tmp", MountPath: "/tmp"}},
			}},
		},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, PodIP: "10.0.0.1", PodIPs: []corev1.PodIP{{IP: "10.0.0.1"}}, StartTime: &now, Conditions: conditions,
			ContainerStatuses: []corev1.ContainerStatus{{Name: "main", Ready: true, Started: &yes, ContainerID: "containerd://abc",
				State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}}}},
		},
	}
}

// filled returns a cache of n reference pods.
func filled(b testing.TB, n int) *informerCache {
	b.Helper()
	r := newRig(b, Options{}, nil)
	if _, err := r.cache.GetInformer(context.Background(), &corev1.Pod{}); err != nil {
		b.Fatal(err)
	}
	objs := make([]any, n)
	for i := range n {
		objs[i] = referencePod(i)
	}
	r.cache.mu.Lock()
	defer r.cache.mu.Unlock()
	for _, e := range r.cache.entries {
		if err := e.current.parts[0].Replace(objs, "200000"); err != nil {
			b.Fatal(err)
		}
	}
	return r.cache
}

func BenchmarkGet(b *testing.B) {
	c := filled(b, 500)
	keys := make([]client.ObjectKey, 500)
	for i := range keys {
		keys[i] = client.ObjectKeyFromObject(referencePod(i))
	}
	ctx := context.Background()
	b.Run("floor", func(b *testing.B) { // bare DeepCopyInto
		b.ReportAllocs()
		in, out := referencePod(1), &corev1.Pod{}
		for b.Loop() {
			in.DeepCopyInto(out)
		}
	})
	for name, opts := range map[string][]client.GetOption{"copied": nil, "shared": {client.UnsafeDisableDeepCopy}} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			out, i := &corev1.Pod{}, 0
			for b.Loop() {
				i++
				if err := c.Get(ctx, keys[i%500], out, opts...); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkList(b *testing.B) {
	ctx := context.Background()
	for _, n := range []int{1_000, 10_000} {
		c := filled(b, n)
		for name, opts := range map[string][]client.ListOption{
			"all/copied":     nil,
			"all/shared":     {client.UnsafeDisableDeepCopy},
			"label1%/copied": {client.MatchingLabels{"percent": "7"}},
			"label1%/shared": {client.MatchingLabels{"percent": "7"}, client.UnsafeDisableDeepCopy},
			"namespace":      {client.InNamespace("ns-007"), client.UnsafeDisableDeepCopy},
		} {
			b.Run(fmt.Sprintf("%d/%s", n, name), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					var list corev1.PodList
					if err := c.List(ctx, &list, opts...); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// TestAllocations holds the allocations of reads, which are exact, to what the tables promise.
func TestAllocations(t *testing.T) {
	c := filled(t, 500)
	ctx := context.Background()
	pod := referencePod(1)
	key, out := client.ObjectKeyFromObject(pod), &corev1.Pod{}
	floor := testing.AllocsPerRun(100, func() { pod.DeepCopyInto(out) })
	copied := testing.AllocsPerRun(100, func() {
		if err := c.Get(ctx, key, out); err != nil {
			t.Fatal(err)
		}
	})
	shared := testing.AllocsPerRun(100, func() {
		if err := c.Get(ctx, key, out, client.UnsafeDisableDeepCopy); err != nil {
			t.Fatal(err)
		}
	})
	if copied > floor {
		t.Errorf("a copied Get makes %v allocations, its DeepCopyInto %v", copied, floor)
	}
	if shared > 1 { // the slice of options
		t.Errorf("a shared Get makes %v allocations", shared)
	}
	all := testing.AllocsPerRun(100, func() { // so often that what others allocate meanwhile does not count
		var list corev1.PodList
		if err := c.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
			t.Fatal(err)
		}
	})
	if all > 10 {
		t.Errorf("a shared List of 500 makes %v allocations", all)
	}
	one, onePart := client.MatchingLabels{"percent": "7"}, client.InNamespace("ns-007")
	selected := testing.AllocsPerRun(100, func() {
		var list corev1.PodList
		if err := c.List(ctx, &list, one, onePart, client.UnsafeDisableDeepCopy); err != nil {
			t.Fatal(err)
		}
	})
	if selected > 14 { // the result is made in one piece
		t.Errorf("a shared List of 5 by label makes %v allocations", selected)
	}
	if unsafe.Sizeof(item{}) > 32 {
		t.Errorf("an item takes %d bytes", unsafe.Sizeof(item{}))
	}
}
