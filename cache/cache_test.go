// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/client/apiutil"
)

// TestNamesAtTheirLimits reads a key of the greatest length, and nil pointers of types that are known.
func TestNamesAtTheirLimits(t *testing.T) {
	within(t, func(t *testing.T) {
		s := newServer()
		namespace, name := strings.Repeat("n", 63), strings.Repeat("m", 253)
		s.put(t, object("configmaps", namespace, name, map[string]any{"data": map[string]any{"k": "v"}}))
		r := newRig(t, Options{}, s)
		for range 2 { // the second time through what the first remembered
			want(t, r.get(t, namespace, name).Data["k"], "v")
			want(t, apierrors.IsNotFound(r.cache.Get(t.Context(), key(namespace, name[1:]), configMap("", ""))), true)
			want(t, errors.Is(r.cache.Get(t.Context(), key(namespace, name), (*corev1.ConfigMap)(nil)), apiutil.ErrNilObject), true)
			want(t, errors.Is(r.client.Get(t.Context(), key(namespace, name), (*corev1.ConfigMap)(nil)), apiutil.ErrNilObject), true)
			want(t, errors.Is(r.client.List(t.Context(), (*corev1.ConfigMapList)(nil)), apiutil.ErrNilObject), true)
		}
	})
}

func TestReadsInAllForms(t *testing.T) {
	for _, stream := range []bool{true, false} {
		within(t, func(t *testing.T) {
			s := newServer()
			s.noStream = !stream
			s.put(t, object("configmaps", "a", "m1", with(labelled("x", "1"), map[string]any{"data": map[string]any{"k": "v"}})))
			s.put(t, object("configmaps", "b", "m2", nil))
			r := newRig(t, Options{}, s)

			typed := configMap("", "")
			typed.Labels = map[string]string{"left": "over"}
			if err := r.client.Get(t.Context(), key("a", "m1"), typed); err != nil {
				t.Fatal(err)
			}
			want(t, typed.Data["k"], "v")
			want(t, typed.Labels, map[string]string{"x": "1"})
			want(t, typed.GroupVersionKind(), "/v1, Kind=ConfigMap")

			m := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}}
			if err := r.client.Get(t.Context(), key("a", "m1"), m); err != nil {
				t.Fatal(err)
			}
			want(t, m.Labels["x"], "1")
			want(t, m.Kind, "ConfigMap")
			want(t, s.count("WATCH configmaps")+s.count("LIST configmaps") <= 3, true)

			u := &unstructured.Unstructured{}
			u.SetAPIVersion("v1")
			u.SetKind("ConfigMap")
			if err := r.client.Get(t.Context(), key("a", "m1"), u); err != nil {
				t.Fatal(err)
			}
			want(t, u.Object["data"], map[string]any{"k": "v"})

			want(t, mustList(t, r.client), "[a/m1 b/m2]")
			want(t, mustList(t, r.client, client.InNamespace("b")), "[b/m2]")
			want(t, mustList(t, r.client, client.MatchingLabels{"x": "1"}), "[a/m1]")

			err := r.client.Get(t.Context(), key("a", "none"), typed)
			want(t, apierrors.IsNotFound(err), true)
		})
	}
}

func TestFollowsTheServer(t *testing.T) {
	within(t, func(t *testing.T) {
		r := newRig(t, Options{}, nil)
		want(t, mustList(t, r.client), "[]")
		r.server.put(t, object("configmaps", "a", "m1", nil))
		r.server.put(t, object("configmaps", "a", "m2", nil))
		r.server.remove("configmaps", "a", "m1")
		synctest.Wait()
		want(t, mustList(t, r.client), "[a/m2]")

		r.server.hold("configmaps")
		r.server.remove("configmaps", "a", "m2")
		r.server.put(t, object("configmaps", "a", "m3", nil))
		r.server.cut("configmaps", true)
		r.server.release("configmaps")
		time.Sleep(time.Minute)
		want(t, mustList(t, r.client), "[a/m3]")
	})
}

func TestNotStarted(t *testing.T) {
	r := newStoppedRig(t, Options{}, newServer())
	err := r.client.Get(t.Context(), key("a", "m"), configMap("", ""))
	want(t, errors.As(err, new(*ErrCacheNotStarted)), true)
	if _, err := r.cache.GetInformer(t.Context(), &corev1.ConfigMap{}); err != nil {
		t.Fatal(err)
	}
}

