// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
)

func TestOverlayIsBounded(t *testing.T) {
	within(t, func(t *testing.T) {
		r := held(t, Options{}, object("configmaps", "a", "m", nil))
		p := onlyPart(t, r, "ConfigMap")
		for i := range maxOverlay + 1 {
			p.overlay.putHole(fmt.Sprintf("a/h%d", i))
		}
		lists := r.server.count("LIST configmaps")
		want(t, r.get(t, "a", "h7") == nil, true)
		want(t, r.server.count("LIST configmaps"), lists+1)
		want(t, p.overlay.holes(), 0)
	})
}

// What is written while the first list is under way is not lost, whatever that list shows.
func TestWriteDuringTheFirstList(t *testing.T) {
	within(t, func(t *testing.T) {
		s := newServer()
		s.noStream = true
		stale := make(chan struct{})
		s.answers = func(req *http.Request) *http.Response {
			if strings.Contains(req.URL.RawQuery, "watch") || req.Method != http.MethodGet {
				return nil
			}
			r, _ := s.parse(req)
			res := s.list(req, r) // taken now, delivered later
			<-stale
			return res
		}
		r := newRig(t, Options{}, s)
		if _, err := r.cache.GetInformer(t.Context(), &corev1.ConfigMap{}, BlockUntilSynced(false)); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if err := r.client.Create(t.Context(), configMap("a", "m")); err != nil {
			t.Fatal(err)
		}
		s.hold("configmaps")
		close(stale)
		synctest.Wait()
		s.answers = nil
		want(t, mustList(t, r.client), "[a/m]")
		r.caughtUp(t)
	})
}

// A server that was restored to an older state: what was known of newer ones is void.
func TestRelistBelowTheStoreDropsTheOverlay(t *testing.T) {
	within(t, func(t *testing.T) {
		r := held(t, Options{}, object("configmaps", "a", "m", map[string]any{"data": map[string]any{"n": "1"}}))
		p := onlyPart(t, r, "ConfigMap")
		m := r.get(t, "a", "m")
		m.Data["n"] = "2"
		if err := r.client.Update(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		old := configMap("a", "m")
		old.UID, old.ResourceVersion, old.Data = m.UID, "3", map[string]string{"n": "0"}
		if err := p.Replace([]any{old}, "3"); err != nil {
			t.Fatal(err)
		}
		want(t, p.overlay.size(), 0)
		want(t, r.get(t, "a", "m").Data["n"], "0")
	})
}

func TestStuckWatchMakesReadsGoLive(t *testing.T) {
	within(t, func(t *testing.T) {
		r := held(t, Options{}, object("configmaps", "a", "m", map[string]any{"data": map[string]any{"n": "1"}}))
		m := r.get(t, "a", "m")
		m.Data["n"] = "2"
		if err := r.client.Update(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		r.server.put(t, object("configmaps", "a", "foreign", nil))
		want(t, mustList(t, r.client), "[a/m]")
		time.Sleep(overlayAge + time.Second)
		p := onlyPart(t, r, "ConfigMap")
		want(t, p.overlay.stuck.Load(), true)
		want(t, mustList(t, r.client), "[a/foreign a/m]") // the server's word
		want(t, r.get(t, "a", "foreign") != nil, true)
		r.server.release("configmaps")
		time.Sleep(overlayAge + time.Second)
		want(t, p.overlay.stuck.Load(), false)
		lists := r.server.count("LIST configmaps")
		want(t, mustList(t, r.client), "[a/foreign a/m]")
		want(t, r.server.count("LIST configmaps"), lists)
		r.caughtUp(t)
	})
}

// A hidden object gets no event: its answer leaves by age, and that is no sign of a stuck watch.
func TestHiddenAnswerLeavesQuietly(t *testing.T) {
	within(t, func(t *testing.T) {
		r := held(t, Options{DefaultLabelSelector: labels.SelectorFromSet(labels.Set{"x": "1"})})
		if err := r.client.Create(t.Context(), configMap("a", "out")); err != nil {
			t.Fatal(err)
		}
		p := onlyPart(t, r, "ConfigMap")
		want(t, p.overlay.size(), 1)
		time.Sleep(overlayAge + time.Second)
		want(t, p.overlay.size(), 0)
		want(t, p.overlay.stuck.Load(), false)
	})
}
