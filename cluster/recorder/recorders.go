// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package recorder

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"

	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/client/apiutil"
)

const (
	maxInstance = 128  // characters of a reporting instance, as the API has it
	maxNote     = 1024 // bytes of a note, likewise
)

// Options are what recorders are made from.
type Options struct {
	// HTTPClient sends the events. It must not be nil.
	HTTPClient *http.Client
	// Scheme tells the kinds of typed objects. Nil means the default scheme.
	Scheme *runtime.Scheme
	// Log hears of every event at V(1) and of events that could not be sent.
	Log logr.Logger
	// EventBroadcaster, if set, takes the core/v1 events instead of the recorders' own queue.
	EventBroadcaster record.EventBroadcaster
}

// Recorders is a Provider. Events that are recorded before Run, or while the API server does not answer, wait in
// a queue of queueSize; what does not fit is dropped and counted in a log line.
type Recorders struct {
	scheme      *runtime.Scheme
	log         logr.Logger
	broadcaster record.EventBroadcaster
	host        string
	queue       *queue
	core        *coreSender
	series      *seriesSender
}

var _ Provider = (*Recorders)(nil)

// New makes recorders that send to the API server that config tells. It sends nothing before Run.
func New(config *rest.Config, options Options) (*Recorders, error) {
	r := &Recorders{scheme: options.Scheme, log: options.Log, broadcaster: options.EventBroadcaster}
	if r.scheme == nil {
		r.scheme = apiutil.DefaultScheme()
	}
	var err error
	if r.host, err = os.Hostname(); err != nil {
		return nil, fmt.Errorf("make event recorders: %w", err)
	}
	core, err := clientFor(config, options.HTTPClient, &corev1.Event{}, r.scheme)
	if err != nil {
		return nil, fmt.Errorf("make event recorders: %w", err)
	}
	events, err := clientFor(config, options.HTTPClient, &eventsv1.Event{}, r.scheme)
	if err != nil {
		return nil, fmt.Errorf("make event recorders: %w", err)
	}
	r.queue = newQueue(r.log)
	r.core, r.series = newCoreSender(core), newSeriesSender(events)
	return r, nil
}

// clientFor makes a client of one of the two event types. It asks the server for nothing: where events live is known.
func clientFor(config *rest.Config, httpClient *http.Client, event client.Object, scheme *runtime.Scheme) (client.Client, error) {
	gvk, err := apiutil.GVKForObject(event, scheme)
	if err != nil {
		// A user's scheme need not know events; they are known here.
		if gvk, err = apiutil.GVKForObject(event, nil); err != nil {
			return nil, err
		}
	}
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{gvk.GroupVersion()})
	mapper.Add(gvk, meta.RESTScopeNamespace)
	return client.New(config, client.Options{HTTPClient: httpClient, Scheme: apiutil.SchemeFor(event, gvk, scheme), Mapper: mapper})
}

// Run sends what is recorded until ctx is done, then what is still queued, within flushLimit. It runs once.
func (r *Recorders) Run(ctx context.Context) {
	if r.broadcaster != nil {
		watch := r.broadcaster.StartRecordingToSink(&sink{r.core})
		defer watch.Stop()
	}
	r.queue.run(ctx, r.series)
}

// GetEventRecorder returns a recorder of events.k8s.io/v1 events.
func (r *Recorders) GetEventRecorder(name string) EventRecorder {
	return &eventRecorder{r, name, r.instance(name)}
}

// GetEventRecorderFor returns a recorder of core/v1 events.
func (r *Recorders) GetEventRecorderFor(name string) record.EventRecorder {
	source := corev1.EventSource{Component: name, Host: r.host}
	if r.broadcaster != nil {
		// A broadcaster asks the scheme for kinds, which the default scheme does not tell.
		return &coreRecorder{r, source, r.broadcaster.NewRecorder(r.scheme, source)}
	}
	return &coreRecorder{r, source, nil}
}

// instance names this process in events.
func (r *Recorders) instance(name string) string { return cut(name+"-"+r.host, maxInstance) }

// cut shortens s to at most n bytes without breaking a character.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// refer makes a reference to an object, or returns the one that it is.
func (r *Recorders) refer(obj runtime.Object) (*corev1.ObjectReference, error) {
	if ref, ok := obj.(*corev1.ObjectReference); ok && ref != nil {
		return ref.DeepCopy(), nil
	}
	gvk, err := apiutil.GVKForObject(obj, r.scheme)
	if runtime.IsNotRegisteredError(err) && obj.GetObjectKind().GroupVersionKind().Kind != "" {
		gvk, err = obj.GetObjectKind().GroupVersionKind(), nil // not the scheme's, but the object names it
	}
	if err != nil {
		return nil, err
	}
	m, err := meta.Accessor(obj)
	if err != nil {
		return nil, err
	}
	apiVersion, kind := gvk.ToAPIVersionAndKind()
	return &corev1.ObjectReference{
		APIVersion: apiVersion, Kind: kind, Namespace: m.GetNamespace(), Name: m.GetName(),
		UID: m.GetUID(), ResourceVersion: m.GetResourceVersion(),
	}, nil
}

// namespaceFor is where an event about ref lives.
func namespaceFor(ref *corev1.ObjectReference) string {
	if ref.Namespace == "" {
		return "default"
	}
	return ref.Namespace
}

// checkType reports whether the API takes events of this type.
func checkType(eventtype string) error {
	if eventtype != corev1.EventTypeNormal && eventtype != corev1.EventTypeWarning {
		return fmt.Errorf("the event type is %q, it must be %s or %s", eventtype, corev1.EventTypeNormal, corev1.EventTypeWarning)
	}
	return nil
}

// refused logs an event that cannot be written.
func (r *Recorders) refused(err error, reason, note string) {
	r.log.Error(err, "An event is dropped", "reason", reason, "note", note)
}

// shown logs an event that is written.
func (r *Recorders) shown(ref *corev1.ObjectReference, eventtype, reason, action, note string) {
	log := r.log.V(1)
	if !log.Enabled() {
		return // events are many, and what follows is not free
	}
	log.Info(note, "type", eventtype, "object", strings.TrimPrefix(ref.Namespace+"/"+ref.Name, "/"),
		"kind", ref.Kind, "reason", reason, "action", action)
}
