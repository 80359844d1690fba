// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/wherry-dev/wherry/client/apiutil"
)

// maxSyncWait is how long a read or a GetInformer waits, at most, for a store to be filled.
const maxSyncWait = 2 * time.Minute

// retryFloor is how old a refusal must be before a new read has the server asked again; younger ones are
// handed out as they are.
const retryFloor = time.Second

// entry is what a cache knows of one kind: its stores, its indexes and its handlers. Typed and metadata reads
// share one entry; it holds whole objects as soon as somebody asks for them. Unstructured reads have their own.
//
// Locks: deliverMu is held while a store changes and its handlers hear of it, mu guards the state below.
// deliverMu may be held when mu is taken, never the other way round. Store and overlay have locks of their own,
// taken last.
type entry struct {
	cache  *informerCache
	gvk    schema.GroupVersionKind
	family family
	gate   eventGate

	// got counts how often the informer was got.
	got atomic.Uint64

	// live is the set that is read, once all its parts are filled.
	live atomic.Pointer[set]

	deliverMu sync.Mutex
	handlers  []*registration // guarded by deliverMu
	ended     []*registration // those that were there when the entry was stopped; likewise
	// filled is closed, for each form, when a set that tells handlers of that form is filled; likewise.
	filled [apiutil.Forms]chan struct{}

	mu      sync.Mutex
	current *set          // nil while the kind is not mapped
	next    *set          // holds whole objects and takes over from current when it is filled
	changed chan struct{} // closed and replaced when anything here changes
	indexes map[string]toolscache.IndexFunc
	refused error // why the kind could not be mapped
	tries   int   // failed attempts to map it
	retry   chan struct{}
	gone    chan struct{}  // closed when the entry is stopped
	example runtime.Object // of a kind that is not installed yet
	stopped bool
	why     error           // it was stopped
	ctx     context.Context // nil until started
	cancel  context.CancelFunc
	work    sync.WaitGroup
}

// set is all stores of an entry in one form: one store for each set of namespaces.
type set struct {
	entry      *entry
	form       apiutil.Form
	mapping    *meta.RESTMapping
	namespaced bool
	scopeName  meta.RESTScopeName
	parts      []*part
	byNS       map[string]*part
	all        *part // holds all namespaces that have no part of their own; nil if others are not cached
	// metadataElsewhere says that another set tells the handlers of metadata: while this one waits to take over,
	// and for good once it was replaced. Guarded by entry.deliverMu.
	metadataElsewhere bool
	cancel            context.CancelFunc
	missing           int // parts not filled yet; guarded by entry.mu
}

func newEntry(c *informerCache, gvk schema.GroupVersionKind, fam family) *entry {
	e := &entry{
		cache: c, gvk: gvk, family: fam, gate: eventGate{},
		changed: make(chan struct{}), retry: make(chan struct{}, 1), gone: make(chan struct{}),
		indexes: map[string]toolscache.IndexFunc{},
	}
	for form := range e.filled {
		e.filled[form] = make(chan struct{})
	}
	return e
}

// eventGate is the one place that every event passes between decoder and store. It lets all pass.
type eventGate struct{}

func (eventGate) pass(*part, any) bool { return true }

// newSet makes the stores of an entry for objects of example's Go type and form.
func (e *entry) newSet(example runtime.Object, mapping *meta.RESTMapping) (*set, error) {
	form := apiutil.FormOf(example)
	s := &set{
		entry: e, form: form, mapping: mapping, byNS: map[string]*part{},
		scopeName: mapping.Scope.Name(), namespaced: mapping.Scope.Name() == meta.RESTScopeNameNamespace,
	}
	shape := shapeOf(reflect.TypeOf(example).Elem())
	scopes, err := e.cache.settings.scopes(e.gvk, e.family, s.namespaced)
	if err != nil {
		return nil, err
	}
	for _, sc := range scopes {
		p := &part{
			set: s, scope: sc, store: newStore(), overlay: newOverlay(e.cache.tick),
			kick: make(chan struct{}, 1), tm: typeMetaOf(e.gvk),
		}
		p.reader = CacheReader{indexer: p.store, groupVersionKind: e.gvk, scopeName: s.scopeName, disableDeepCopy: sc.share, shape: shape}
		if p.source, err = newSource(e.cache, example, form, e.gvk, mapping, &p.scope); err != nil {
			return nil, err
		}
		s.parts = append(s.parts, p)
		if sc.namespace == AllNamespaces {
			s.all = p
		} else {
			s.byNS[sc.namespace] = p
		}
	}
	s.missing = len(s.parts)
	return s, nil
}

// serves reports whether reads in a form can be answered from the set.
func (s *set) serves(form apiutil.Form) bool {
	return s.form == form || form == apiutil.Metadata && s.form == apiutil.Typed
}

