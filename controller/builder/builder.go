// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package builder

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"

	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/client/apiutil"
	"github.com/wherry-dev/wherry/controller"
	"github.com/wherry-dev/wherry/controller/handler"
	"github.com/wherry-dev/wherry/controller/predicate"
	"github.com/wherry-dev/wherry/controller/reconcile"
	"github.com/wherry-dev/wherry/controller/source"
	"github.com/wherry-dev/wherry/manager"
)

// Builder makes a Controller.
type Builder = TypedBuilder[reconcile.Request]

// TypedBuilder makes a TypedController. It is not safe for concurrent use and
// serves for one controller.
type TypedBuilder[request comparable] struct {
	mgr        manager.Manager
	forInput   ForInput
	owns       []OwnsInput
	watches    []WatchesInput[request]
	rawSources []source.TypedSource[request]
	filters    []predicate.Predicate
	name       string
	options    controller.TypedOptions[request]
	mistakes   []error
}

// ControllerManagedBy begins a controller that the manager runs.
func ControllerManagedBy(m manager.Manager) *Builder {
	return TypedControllerManagedBy[reconcile.Request](m)
}

// TypedControllerManagedBy is ControllerManagedBy for keys of any comparable
// type.
func TypedControllerManagedBy[request comparable](m manager.Manager) *TypedBuilder[request] {
	return &TypedBuilder[request]{mgr: m}
}

// For says which kind the controller reconciles: events of its objects queue
// the object itself. It may be called once, and only if keys are
// reconcile.Request. The controller is named for the kind unless Named says
// otherwise.
func (blder *TypedBuilder[request]) For(object client.Object, opts ...ForOption) *TypedBuilder[request] {
	if blder.forInput.called {
		blder.mistake("For is called twice; a controller reconciles one kind")
		return blder
	}
	input := ForInput{object: object, called: true}
	for _, opt := range opts {
		opt.ApplyToFor(&input)
	}
	if apiutil.IsNil(object) {
		blder.mistake("the object given to For is nil")
	}
	blder.forInput = input
	return blder
}

// Owns says which kind of objects the reconciled ones own: events of an owned
// object queue its owner, if that is its controller. It needs For.
func (blder *TypedBuilder[request]) Owns(object client.Object, opts ...OwnsOption) *TypedBuilder[request] {
	input := OwnsInput{object: object}
	for _, opt := range opts {
		opt.ApplyToOwns(&input)
	}
	if apiutil.IsNil(object) {
		blder.mistake("an object given to Owns is nil")
	}
	blder.owns = append(blder.owns, input)
	return blder
}

// Watches says which other kind to watch, and which keys its events queue.
func (blder *TypedBuilder[request]) Watches(
	object client.Object,
	eventHandler handler.TypedEventHandler[client.Object, request],
	opts ...WatchesOption,
) *TypedBuilder[request] {
	input := WatchesInput[request]{object: object, handler: eventHandler}
	for _, opt := range opts {
		opt.ApplyToWatches(&input)
	}
	if apiutil.IsNil(object) {
		blder.mistake("an object given to Watches is nil")
	}
	if apiutil.IsNil(eventHandler) {
		blder.mistake(fmt.Sprintf("the handler given to Watches for %T is nil", object))
	}
	blder.watches = append(blder.watches, input)
	return blder
}

// WatchesMetadata is Watches with OnlyMetadata: the handler and the
// predicates get *metav1.PartialObjectMetadata. A cache that holds a kind as
// metadata and as whole objects serves both from one store.
func (blder *TypedBuilder[request]) WatchesMetadata(
	object client.Object,
	eventHandler handler.TypedEventHandler[client.Object, request],
	opts ...WatchesOption,
) *TypedBuilder[request] {
	return blder.Watches(object, eventHandler, append(slices.Clone(opts), OnlyMetadata)...)
}

// WatchesRawSource adds a source as it is. WithEventFilter and builder
// predicates do not apply to it.
func (blder *TypedBuilder[request]) WatchesRawSource(src source.TypedSource[request]) *TypedBuilder[request] {
	if apiutil.IsNil(src) {
		blder.mistake("a source given to WatchesRawSource is nil")
		return blder
	}
	blder.rawSources = append(blder.rawSources, src)
	return blder
}

