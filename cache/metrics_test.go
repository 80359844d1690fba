// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/manager/metrics"
)

// gathered returns the metrics of a kind by name.
func gathered(t *testing.T, kind string) map[string]float64 {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetName() == "kind" && l.GetValue() == kind {
					out[f.GetName()] += m.GetGauge().GetValue() + m.GetCounter().GetValue()
				}
			}
		}
	}
	return out
}

func TestMetrics(t *testing.T) {
	within(t, func(t *testing.T) {
		r := held(t, Options{}, object("configmaps", "a", "m", map[string]any{"data": map[string]any{"k": "v"}}))
		if err := r.client.Create(t.Context(), configMap("a", "n")); err != nil {
			t.Fatal(err)
		}
		r.get(t, "a", "m")
		onlyPart(t, r, "ConfigMap").overlay.putHole("a/h")
		r.get(t, "a", "h")
		got := gathered(t, "ConfigMap")
		for name, want := range map[string]float64{
			"wherry_cache_objects": 1, "wherry_cache_reads_total": 3, "wherry_cache_relists_total": 1,
			"wherry_cache_overlay_keys": 2, "wherry_cache_fetches_total": 1, "wherry_cache_live_reads_total": 0, "wherry_cache_stuck": 0,
			"wherry_cache_last_event_timestamp_seconds": float64(time.Now().Unix()),
		} {
			if got[name] != want {
				t.Errorf("%s is %v, want %v", name, got[name], want)
			}
		}
		if b := got["wherry_cache_bytes"]; b < 30 || b > 1000 {
			t.Errorf("one small ConfigMap is estimated at %v bytes", b)
		}
	})
	if got := gathered(t, "ConfigMap"); len(got) != 0 {
		t.Errorf("a cache that has ended still shows %v", got)
	}
}

func TestUnusedInformersStop(t *testing.T) {
	within(t, func(t *testing.T) {
		s := newServer()
		s.put(t, object("configmaps", "a", "m", nil))
		r := newRig(t, Options{StopUnusedInformersAfter: time.Hour}, s)
		there := func(kind string) bool {
			for _, e := range r.cache.all() {
				if e.gvk.Kind == kind {
					return true
				}
			}
			return false
		}
		want(t, mustList(t, r.client), "[a/m]")
		for range 5 {
			time.Sleep(40 * time.Minute)
			mustList(t, r.client) // in use
		}
		want(t, there("ConfigMap"), true)
		time.Sleep(2*time.Hour + time.Minute)
		synctest.Wait()
		want(t, there("ConfigMap"), false)
		want(t, mustList(t, r.client), "[a/m]") // made anew

		inf := r.informer(t, &corev1.ConfigMap{})
		reg := handle(t, inf, toolscache.ResourceEventHandlerFuncs{})
		time.Sleep(10 * time.Hour)
		want(t, there("ConfigMap"), true)
		if err := inf.RemoveEventHandler(reg); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Hour)
		want(t, inf.IsStopped(), true)

		if err := r.cache.IndexField(t.Context(), &corev1.Pod{}, "f", func(client.Object) []string { return nil }); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Hour)
		want(t, there("Pod"), true) // its index would be lost
	})
}
