// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func print(t *testing.T, obj any) uint64 {
	t.Helper()
	sum, ok := fingerprint(obj)
	if !ok {
		t.Fatalf("no fingerprint of %+v", obj)
	}
	return sum
}

func fullPod() *corev1.Pod {
	yes, port := true, int32(8080)
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "p", Labels: map[string]string{"a": "1", "b": "2"}, CreationTimestamp: metav1.Now(),
			OwnerReferences: []metav1.OwnerReference{{Name: "o", Controller: &yes}}, Finalizers: []string{},
		},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{{
				Name: "c", Env: []corev1.EnvVar{{Name: "A", Value: "1"}, {Name: "B"}},
				Ports:     []corev1.ContainerPort{{ContainerPort: port}},
				Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": resource.MustParse("100m"), "memory": resource.MustParse("1Gi")}},
			}},
		},
	}
}

// Every change that reflect.DeepEqual sees changes the fingerprint, and a copy has the same.
func TestFingerprintTellsWhatDeepEqualTells(t *testing.T) {
	for name, change := range map[string]func(p *corev1.Pod){
		"nothing":          func(*corev1.Pod) {},
		"name":             func(p *corev1.Pod) { p.Name = "q" },
		"label's value":    func(p *corev1.Pod) { p.Labels["a"] = "2" },
		"labels' values":   func(p *corev1.Pod) { p.Labels["a"], p.Labels["b"] = "2", "1" },
		"one more label":   func(p *corev1.Pod) { p.Labels["c"] = "" },
		"one label less":   func(p *corev1.Pod) { delete(p.Labels, "b") },
		"annotations":      func(p *corev1.Pod) { p.Annotations = map[string]string{} },
		"behind a pointer": func(p *corev1.Pod) { *p.OwnerReferences[0].Controller = false },
		"empty, not nil":   func(p *corev1.Pod) { p.Finalizers = nil },
		"item":             func(p *corev1.Pod) { p.Spec.Containers[0].Env[1].Value = "2" },
		"text moved":       func(p *corev1.Pod) { e := p.Spec.Containers[0].Env; e[0].Name, e[0].Value = "A1", "" },
		"items swapped":    func(p *corev1.Pod) { e := p.Spec.Containers[0].Env; e[0], e[1] = e[1], e[0] },
		"item added":       func(p *corev1.Pod) { p.Spec.Containers = append(p.Spec.Containers, corev1.Container{}) },
		"number":           func(p *corev1.Pod) { p.Spec.Containers[0].Ports[0].ContainerPort++ },
		"another field": func(p *corev1.Pod) {
			c := &p.Spec.Containers[0].Ports[0]
			c.HostPort, c.ContainerPort = c.ContainerPort, 0
		},
		"quantity":             func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Limits["cpu"] = resource.MustParse("101m") },
		"time":                 func(p *corev1.Pod) { p.CreationTimestamp.Time = p.CreationTimestamp.Add(1) },
		"the time's location":  func(p *corev1.Pod) { p.CreationTimestamp.Time = p.CreationTimestamp.In(time.FixedZone("x", 60)) },
		"the same, made again": func(p *corev1.Pod) { p.Labels = map[string]string{"b": "2", "a": "1"} },
		"false for nothing":    func(p *corev1.Pod) { p.Spec.HostUsers = new(bool) },
	} {
		pod := fullPod()
		before, was := pod.DeepCopy(), print(t, pod)
		if copied := print(t, before); copied != was {
			t.Errorf("%s: a copy has another fingerprint", name)
		}
		change(pod)
		if same, equal := print(t, pod) == was, reflect.DeepEqual(pod, before); same != equal {
			t.Errorf("%s: the fingerprint is the same: %v, DeepEqual: %v", name, same, equal)
		}
	}
}

// nested is of every kind that there is.
type nested struct {
	Bool    bool
	Int     int8
	Uint    uint16
	Float   float32
	Text    string
	Any     any
	List    [2]any
	Bytes   []byte
	Inner   map[string]map[string]nested
	Pointer *nested
	secret  int
	hidden  *int
	call    func()
}