// partFor returns the part that holds a namespace, or nil. Kinds without namespaces have one part.
func (s *set) partFor(namespace string) *part {
	if !s.namespaced {
		return s.all
	}
	if len(s.byNS) > 0 {
		if p := s.byNS[namespace]; p != nil {
			return p
		}
	}
	return s.all
}

// known lists the namespaces that are cached.
func (s *set) known() []string {
	var out []string
	for _, p := range s.parts {
		out = append(out, p.scope.namespace)
	}
	return out
}

// broadcast wakes everybody who waits for a change. The caller holds mu.
func (e *entry) broadcast() {
	close(e.changed)
	e.changed = make(chan struct{})
}

// adopt makes the set with example's form the one that is read, or, if another is being filled already, the one
// that takes over. The caller holds mu.
func (e *entry) adopt(example runtime.Object, mapping *meta.RESTMapping) error {
	s, err := e.newSet(example, mapping)
	if err != nil {
		return err
	}
	for _, p := range s.parts {
		if err := p.store.AddIndexers(e.indexesFor(s)); err != nil {
			return err
		}
	}
	if e.current == nil || e.ctx == nil { // before the start nothing was read and nobody was told anything
		e.current = s
	} else {
		s.metadataElsewhere = true
		e.next = s
	}
	if e.ctx != nil {
		e.run(s)
	}
	e.broadcast()
	return nil
}

// start begins to fill the entry. It is called once, with the cache's context.
func (e *entry) start(ctx context.Context) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ctx != nil || e.stopped {
		return
	}
	e.ctx, e.cancel = context.WithCancel(ctx)
	if e.current == nil {
		e.work.Go(func() { e.mapLater(e.ctx) })
	}
	for _, s := range []*set{e.current, e.next} {
		if s != nil {
			e.run(s)
		}
	}
}

// run starts the loops of a set. The caller holds mu.
func (e *entry) run(s *set) {
	ctx, cancel := context.WithCancel(e.ctx)
	s.cancel = cancel
	for _, p := range s.parts {
		e.work.Go(func() { p.run(ctx) })
		e.work.Go(func() { p.keep(ctx) })
	}
	if limit := e.cache.stopUnusedAfter; limit > 0 {
		e.work.Go(func() { s.watchUse(ctx, limit) })
	}
}

// watchUse has the entry stopped when nothing has used it for a while: no read, no handler, no index that a stop
// would lose.
func (s *set) watchUse(ctx context.Context, limit time.Duration) {
	e := s.entry
	tick := time.NewTicker(limit)
	defer tick.Stop()
	for last := s.uses(); ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		e.deliverMu.Lock()
		handlers := len(e.handlers)
		e.deliverMu.Unlock()
		e.mu.Lock()
		used := handlers > 0 || len(e.indexes) > 0 || s.missing > 0 || e.next != nil
		e.mu.Unlock()
		now := s.uses()
		if !used && now == last {
			e.cache.drop(e)
			return
		}
		last = now
	}
}

// uses counts the reads of the set, and the times its informer was got.
func (s *set) uses() (n uint64) {
	for _, p := range s.parts {
		n += p.counts.reads.Load()
	}
	return n + s.entry.got.Load()
}

// stop ends the entry: its loops, its handlers, and all who wait, who are told why.
func (e *entry) stop(why error) {
	e.mu.Lock()
	if e.stopped {
		e.mu.Unlock()
		return
	}
	e.stopped, e.why = true, why
	close(e.gone)
	if e.cancel != nil {
		e.cancel()
	}
	e.broadcast()
	e.mu.Unlock()
	e.work.Wait()

	e.deliverMu.Lock()
	defer e.deliverMu.Unlock()
	for _, r := range e.handlers {
		r.close()
	}
	e.ended, e.handlers = e.handlers, nil
}

// pause waits before another attempt. It returns false when ctx is done.
func (e *entry) pause(ctx context.Context, d time.Duration, kick <-chan struct{}) bool {
	timer := time.NewTimer(e.cache.jitter(d))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-kick:
		return true
	case <-timer.C:
		return true
	}
}

// attemptFailed notes that a part could not be filled or kept up to date.
func (e *entry) attemptFailed(p *part, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	p.attempts++
	p.failed, p.failedAt = err, time.Now()
	e.broadcast()
}

// need says what a caller waits for: a form, in one namespace or in all.
type need struct {
	example   runtime.Object
	form      apiutil.Form
	namespace string
	all       bool
}

// ready returns the set that serves the caller, waiting until the parts it needs are filled. It gives up when
// ctx is done, when the server refuses the kind, when the entry is stopped, or after maxSyncWait.
func (e *entry) ready(ctx context.Context, n need) (*set, error) {
	if s := e.live.Load(); s != nil && s.serves(n.form) {
		return s, nil
	}
	began := time.Now()
	limit := time.NewTimer(maxSyncWait)
	defer limit.Stop()
	seen := -1
	for {
		s, changed, err := e.look(n, &seen)
		if s != nil || err != nil {
			return s, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, syncTimeoutError(e.gvk, time.Since(began), context.Cause(ctx), e.lastError())
		case <-limit.C:
			return nil, syncTimeoutError(e.gvk, time.Since(began), errWaitedTooLong, e.lastError())
		}
	}
}

