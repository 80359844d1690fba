// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package recorder

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// server takes events in the test's own process and remembers the requests.
type server struct {
	mu       sync.Mutex
	requests []string // "POST /path"
	bodies   []map[string]any
	fail     func(n int) int // status code for the n-th request; 0 for success
}

func (s *server) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	data, _ := io.ReadAll(req.Body)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, req.Method+" "+req.URL.Path)
	body := map[string]any{}
	_ = json.Unmarshal(data, &body)
	s.bodies = append(s.bodies, body)
	code := 201
	if s.fail != nil {
		if c := s.fail(len(s.requests)); c != 0 {
			code = c
			data, _ = json.Marshal(metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
				Status: metav1.StatusFailure, Code: int32(c), Reason: map[int]metav1.StatusReason{403: metav1.StatusReasonForbidden, 404: metav1.StatusReasonNotFound}[c]})
		}
	}
	return &http.Response{StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(bytes.NewReader(data)), Request: req}, nil
}

func (s *server) count(what string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, r := range s.requests {
		if strings.HasPrefix(r, what) {
			n++
		}
	}
	return n
}

// within runs f with recorders that send to s; the recorders end when f has.
func within(t *testing.T, s *server, f func(t *testing.T, r *Recorders)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		config := &rest.Config{Host: "http://server.test", QPS: -1, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}
		r, err := New(config, Options{HTTPClient: &http.Client{Transport: s}, Log: logr.Discard()})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		var done sync.WaitGroup
		done.Go(func() { r.Run(ctx) })
		defer done.Wait()
		defer cancel()
		f(t, r)
	})
}

func pod(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name, UID: "u-1", ResourceVersion: "7"}}
}

func TestEventOfTheNewAPI(t *testing.T) {
	s := &server{}
	within(t, s, func(t *testing.T, r *Recorders) {
		r.GetEventRecorder("web").AnnotatedEventf(pod("p"), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}},
			map[string]string{"k": "v"}, corev1.EventTypeWarning, "Failed", "Start", "no %s", strings.Repeat("é", 600))
		synctest.Wait()
	})
	var e eventsv1.Event
	data, _ := json.Marshal(s.bodies[0])
	if err := json.Unmarshal(data, &e); err != nil {
		t.Fatal(err)
	}
	if got := s.requests[0]; got != "POST /apis/events.k8s.io/v1/namespaces/a/events" {
		t.Errorf("sent %s", got)
	}
	if e.Regarding.Kind != "Pod" || e.Regarding.APIVersion != "v1" || e.Regarding.UID != "u-1" || e.Related.Name != "n" || e.Annotations["k"] != "v" {
		t.Errorf("event %+v", e)
	}
	if e.ReportingController != "web" || len(e.ReportingInstance) > maxInstance || e.Action != "Start" || e.Type != "Warning" {
		t.Errorf("event %+v", e)
	}
	if len(e.Note) > maxNote || !strings.HasSuffix(e.Note, "é") {
		t.Errorf("the note has %d bytes, or ends in half a character", len(e.Note))
	}
}

func TestRepetitionsBecomeASeries(t *testing.T) {
	s := &server{}
	within(t, s, func(t *testing.T, r *Recorders) {
		rec := r.GetEventRecorder("web")
		for range 10 {
			rec.Eventf(pod("p"), nil, corev1.EventTypeNormal, "Scaled", "Scale", "once more")
			time.Sleep(time.Second)
		}
		if got := fmt.Sprint(s.count("POST"), s.count("PATCH")); got != "1 1" {
			t.Errorf("creates and patches: %s, want 1 1", got)
		}
	})
	// The count of what came after the first patch is flushed at the end.
	if got := fmt.Sprint(s.count("POST"), s.count("PATCH")); got != "1 2" {
		t.Fatalf("creates and patches: %s, want 1 2", got)
	}
	if got := s.bodies[2]["series"].(map[string]any)["count"]; got != 10.0 {
		t.Errorf("the series counts %v, want 10", got)
	}
}

func TestSeriesEnds(t *testing.T) {
	s := &server{}
	within(t, s, func(t *testing.T, r *Recorders) {
		rec := r.GetEventRecorder("web")
		rec.Eventf(pod("p"), nil, corev1.EventTypeNormal, "Scaled", "Scale", "once")
		time.Sleep(seriesEnd + time.Second)
		rec.Eventf(pod("p"), nil, corev1.EventTypeNormal, "Scaled", "Scale", "again")
		synctest.Wait()
	})
	if got := s.count("POST"); got != 2 {
		t.Errorf("%d creates, want 2: the events are too far apart for a series", got)
	}
}

