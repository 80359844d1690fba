// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"encoding/json"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/wherry-dev/wherry/client"
)

// TestGlance wants a look at an answer to tell, in both encodings, what decoding the whole object would.
func TestGlance(t *testing.T) {
	leaving := &metav1.Time{Time: time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)}
	whole := referencePod(7)
	whole.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}
	for name, change := range map[string]func(*metav1.ObjectMeta){
		"as it is":       func(*metav1.ObjectMeta) {},
		"bare":           func(m *metav1.ObjectMeta) { *m = metav1.ObjectMeta{Name: "n"} },
		"generated name": func(m *metav1.ObjectMeta) { m.Name = "" },
		"leaving":        func(m *metav1.ObjectMeta) { m.DeletionTimestamp = leaving },
		"in its grace": func(m *metav1.ObjectMeta) {
			m.DeletionTimestamp, m.DeletionGracePeriodSeconds = leaving, ptr.To[int64](300)
		},
		"no grace": func(m *metav1.ObjectMeta) {
			m.DeletionTimestamp, m.DeletionGracePeriodSeconds = leaving, ptr.To[int64](0)
		},
		"held": func(m *metav1.ObjectMeta) { m.DeletionTimestamp, m.Finalizers = leaving, []string{"a.b/c", "d.e/f"} },
	} {
		t.Run(name, func(t *testing.T) {
			pod := whole.DeepCopy()
			change(&pod.ObjectMeta)
			wanted := glance{name: pod.Name, uid: pod.UID, version: pod.ResourceVersion, ending: pod.DeletionTimestamp != nil,
				grace: ptr.Deref(pod.DeletionGracePeriodSeconds, 0), finalizers: len(pod.Finalizers)}
			inJSON, err := json.Marshal(pod)
			if err != nil {
				t.Fatal(err)
			}
			for contentType, body := range map[string][]byte{
				"application/json":                     inJSON,
				"application/json; charset=utf-8":      inJSON,
				"application/vnd.kubernetes.protobuf":  sealed(t, "v1", "Pod", pod),
				"application/vnd.kubernetes.protobuf ": sealed(t, "v1", "Pod", pod),
			} {
				in, err := open(body, contentType)
				if err != nil {
					t.Fatal(err)
				}
				want(t, in.glance, wanted)
				want(t, in.TypeMeta, pod.TypeMeta)
				var back corev1.Pod
				if err := in.decode(&back); err != nil {
					t.Fatal(err)
				}
				want(t, []string{string(back.UID), back.Spec.Containers[0].Image}, []string{string(pod.UID), pod.Spec.Containers[0].Image})
			}
		})
	}
}

// TestOpenBroken wants an error, and no panic, of a body that is cut off anywhere.
func TestOpenBroken(t *testing.T) {
	body := sealed(t, "v1", "Pod", referencePod(7))
	for n := range body {
		if _, err := open(body[:n], runtime.ContentTypeProtobuf); err == nil && n > len(protobufMagic) && !endsField(body[:n]) {
			t.Fatalf("the first %d of %d bytes are opened", n, len(body))
		}
	}
	encoded := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ContentEncoding: "gzip", Raw: []byte{1}}
	data, err := encoded.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := open(append(append([]byte{}, protobufMagic...), data...), runtime.ContentTypeProtobuf); err == nil {
		t.Error("content in an encoding that is not known is opened")
	}
}

// endsField reports whether apimachinery takes what is cut off for a whole message: it ends with a field of the envelope.
func endsField(body []byte) bool {
	return new(runtime.Unknown).Unmarshal(body[len(protobufMagic):]) == nil
}

// sealed is an object as a server sends it in protobuf.
func sealed(t *testing.T, apiVersion, kind string, obj interface{ Marshal() ([]byte, error) }) []byte {
	t.Helper()
	raw, err := obj.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	unknown := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: apiVersion, Kind: kind}, Raw: raw}
	data, err := unknown.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return append(append([]byte{}, protobufMagic...), data...)
}

// TestEventBeforeAnswer wants an answer that the store is level with to be neither decoded nor kept, to fill the holes that
// are older than its request, and to count all the same where it tells of an object's end.
func TestEventBeforeAnswer(t *testing.T) {
	within(t, func(t *testing.T) {
		r := held(t, Options{}, object("configmaps", "a", "m", nil))
		m, p := r.get(t, "a", "m"), onlyPart(t, r, "ConfigMap")
		decoded, item := 0, p.source.item
		p.source.item = func() runtime.Object { decoded++; return item() }
		begin := func() func(*corev1.ConfigMap) {
			_, settle, err := r.cache.Begin(t.Context(), client.Write{Verb: client.VerbUpdate, GroupVersionKind: p.set.entry.gvk, Namespace: "a", Name: "m"})
			if err != nil {
				t.Fatal(err)
			}
			return func(m *corev1.ConfigMap) {
				settle(client.Outcome{Sent: true, StatusCode: 200, ContentType: runtime.ContentTypeProtobuf, Body: protobufOf(t, m)})
			}
		}
		begin()(m)
		want(t, []int{decoded, p.overlay.size()}, []int{0, 0})

		answered := begin()
		p.overlay.putHole("a/m")
		answered(m)
		want(t, []int{decoded, p.overlay.holes()}, []int{0, 1})
		begin()(m)
		want(t, []int{decoded, p.overlay.size()}, []int{0, 0})

		next := m.DeepCopy()
		next.ResourceVersion, next.Data = "90", map[string]string{"n": "2"}
		begin()(next)
		want(t, decoded, 1)
		want(t, r.get(t, "a", "m").Data["n"], "2")

		last := m.DeepCopy() // its last finalizer was taken out
		last.DeletionTimestamp = &metav1.Time{Time: time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)}
		begin()(last)
		want(t, r.get(t, "a", "m") == nil, true)
	})
}