func TestFingerprintOfEveryKind(t *testing.T) {
	made := func() *nested {
		return &nested{Any: []any{"1"}, Inner: map[string]map[string]nested{"a": {"b": {Int: 1, Inner: map[string]map[string]nested{"c": {}}}, "d": {}}}}
	}
	was := print(t, made())
	for i, change := range []func(n *nested){
		func(n *nested) { n.Bool = true }, func(n *nested) { n.Int = -1 }, func(n *nested) { n.Uint = 1 }, func(n *nested) { n.Float = 0.5 },
		func(n *nested) { n.Text = "x" }, func(n *nested) { n.Any = []any{1} }, func(n *nested) { n.Any = []string{"1"} },
		func(n *nested) { n.List[0] = int32(0) }, func(n *nested) { n.List[1] = int32(0) }, func(n *nested) { n.List[0] = int64(0) },
		func(n *nested) { n.Bytes = []byte{} }, func(n *nested) { n.Bytes = []byte{0} }, func(n *nested) { n.Inner["a"]["d"] = nested{Int: 1} },
		func(n *nested) { n.Inner["a"]["b"].Inner["c"]["x"] = nested{} }, func(n *nested) { n.Inner["x"] = nil },
		func(n *nested) { n.Pointer = &nested{} }, func(n *nested) { n.secret = 1 },
	} {
		n := made()
		change(n)
		if print(t, n) == was {
			t.Errorf("change %d is not seen", i)
		}
	}
	loop := &nested{}
	loop.Pointer = loop
	for name, n := range map[string]*nested{"a loop": loop, "what is hidden": {hidden: new(int)}, "a function": {call: func() {}}} {
		if _, ok := fingerprint(n); ok {
			t.Errorf("took the fingerprint of %s", name)
		}
	}
	if print(t, made()) != was {
		t.Error("what could not be taken in has left something behind")
	}
}

// An object that has no fingerprint is copied: a quantity of many digits has them in a field of its own.
func TestMemory(t *testing.T) {
	for _, test := range []struct {
		quantity      string
		asked, copied bool
	}{
		{"1Gi", false, false},
		{"1Gi", true, true},
		{"123456789012345678901234567890", false, true},
	} {
		quantity, copied := test.quantity, test.copied
		pod := fullPod()
		limits := pod.Spec.Containers[0].Resources.Limits
		limits["memory"] = resource.MustParse(quantity)
		was := remember(pod, test.asked)
		if (was.copy != nil) != copied || !was.still(pod) {
			t.Errorf("%s: copied %v, is the same: %v", quantity, was.copy != nil, was.still(pod))
		}
		changed := limits["memory"].DeepCopy()
		changed.Add(resource.MustParse("1"))
		limits["memory"] = changed
		if was.still(pod) {
			t.Errorf("%s: a change is not seen", quantity)
		}
		limits["memory"], pod.Name = resource.MustParse(quantity), "q"
		if was.still(pod) {
			t.Errorf("%s: a new name is not seen", quantity)
		}
	}
}

func TestFingerprintAllocatesNothing(t *testing.T) {
	pod, f := fullPod(), newFingerprinter()
	f.of(pod) // makes room for the entries of maps
	if n := testing.AllocsPerRun(100, func() { f.of(pod) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// FuzzFingerprint compares objects of any two documents.
func FuzzFingerprint(f *testing.F) {
	f.Add([]byte(`{"metadata":{"labels":{"a":"b"}}}`), []byte(`{"metadata":{"labels":{"b":"a"}}}`))
	f.Add([]byte(`{"spec":{"containers":[{"name":"a"},{}]}}`), []byte(`{"spec":{"containers":[{},{"name":"a"}]}}`))
	f.Add([]byte(`{"a":[1,[]],"b":{}}`), []byte(`{"a":[1,{}],"b":[]}`))
	f.Add([]byte(`{"a":{"b":{"a":1}}}`), []byte(`{"a":{"b":{"a":1.5}}}`))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		for _, made := range []func() any{func() any { return &corev1.Pod{} }, func() any { return &unstructured.Unstructured{Object: map[string]any{}} }} {
			one, other := made(), made()
			if decodeAny(a, one) != nil || decodeAny(b, other) != nil {
				continue
			}
			x, xok := fingerprint(one)
			y, yok := fingerprint(other)
			if equal := reflect.DeepEqual(one, other); xok && yok && (x == y) != equal {
				t.Errorf("%s and %s: DeepEqual %v", a, b, equal)
			}
		}
	})
}

func decodeAny(text []byte, into any) error {
	if u, ok := into.(*unstructured.Unstructured); ok {
		return json.Unmarshal(text, &u.Object)
	}
	return json.Unmarshal(text, into)
}