func TestSpamIsCutOff(t *testing.T) {
	for _, core := range []bool{false, true} {
		s := &server{}
		within(t, s, func(t *testing.T, r *Recorders) {
			record := func(name, eventtype, reason string) {
				if core {
					r.GetEventRecorderFor("web").Event(pod(name), eventtype, reason, "m")
				} else {
					r.GetEventRecorder("web").Eventf(pod(name), nil, eventtype, reason, "Act", "m")
				}
			}
			for i := range 200 {
				record("p", corev1.EventTypeNormal, fmt.Sprintf("Reason%d", i))
			}
			record("other", corev1.EventTypeNormal, "R")
			record("p", corev1.EventTypeWarning, "R")
			synctest.Wait()
		})
		if got := s.count("POST"); got != spamBurst+2 {
			t.Errorf("core %v: %d events were sent, want %d of one object, its warning and 1 of the other", core, got, spamBurst)
		}
	}
}

func TestCoreEventsAreCounted(t *testing.T) {
	s := &server{}
	within(t, s, func(t *testing.T, r *Recorders) {
		for range 3 {
			r.GetEventRecorderFor("web").Eventf(pod("p"), corev1.EventTypeNormal, "Scaled", "to %d", 3)
			synctest.Wait()
		}
	})
	if got := strings.Join(s.requests[:1], " "); got != "POST /api/v1/namespaces/a/events" {
		t.Errorf("sent %s", got)
	}
	if got := fmt.Sprint(s.count("POST"), s.count("PATCH")); got != "1 2" {
		t.Fatalf("creates and patches: %s, want 1 2", got)
	}
	if got := s.bodies[2]["count"]; got != 3.0 {
		t.Errorf("count is %v, want 3", got)
	}
}

// What differs only in its message is told as one event from the tenth message on, in the name of those before.
func TestCoreEventsAlikeAreAggregated(t *testing.T) {
	s := &server{}
	within(t, s, func(t *testing.T, r *Recorders) {
		for n := range 12 {
			r.GetEventRecorderFor("web").Eventf(pod("p"), corev1.EventTypeNormal, "Scaled", "to %d", n)
			synctest.Wait()
		}
	})
	if got := fmt.Sprint(s.count("POST"), s.count("PATCH")); got != "10 2" {
		t.Fatalf("creates and patches: %s, want 10 2", got)
	}
	last := s.bodies[len(s.bodies)-1]
	if last["count"] != 3.0 || last["message"] != "(combined from similar events): to 11" || last["lastTimestamp"] == nil {
		t.Errorf("the last patch is %v", last)
	}
}

// An event has a name that the server takes whatever the object is called, also one that tells of several.
func TestEventNames(t *testing.T) {
	for _, name := range []string{"p", "system:node", strings.Repeat("a", 253), strings.Repeat("a", 199) + "-" + strings.Repeat("b", 50), ""} {
		s := &server{}
		within(t, s, func(t *testing.T, r *Recorders) {
			r.GetEventRecorder("web").Eventf(pod(name), nil, corev1.EventTypeNormal, "R", "Act", "m")
			for n := range alikeEvents {
				r.GetEventRecorderFor("web").Eventf(pod(name), corev1.EventTypeNormal, "Scaled", "to %d", n)
			}
		})
		if got := s.count("POST"); got != alikeEvents+1 {
			t.Fatalf("%q: %d creates, want %d", name, got, alikeEvents+1)
		}
		for _, body := range s.bodies {
			made := body["metadata"].(map[string]any)["name"].(string)
			if wrong := validation.IsDNS1123Subdomain(made); wrong != nil {
				t.Fatalf("%q: an event is called %q: %v", name, made, wrong)
			}
		}
	}
}

// A repetition whose first event the server has dropped by now is created, with the count of all.
func TestForgottenEventIsCreatedAgain(t *testing.T) {
	for _, core := range []bool{false, true} {
		s := &server{fail: func(n int) int {
			if n == 2 {
				return 404
			}
			return 0
		}}
		within(t, s, func(t *testing.T, r *Recorders) {
			for range 2 {
				if core {
					r.GetEventRecorderFor("web").Event(pod("p"), corev1.EventTypeNormal, "R", "m")
				} else {
					r.GetEventRecorder("web").Eventf(pod("p"), nil, corev1.EventTypeNormal, "R", "Act", "m")
				}
				synctest.Wait()
			}
		})
		if got := fmt.Sprint(s.count("POST"), s.count("PATCH")); got != "2 1" {
			t.Fatalf("core %v: creates and patches: %s, want 2 1", core, got)
		}
		count := s.bodies[2]["count"]
		if !core {
			count = s.bodies[2]["series"].(map[string]any)["count"]
		}
		if count != 2.0 {
			t.Errorf("core %v: the event that was created again counts %v, want 2", core, count)
		}
	}
}