// WithEventFilter adds a predicate to For and every Owns and Watches. It is
// asked before theirs, and judges the event's own object, not the one to
// reconcile.
func (blder *TypedBuilder[request]) WithEventFilter(p predicate.Predicate) *TypedBuilder[request] {
	if apiutil.IsNil(p) {
		blder.mistake("the predicate given to WithEventFilter is nil")
		return blder
	}
	blder.filters = append(blder.filters, p)
	return blder
}

// WithOptions sets the controller's options. Its Reconciler is replaced by
// the one given to Complete or Build.
func (blder *TypedBuilder[request]) WithOptions(options controller.TypedOptions[request]) *TypedBuilder[request] {
	blder.options = options
	return blder
}

// WithLogConstructor sets the LogConstructor of the controller's options.
func (blder *TypedBuilder[request]) WithLogConstructor(logConstructor func(*request) logr.Logger) *TypedBuilder[request] {
	blder.options.LogConstructor = logConstructor
	return blder
}

// Named names the controller; the name is a value of metric labels and log
// lines and must be unique in the manager. Default: the kind given to For, in
// lower case.
func (blder *TypedBuilder[request]) Named(name string) *TypedBuilder[request] {
	blder.name = name
	return blder
}

// Complete makes the controller and adds it to the manager.
func (blder *TypedBuilder[request]) Complete(r reconcile.TypedReconciler[request]) error {
	_, err := blder.Build(r)
	return err
}

// Build is Complete, and returns the controller.
func (blder *TypedBuilder[request]) Build(r reconcile.TypedReconciler[request]) (controller.TypedController[request], error) {
	if apiutil.IsNil(r) {
		blder.mistake("the reconciler is nil")
	}
	if apiutil.IsNil(blder.mgr) {
		blder.mistake("the manager is nil")
		return nil, blder.failed()
	}
	kind, err := blder.kind()
	if err != nil {
		blder.mistakes = append(blder.mistakes, err)
	}
	name := blder.controllerName(kind)
	sources := blder.sources()
	if err := blder.failed(); err != nil {
		return nil, err
	}
	ctrl, err := controller.NewTyped(name, blder.mgr, blder.settledOptions(r, kind))
	if err != nil {
		return nil, err
	}
	for _, src := range sources {
		if err := ctrl.Watch(src); err != nil {
			return nil, err
		}
	}
	return ctrl, nil
}

func (blder *TypedBuilder[request]) mistake(text string) {
	blder.mistakes = append(blder.mistakes, errors.New(text))
}

// failed joins the mistakes so far.
func (blder *TypedBuilder[request]) failed() error {
	if len(blder.mistakes) == 0 {
		return nil
	}
	what := "controller"
	if blder.name != "" {
		what = fmt.Sprintf("controller %q", blder.name)
	} else if !apiutil.IsNil(blder.forInput.object) {
		what = fmt.Sprintf("controller for %T", blder.forInput.object)
	}
	return fmt.Errorf("%s: %w", what, errors.Join(blder.mistakes...))
}

// kind is what For reconciles; zero without For.
func (blder *TypedBuilder[request]) kind() (schema.GroupVersionKind, error) {
	if apiutil.IsNil(blder.forInput.object) {
		return schema.GroupVersionKind{}, nil
	}
	gvk, err := apiutil.GVKForObject(blder.forInput.object, blder.mgr.GetScheme())
	if err != nil {
		return gvk, fmt.Errorf("the kind given to For: %w", err)
	}
	return gvk, nil
}

func (blder *TypedBuilder[request]) controllerName(kind schema.GroupVersionKind) string {
	if blder.name != "" {
		return blder.name
	}
	if kind.Kind == "" && !blder.forInput.called {
		blder.mistake("it has no name: call Named, or For, which names it for its kind")
	}
	return strings.ToLower(kind.Kind)
}

