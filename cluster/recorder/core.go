// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package recorder

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/tools/record/util"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"

	"github.com/wherry-dev/wherry/client"
)

// coreRecorder records core/v1 events in the name of one component.
type coreRecorder struct {
	recorders *Recorders
	source    corev1.EventSource
	// other takes the events instead, if the program brought a broadcaster.
	other record.EventRecorder
}

var _ record.EventRecorder = (*coreRecorder)(nil)

// Event records an event.
func (r *coreRecorder) Event(object runtime.Object, eventtype, reason, message string) {
	r.record(object, nil, eventtype, reason, message)
}

// Eventf is Event with a format.
func (r *coreRecorder) Eventf(object runtime.Object, eventtype, reason, format string, args ...any) {
	r.record(object, nil, eventtype, reason, fmt.Sprintf(format, args...))
}

// AnnotatedEventf is Eventf with annotations on the event.
func (r *coreRecorder) AnnotatedEventf(object runtime.Object, annotations map[string]string, eventtype, reason, format string, args ...any) {
	r.record(object, annotations, eventtype, reason, fmt.Sprintf(format, args...))
}

func (r *coreRecorder) record(object runtime.Object, annotations map[string]string, eventtype, reason, message string) {
	ref, err := r.recorders.refer(object)
	if err == nil {
		err = checkType(eventtype)
	}
	if err != nil {
		r.recorders.refused(err, reason, message)
		return
	}
	r.recorders.shown(ref, eventtype, reason, "", message)
	if r.other != nil {
		r.other.AnnotatedEventf(ref, annotations, eventtype, reason, "%s", message)
		return
	}
	now := time.Now()
	event := &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespaceFor(ref), Name: eventName(ref, now), Annotations: maps.Clone(annotations),
		},
		InvolvedObject: *ref, Reason: reason, Message: message, Type: eventtype, Count: 1,
		FirstTimestamp: metav1.NewTime(now), LastTimestamp: metav1.NewTime(now),
		Source: r.source, ReportingController: r.source.Component,
	}
	r.recorders.queue.add(r.recorders.core.job(event))
}

// eventName makes a name that no other event of the object has: one that tells of the object, if its own name can stand in
// that of an event. "system:node" cannot.
func eventName(ref *corev1.ObjectReference, now time.Time) string {
	return util.GenerateEventName(cut(ref.Name, 200), now.UnixNano())
}

// coreSender sends core/v1 events: counted if they repeat, aggregated if they are alike, and cut off if an
// object makes too many, by the rules of client-go's EventCorrelator. That one itself links strategicpatch, for
// patches of three fields.
type coreSender struct {
	client client.Client
	alike  *record.EventAggregator
	seen   *lru.Cache // key of the aggregator to occurrence
	spam   *record.EventSourceObjectSpamFilter
}

const (
	// alikeEvents that differ only in their message within alikeSeconds are told as one.
	alikeEvents  = 10
	alikeSeconds = 600
)

// occurrence is what was last sent of an event that may repeat.
type occurrence struct {
	name  string
	first metav1.Time
	count int32
}

func newCoreSender(c client.Client) *coreSender {
	return &coreSender{
		client: c, seen: lru.New(maxSeries), spam: newSpamFilter(),
		alike: record.NewEventAggregator(maxSeries, record.EventAggregatorByReasonFunc, record.EventAggregatorByReasonMessageFunc,
			alikeEvents, alikeSeconds, clock.RealClock{}),
	}
}

// job sends an event, or the new count of an older one. The event is counted once, by the first try.
func (s *coreSender) job(event *corev1.Event) job {
	var send job
	return func(ctx context.Context) error {
		if send == nil {
			counted := s.count(event)
			if s.spam.Filter(counted) {
				return nil
			}
			send = s.settled(counted)
		}
		return send(ctx)
	}
}

// count gives an event the name, count and first time of those it repeats. It is called by the queue's goroutine alone.
func (s *coreSender) count(event *corev1.Event) *corev1.Event {
	told, key := s.alike.EventAggregate(event)
	counted := told.DeepCopy()
	counted.Name = event.Name // what the aggregator makes of a long name is none
	if last, ok := s.seen.Get(key); ok {
		last := last.(occurrence)
		counted.Name, counted.FirstTimestamp, counted.Count = last.name, last.first, last.count+1
	}
	s.seen.Add(key, occurrence{counted.Name, counted.FirstTimestamp, counted.Count})
	return counted
}

func (s *coreSender) settled(event *corev1.Event) job {
	return func(ctx context.Context) error {
		err := error(apierrors.NewNotFound(corev1.Resource("events"), event.Name))
		if event.Count > 1 {
			err = s.recount(ctx, event)
		}
		if apierrors.IsNotFound(err) { // new, or its time was up on the server
			err = s.client.Create(ctx, event.DeepCopy())
		}
		if apierrors.IsAlreadyExists(err) {
			return nil // an earlier try got through
		}
		return err
	}
}

// recount tells the server what changes when an event repeats.
func (s *coreSender) recount(ctx context.Context, event *corev1.Event) error {
	patch, err := json.Marshal(map[string]any{"count": event.Count, "lastTimestamp": event.LastTimestamp, "message": event.Message})
	if err == nil {
		_, err = s.patch(ctx, event, patch)
	}
	return err
}

func (s *coreSender) patch(ctx context.Context, event *corev1.Event, patch []byte) (*corev1.Event, error) {
	out := event.DeepCopy()
	return out, s.client.Patch(ctx, out, client.RawPatch(types.StrategicMergePatchType, patch))
}

// sink lets a broadcaster of the program's own send through the same client.
type sink struct{ sender *coreSender }

var _ record.EventSink = (*sink)(nil)

func sinkContext() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), sendLimit)
}

// Create creates an event.
func (s *sink) Create(event *corev1.Event) (*corev1.Event, error) {
	ctx, cancel := sinkContext()
	defer cancel()
	out := event.DeepCopy()
	return out, s.sender.client.Create(ctx, out)
}

// Update replaces an event.
func (s *sink) Update(event *corev1.Event) (*corev1.Event, error) {
	ctx, cancel := sinkContext()
	defer cancel()
	out := event.DeepCopy()
	return out, s.sender.client.Update(ctx, out)
}

// Patch patches an event.
func (s *sink) Patch(event *corev1.Event, data []byte) (*corev1.Event, error) {
	ctx, cancel := sinkContext()
	defer cancel()
	return s.sender.patch(ctx, event, data)
}
