// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package recorder

import (
	"context"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"

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

// eventName makes a name that no other event of the object has.
func eventName(ref *corev1.ObjectReference, now time.Time) string {
	return fmt.Sprintf("%s.%x", cut(ref.Name, 200), now.UnixNano())
}

// coreSender sends core/v1 events: counted if they repeat, aggregated if they are alike, and cut off if an
// object makes too many, all as client-go does it.
type coreSender struct {
	client    client.Client
	correlate *record.EventCorrelator
}

func newCoreSender(c client.Client) *coreSender {
	return &coreSender{client: c, correlate: record.NewEventCorrelator(clock.RealClock{})}
}

// job sends an event, or the new count of an older one. The correlator is asked once, by the first try.
func (s *coreSender) job(event *corev1.Event) job {
	var send job
	return func(ctx context.Context) error {
		if send == nil {
			result, err := s.correlate.EventCorrelate(event)
			if err != nil {
				return err
			}
			if result.Skip {
				return nil
			}
			send = s.settled(result)
		}
		return send(ctx)
	}
}

func (s *coreSender) settled(result *record.EventCorrelateResult) job {
	event := result.Event
	return func(ctx context.Context) error {
		var sent *corev1.Event
		err := error(apierrors.NewNotFound(corev1.Resource("events"), event.Name))
		if event.Count > 1 && len(result.Patch) > 0 {
			sent, err = s.patch(ctx, event, result.Patch)
		}
		if apierrors.IsNotFound(err) { // new, or its time was up on the server
			created := event.DeepCopy()
			created.ResourceVersion = ""
			sent, err = created, s.client.Create(ctx, created)
		}
		if apierrors.IsAlreadyExists(err) {
			return nil // an earlier try got through
		}
		if err == nil {
			s.correlate.UpdateState(sent)
		}
		return err
	}
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