// settledOptions completes the options with what only the builder knows.
func (blder *TypedBuilder[request]) settledOptions(r reconcile.TypedReconciler[request], kind schema.GroupVersionKind) controller.TypedOptions[request] {
	o := blder.options
	o.Reconciler = r
	config := blder.mgr.GetControllerOptions()
	if o.MaxConcurrentReconciles == 0 && kind.Kind != "" {
		o.MaxConcurrentReconciles = config.GroupKindConcurrency[kind.GroupKind().String()]
	}
	if kind.Kind != "" && o.LogValues == nil {
		o.LogValues = kindValues[request](kind)
	}
	return o
}

// kindValues is the default of LogValues for a controller with For.
func kindValues[request comparable](kind schema.GroupVersionKind) func(*request) []any {
	return func(in *request) []any {
		values := []any{"controllerGroup", kind.Group, "controllerKind", kind.Kind}
		req, ok := any(in).(*reconcile.Request)
		if !ok || req == nil {
			return values
		}
		// The controller's own logger has the first two already.
		return []any{kind.Kind, klog.KRef(req.Namespace, req.Name), "namespace", req.Namespace, "name", req.Name}
	}
}

// sources makes all sources and notes what is wrong with them.
func (blder *TypedBuilder[request]) sources() []source.TypedSource[request] {
	if !blder.forInput.called && len(blder.owns) > 0 {
		blder.mistake("Owns is called without For, so there is no kind that could own")
	}
	if !blder.forInput.called && len(blder.owns)+len(blder.watches)+len(blder.rawSources) == 0 {
		blder.mistake("it watches nothing and would never run: call For, Owns, Watches or WatchesRawSource")
	}
	if len(blder.mistakes) > 0 {
		return nil
	}
	var sources []source.TypedSource[request]
	if blder.forInput.called {
		if h, ok := any(&handler.EnqueueRequestForObject{}).(handler.TypedEventHandler[client.Object, request]); ok {
			sources = append(sources, blder.kindSource("For", blder.forInput.object, blder.forInput.form, h, blder.forInput.predicates))
		} else {
			blder.mistake(fmt.Sprintf("For needs keys of type %s, not %s; call Watches with a handler of your own", reflect.TypeFor[reconcile.Request](), reflect.TypeFor[request]()))
		}
	}
	for _, own := range blder.owns {
		var opts []handler.OwnerOption
		if !own.everyOwner {
			opts = append(opts, handler.OnlyControllerOwner())
		}
		h, ok := any(handler.EnqueueRequestForOwner(blder.mgr.GetScheme(), blder.mgr.GetRESTMapper(), blder.forInput.object, opts...)).(handler.TypedEventHandler[client.Object, request])
		if !ok {
			blder.mistake(fmt.Sprintf("Owns needs keys of type %s, not %s; call Watches with a handler of your own", reflect.TypeFor[reconcile.Request](), reflect.TypeFor[request]()))
			continue
		}
		sources = append(sources, blder.kindSource("Owns", own.object, own.form, h, own.predicates))
	}
	for _, w := range blder.watches {
		sources = append(sources, blder.kindSource("Watches", w.object, w.form, w.handler, w.predicates))
	}
	return append(sources, blder.rawSources...)
}

// kindSource makes the source of one watched kind.
func (blder *TypedBuilder[request]) kindSource(
	call string,
	object client.Object,
	form projection,
	h handler.TypedEventHandler[client.Object, request],
	predicates []predicate.Predicate,
) source.TypedSource[request] {
	gvk, err := apiutil.GVKForObject(object, blder.mgr.GetScheme())
	if err != nil {
		blder.mistakes = append(blder.mistakes, fmt.Errorf("the kind given to %s: %w", call, err))
		return nil
	}
	if form == asMetadata {
		meta := &metav1.PartialObjectMetadata{}
		meta.SetGroupVersionKind(gvk)
		object = meta
	}
	all := append(slices.Clone(blder.filters), predicates...)
	src := source.TypedKind(blder.mgr.GetCache(), object, h, all...)
	if v, ok := src.(interface{ Validate() error }); ok {
		if err := v.Validate(); err != nil {
			blder.mistakes = append(blder.mistakes, err)
		}
	}
	return src
}
