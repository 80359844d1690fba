// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package recorder

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"

	"github.com/wherry-dev/wherry/client"
)

const (
	// seriesPeriod is how often the counts of running series are sent.
	seriesPeriod = time.Minute
	// seriesEnd is how long after its last event a series, or a single event that might become one, is over.
	seriesEnd = 6 * time.Minute
	// maxSeries bounds how many events are remembered; above it, new ones are sent without looking for repetitions.
	maxSeries = 4096
	// spamBurst and spamRate bound the events of one type that one controller may write about one object.
	spamBurst = 25
	spamRate  = 1.0 / 300
)

// eventRecorder records events.k8s.io/v1 events in the name of one controller.
type eventRecorder struct {
	recorders      *Recorders
	name, instance string
}

// Eventf records an event.
func (r *eventRecorder) Eventf(regarding, related runtime.Object, eventtype, reason, action, note string, args ...any) {
	r.AnnotatedEventf(regarding, related, nil, eventtype, reason, action, note, args...)
}

// AnnotatedEventf records an event with annotations.
func (r *eventRecorder) AnnotatedEventf(regarding, related runtime.Object, annotations map[string]string, eventtype, reason, action, note string, args ...any) {
	message := fmt.Sprintf(note, args...)
	event, err := r.event(regarding, related, eventtype)
	if err != nil {
		r.recorders.refused(err, reason, message)
		return
	}
	event.Annotations = maps.Clone(annotations)
	event.Reason, event.Action, event.Note = reason, action, cut(message, maxNote)
	r.recorders.shown(&event.Regarding, eventtype, reason, action, message)
	r.recorders.queue.add(r.recorders.series.job(event))
}

func (r *eventRecorder) event(regarding, related runtime.Object, eventtype string) (*eventsv1.Event, error) {
	if err := checkType(eventtype); err != nil {
		return nil, err
	}
	ref, err := r.recorders.refer(regarding)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	event := &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespaceFor(ref), Name: eventName(ref, now)},
		EventTime:  metav1.NewMicroTime(now), Type: eventtype, Regarding: *ref,
		ReportingController: r.name, ReportingInstance: r.instance,
	}
	if related != nil {
		if event.Related, err = r.recorders.refer(related); err != nil {
			return nil, err
		}
	}
	return event, nil
}

// seriesKey says which events are repetitions of one another.
type seriesKey struct {
	eventtype, action, reason, controller, instance string
	regarding, related                              corev1.ObjectReference
}

func keyOf(e *eventsv1.Event) seriesKey {
	k := seriesKey{
		eventtype: e.Type, action: e.Action, reason: e.Reason, controller: e.ReportingController, instance: e.ReportingInstance,
		regarding: e.Regarding,
	}
	k.regarding.ResourceVersion = ""
	if e.Related != nil {
		k.related = *e.Related
		k.related.ResourceVersion = ""
	}
	return k
}

// series is an event that was sent and may repeat.
type series struct {
	event  *eventsv1.Event
	last   time.Time
	unsent int // repetitions the server has not been told of
}

// seriesSender sends events.k8s.io/v1 events. The first of its kind is created, the second makes it a series,
// further ones only raise its count, which is sent now and then and at the end.
type seriesSender struct {
	client client.Client
	spam   *record.EventSourceObjectSpamFilter

	mu      sync.Mutex
	running map[seriesKey]*series
}

func newSeriesSender(c client.Client) *seriesSender {
	return &seriesSender{
		client: c, running: map[seriesKey]*series{},
		spam: newSpamFilter(),
	}
}

// newSpamFilter makes what cuts off the events of one source about one object. Each type has a share of its own: what is
// normal and often must not hide a warning.
func newSpamFilter() *record.EventSourceObjectSpamFilter {
	perObject := func(e *corev1.Event) string {
		return fmt.Sprintf("%s/%s/%s/%s/%s/%s", e.Type, e.Source.Component, e.InvolvedObject.Kind, e.InvolvedObject.Namespace, e.InvolvedObject.Name, e.InvolvedObject.UID)
	}
	return record.NewEventSourceObjectSpamFilter(maxSeries, spamBurst, spamRate, clock.RealClock{}, perObject)
}

// job sends an event the way that its history asks for, which is settled by the first try.
func (s *seriesSender) job(event *eventsv1.Event) job {
	var send job
	return func(ctx context.Context) error {
		if send == nil {
			send = s.settle(event)
		}
		return send(ctx)
	}
}

// settle finds out whether an event is new, makes a series or only counts.
func (s *seriesSender) settle(event *eventsv1.Event) job {
	s.mu.Lock()
	defer s.mu.Unlock()
	key, at := keyOf(event), event.EventTime.Time
	if old := s.running[key]; old != nil && at.Sub(old.last) < seriesEnd {
		old.last = at
		if old.event.Series != nil {
			old.event.Series.Count++
			old.event.Series.LastObservedTime = event.EventTime
			old.unsent++
			return func(context.Context) error { return nil }
		}
		old.event.Series = &eventsv1.EventSeries{Count: 2, LastObservedTime: event.EventTime}
		return s.update(old)
	}
	source := corev1.EventSource{Component: event.ReportingController}
	if s.spam.Filter(&corev1.Event{Type: event.Type, Source: source, InvolvedObject: event.Regarding}) {
		return func(context.Context) error { return nil }
	}
	if len(s.running) < maxSeries || s.running[key] != nil {
		s.running[key] = &series{event: event, last: at}
	}
	out := event.DeepCopy()
	return func(ctx context.Context) error { return s.create(ctx, out) }
}

func (s *seriesSender) create(ctx context.Context, event *eventsv1.Event) error {
	err := s.client.Create(ctx, event)
	if apierrors.IsAlreadyExists(err) {
		return nil // an earlier try got through
	}
	return err
}

// update sends a series' count. The caller holds the lock.
func (s *seriesSender) update(r *series) job {
	r.unsent = 0
	out := r.event.DeepCopy()
	return func(ctx context.Context) error {
		patch, err := json.Marshal(map[string]any{"series": out.Series})
		if err != nil {
			return err
		}
		err = s.client.Patch(ctx, out.DeepCopy(), client.RawPatch(types.StrategicMergePatchType, patch))
		if apierrors.IsNotFound(err) { // its time was up on the server
			return s.create(ctx, out)
		}
		return err
	}
}

// due returns what has to be sent of running series and forgets those that are over. At the end all that the
// server was not told is due.
func (s *seriesSender) due(end bool) []job {
	s.mu.Lock()
	defer s.mu.Unlock()
	var jobs []job
	for key, r := range s.running {
		if r.unsent > 0 {
			jobs = append(jobs, s.update(r))
		}
		if end || time.Since(r.last) >= seriesEnd {
			delete(s.running, key)
		}
	}
	return jobs
}