func TestRefusedEventsAreDropped(t *testing.T) {
	s := &server{fail: func(int) int { return 403 }}
	within(t, s, func(t *testing.T, r *Recorders) {
		r.GetEventRecorder("web").Eventf(pod("p"), nil, corev1.EventTypeNormal, "R", "Act", "m")
		r.GetEventRecorderFor("web").Event(pod("p"), corev1.EventTypeNormal, "R", "m")
		time.Sleep(time.Hour)
	})
	if got := len(s.requests); got != 2 {
		t.Errorf("%d requests, want 2: a refusal is final", got)
	}
}

func TestOutageIsRetried(t *testing.T) {
	s := &server{fail: func(n int) int {
		if n < 3 {
			return 503
		}
		return 0
	}}
	within(t, s, func(t *testing.T, r *Recorders) {
		r.GetEventRecorder("web").Eventf(pod("p"), nil, corev1.EventTypeNormal, "R", "Act", "m")
		time.Sleep(time.Minute)
		if got := s.count("POST"); got != 3 {
			t.Errorf("%d requests, want 3", got)
		}
	})
}

func TestFlushAndLateEvents(t *testing.T) {
	s := &server{}
	var late EventRecorder
	within(t, s, func(t *testing.T, r *Recorders) {
		late = r.GetEventRecorder("web")
		for i := range 20 {
			late.Eventf(pod(fmt.Sprint(i)), nil, corev1.EventTypeNormal, "R", "Act", "m")
		}
		// The context ends now, with all of them queued.
	})
	if got := s.count("POST"); got != 20 {
		t.Errorf("%d events were sent by the end, want 20", got)
	}
	late.Eventf(pod("p"), nil, corev1.EventTypeNormal, "R", "Act", "m")
	if got := s.count("POST"); got != 20 {
		t.Errorf("an event was sent after the end")
	}
}

func TestQueueIsBounded(t *testing.T) {
	q := newQueue(logr.Discard())
	for range queueSize + 10 {
		q.add(func(context.Context) error { return nil })
	}
	if len(q.jobs) != queueSize || q.dropped != 10 {
		t.Errorf("%d queued, %d dropped", len(q.jobs), q.dropped)
	}
}

func TestBadEvents(t *testing.T) {
	s := &server{}
	within(t, s, func(t *testing.T, r *Recorders) {
		r.GetEventRecorder("web").Eventf(nil, nil, corev1.EventTypeNormal, "R", "Act", "m")
		r.GetEventRecorder("web").Eventf(pod("p"), nil, "Strange", "R", "Act", "m")
		r.GetEventRecorderFor("web").Event((*corev1.Pod)(nil), corev1.EventTypeNormal, "R", "m")
		synctest.Wait()
	})
	if got := len(s.requests); got != 0 {
		t.Errorf("%d requests, want none", got)
	}
}

// An object that names its kind can be told of, as with client-go's recorder: the lease of an election is of a kind that the
// program's scheme has no other need of.
func TestKindOutsideTheScheme(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{}
		config := &rest.Config{Host: "http://server.test", QPS: -1, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}
		r, err := New(config, Options{HTTPClient: &http.Client{Transport: s}, Log: logr.Discard(), Scheme: runtime.NewScheme()})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		var done sync.WaitGroup
		done.Go(func() { r.Run(ctx) })
		defer done.Wait()
		defer cancel()
		named := pod("named")
		named.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
		for _, p := range []*corev1.Pod{named, pod("nameless")} {
			r.GetEventRecorder("web").Eventf(p, nil, corev1.EventTypeNormal, "R", "Act", "m")
			r.GetEventRecorderFor("web").Event(p, corev1.EventTypeNormal, "R", "m")
		}
		synctest.Wait()
		if got := s.count("POST"); got != 2 {
			t.Errorf("%d events were sent, want the 2 about the object that names its kind", got)
		}
	})
}

func TestBroadcasterOfTheProgram(t *testing.T) {
	s := &server{}
	synctest.Test(t, func(t *testing.T) {
		b := record.NewBroadcaster()
		config := &rest.Config{Host: "http://server.test", QPS: -1, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}
		r, err := New(config, Options{HTTPClient: &http.Client{Transport: s}, Log: logr.Discard(), EventBroadcaster: b})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		var done sync.WaitGroup
		done.Go(func() { r.Run(ctx) })
		synctest.Wait()
		r.GetEventRecorderFor("web").Event(pod("p"), corev1.EventTypeNormal, "R", "m")
		synctest.Wait()
		if got := s.count("POST"); got != 1 {
			t.Errorf("%d events were sent, want 1", got)
		}
		cancel()
		done.Wait()
		b.Shutdown()
	})
}