func TestInformerOfAnUnknownKind(t *testing.T) {
	r := newStoppedRig(t, Options{}, newServer())
	_, err := r.cache.GetInformerForKind(t.Context(), schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Unknown"})
	want(t, runtime.IsNotRegisteredError(err), true) // which does not unwrap
}

func TestStrictReads(t *testing.T) {
	within(t, func(t *testing.T) {
		r := newRig(t, Options{ReaderFailOnMissingInformer: true}, nil)
		err := r.client.Get(t.Context(), key("a", "m"), configMap("", ""))
		var missing *ErrResourceNotCached
		want(t, errors.As(err, &missing), true)
		want(t, missing.GVK.Kind, "ConfigMap")
		want(t, r.server.count(""), 0)
		if _, err := r.cache.GetInformer(t.Context(), &corev1.ConfigMap{}); err != nil {
			t.Fatal(err)
		}
		err = r.client.Get(t.Context(), key("a", "m"), configMap("", ""))
		want(t, apierrors.IsNotFound(err), true)
	})
}

func TestForbiddenKindFailsTheReadAtOnce(t *testing.T) {
	within(t, func(t *testing.T) {
		s := newServer()
		s.forbid("configmaps", failure(403, metav1.StatusReasonForbidden, "configmaps is forbidden: no rights"))
		r := newRig(t, Options{}, s)
		began := time.Now()
		err := r.client.Get(t.Context(), key("a", "m"), configMap("", ""))
		want(t, apierrors.IsForbidden(err), true)
		want(t, time.Since(began), time.Duration(0))

		// A source gets its informer at once and learns why it is not filled; the right comes later.
		inf, err := r.cache.GetInformer(t.Context(), &corev1.ConfigMap{}, BlockUntilSynced(false))
		if err != nil {
			t.Fatal(err)
		}
		want(t, inf.HasSynced(), false)
		want(t, apierrors.IsForbidden(inf.(*informer).LastError()), true)
		s.put(t, object("configmaps", "a", "m", nil))
		s.forbid("configmaps", nil)
		<-inf.HasSyncedChecker().Done()
		if d := time.Since(began); d > 15*time.Second {
			t.Fatal(d)
		}
		want(t, inf.(*informer).LastError(), nil)
		if err := r.client.Get(t.Context(), key("a", "m"), configMap("", "")); err != nil {
			t.Fatal(err)
		}
	})
}

func TestReadAfterRefusalAsksAgain(t *testing.T) {
	within(t, func(t *testing.T) {
		s := newServer()
		s.forbid("configmaps", failure(403, metav1.StatusReasonForbidden, "no rights"))
		r := newRig(t, Options{}, s)
		err := r.client.List(t.Context(), &corev1.ConfigMapList{})
		want(t, apierrors.IsForbidden(err), true)
		for p := onlyPart(t, r, "ConfigMap"); time.Since(p.lastFailure()) <= retryFloor; synctest.Wait() {
			time.Sleep(300 * time.Millisecond) // until there is time between two attempts of the cache's own
		}
		s.forbid("configmaps", nil)
		began := time.Now()
		want(t, mustList(t, r.client), "[]")
		want(t, time.Since(began), time.Duration(0))
	})
}

func TestReadThatWaitsEndsWithItsContext(t *testing.T) {
	within(t, func(t *testing.T) {
		s := newServer()
		s.forbid("configmaps", failure(500, metav1.StatusReasonInternalError, "out of order"))
		r := newRig(t, Options{}, s)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		began := time.Now()
		err := r.client.Get(ctx, key("a", "m"), configMap("", ""))
		want(t, errors.Is(err, context.DeadlineExceeded), true)
		want(t, apierrors.IsInternalError(err), true)
		want(t, time.Since(began), 5*time.Second)

		err = r.client.Get(t.Context(), key("a", "m"), configMap("", ""))
		want(t, errors.Is(err, errWaitedTooLong), true)
		want(t, time.Since(began), 5*time.Second+maxSyncWait)
	})
}

func TestHandlers(t *testing.T) {
	within(t, func(t *testing.T) {
		s := newServer()
		s.put(t, object("configmaps", "a", "m1", nil))
		r := newRig(t, Options{}, s)
		inf, err := r.cache.GetInformer(t.Context(), &corev1.ConfigMap{})
		if err != nil {
			t.Fatal(err)
		}
		var heard []string
		reg, err := inf.AddEventHandler(toolscache.ResourceEventHandlerDetailedFuncs{
			AddFunc: func(obj any, initial bool) {
				heard = append(heard, "add "+obj.(*corev1.ConfigMap).Name)
				if initial {
					heard = append(heard, "initial")
				}
			},
			UpdateFunc: func(old, obj any) {
				heard = append(heard, "update "+old.(*corev1.ConfigMap).Data["n"]+obj.(*corev1.ConfigMap).Data["n"])
			},
			DeleteFunc: func(obj any) { heard = append(heard, "delete "+obj.(*corev1.ConfigMap).Name) },
		})
		if err != nil {
			t.Fatal(err)
		}
		<-reg.HasSyncedChecker().Done()
		s.put(t, object("configmaps", "a", "m2", map[string]any{"data": map[string]any{"n": "1"}}))
		synctest.Wait()
		s.put(t, object("configmaps", "a", "m2", map[string]any{"data": map[string]any{"n": "2"}}))
		synctest.Wait()
		s.remove("configmaps", "a", "m2")
		synctest.Wait()
		want(t, heard, "[add m1 initial add m2 update 12 delete m2]")

		if err := inf.RemoveEventHandler(reg); err != nil {
			t.Fatal(err)
		}
		if err := inf.RemoveEventHandler(reg); err != nil {
			t.Fatal(err)
		}
		s.put(t, object("configmaps", "a", "m3", nil))
		synctest.Wait()
		want(t, len(heard), 5)
	})
}

// lastFailure returns when the latest failed attempt was.
func (p *part) lastFailure() time.Time {
	p.set.entry.mu.Lock()
	defer p.set.entry.mu.Unlock()
	return p.failedAt
}

// onlyPart returns the one store of a kind.
func onlyPart(t *testing.T, r *rig, kind string) *part {
	t.Helper()
	r.cache.mu.Lock()
	defer r.cache.mu.Unlock()
	for key, e := range r.cache.entries {
		if key.gvk.Kind == kind {
			return e.current.parts[0]
		}
	}
	t.Fatalf("no entry of %s", kind)
	return nil
}