var errWaitedTooLong = errors.New("the limit of a wait has passed")

// look returns the set that has what the caller needs, or an error if it never will, or what to wait for. seen
// holds how many failed attempts there were when the caller first looked, -1 before that.
func (e *entry) look(n need, seen *int) (_ *set, changed <-chan struct{}, _ error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.stopped {
		return nil, nil, fmt.Errorf("%s: %w", e.gvk, e.why)
	}
	s, err := e.serving(n)
	if err != nil {
		return nil, nil, err
	}
	if s == nil { // not mapped yet
		return nil, e.changed, e.unmapped(seen)
	}
	attempts, missing := 0, 0
	var refused error
	var young bool
	for _, p := range s.parts {
		if !n.all && p != s.partFor(n.namespace) || p.filled.Load() {
			continue
		}
		missing++
		attempts += p.attempts
		if p.failed != nil && (refusal(p.failed) || errors.As(p.failed, new(*transformError))) {
			refused, young = p.failed, time.Since(p.failedAt) < retryFloor
		}
	}
	if missing == 0 {
		return s, nil, nil
	}
	first := *seen < 0
	if first {
		*seen = attempts
	}
	if refused != nil && (attempts > *seen || first && young) {
		return nil, nil, fmt.Errorf("cache %s: %w", e.gvk, refused)
	}
	if refused != nil && first {
		for _, p := range s.parts {
			wake(p.kick)
		}
	}
	return nil, e.changed, nil
}

// want makes sure that the entry will hold what a caller needs, without waiting for it.
func (e *entry) want(n need) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.stopped {
		return fmt.Errorf("%s: %w", e.gvk, e.why)
	}
	if e.current == nil && n.form == apiutil.Typed {
		e.example = n.example.DeepCopyObject()
	}
	_, err := e.serving(n)
	return err
}

// holds reports whether the entry has, or is about to have, what reads in a form need.
func (e *entry) holds(form apiutil.Form) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.current != nil && e.current.serves(form) || e.next != nil && e.next.serves(form)
}

// serving returns the set that serves a need, making one if the entry holds less than is asked for. The caller
// holds mu.
func (e *entry) serving(n need) (*set, error) {
	if e.current == nil || e.current.serves(n.form) {
		return e.current, nil
	}
	if e.next == nil {
		if err := e.adopt(n.example, e.current.mapping); err != nil {
			return nil, err
		}
	}
	return e.next, nil
}

// unmapped is look for a kind that the mapper does not know. The caller holds mu.
func (e *entry) unmapped(seen *int) error {
	first := *seen < 0
	if first {
		*seen = e.tries
		wake(e.retry)
	}
	if e.tries > *seen {
		return e.refused
	}
	return nil
}

// wake makes a loop that waits go on, if it does wait.
func wake(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// lastError returns why the entry is not filled or not up to date, as far as known.
func (e *entry) lastError() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.current == nil {
		return e.refused
	}
	for _, s := range []*set{e.current, e.next} {
		if s == nil {
			continue
		}
		for _, p := range s.parts {
			if p.failed != nil {
				return p.failed
			}
		}
	}
	return nil
}

// mapLater waits for a kind that is not installed and then makes its set.
func (e *entry) mapLater(ctx context.Context) {
	delay := firstRetry
	for {
		mapping, err := e.cache.mapping(e.gvk)
		e.mu.Lock()
		if err == nil && !e.stopped {
			err = e.adopt(e.example, mapping)
		}
		if err == nil || e.stopped {
			e.mu.Unlock()
			return
		}
		e.tries++
		e.refused = err
		e.broadcast()
		e.mu.Unlock()
		if !e.pause(ctx, delay, e.retry) {
			return
		}
		delay = min(delay*2, maxRefusedRetry)
	}
}

// watchError tells of a failed list or watch. client-go's own handler is not used: it paces all errors of the
// process by one global clock, so that one failing kind slows the others down.
func (e *entry) watchError(ctx context.Context, r *toolscache.Reflector, err error) {
	if handler := e.cache.watchErrorHandler; handler != nil {
		handler(ctx, r, err)
		return
	}
	log := e.cache.log.WithValues("kind", e.gvk.String())
	switch {
	case errors.Is(err, io.EOF):
	case errors.Is(err, io.ErrUnexpectedEOF), apierrors.IsResourceExpired(err), apierrors.IsGone(err):
		log.V(4).Info("A watch was closed and is started again", "reason", err.Error())
	default:
		log.Error(err, "The cache of a kind can not be filled or kept up to date; it is tried again")
	}
}
