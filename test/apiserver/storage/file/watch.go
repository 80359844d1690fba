// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package file

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/features"
	"k8s.io/apiserver/pkg/storage"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	utilflowcontrol "k8s.io/apiserver/pkg/util/flowcontrol"
	"k8s.io/utils/ptr"
)

// Watch implements storage.Interface. The watch ends when ctx does, when it is stopped, when the store closes, or
// with an error event: 410 when the revision to start from, or the place a slow reader has got to, is no longer
// remembered. Objects are shared and encoded once for all watchers; they arrive as runtime.CacheableObject.
func (st *Storage) Watch(ctx context.Context, key string, opts storage.ListOptions) (watch.Interface, error) {
	key, err := st.key(key, opts.Recursive)
	if err != nil {
		return nil, err
	}
	rev, err := st.versioner.ParseResourceVersion(opts.ResourceVersion)
	if err != nil {
		return nil, err
	}
	if opts.ProgressNotify && st.opts.NewFunc == nil {
		return nil, apierrors.NewInternalError(errors.New("progress notification needs a function to make an empty object"))
	}
	w := &watcher{
		st: st, opts: opts, key: key, all: opts.Predicate.Empty(),
		start: int64(rev), result: make(chan watch.Event, watchBuffer), progress: make(chan struct{}, 1),
	}
	w.ctx, w.cancel = context.WithCancel(ctx)
	w.plan()
	if !st.store.spawn(w.run) {
		w.cancel()
		return nil, refused(ErrClosed)
	}
	utilflowcontrol.WatchInitialized(ctx)
	return w, nil
}

// RequestWatchProgress makes every watch with ProgressNotify tell soon how far it has got.
func (st *Storage) RequestWatchProgress(context.Context) error {
	s := st.store
	s.mu.RLock()
	defer s.mu.RUnlock()
	for w := range s.hub.progress {
		select {
		case w.progress <- struct{}{}:
		default:
		}
	}
	return nil
}

// watcher is one watch. Its goroutine reads from a tap, so it can never hold up a writer.
type watcher struct {
	st     *Storage
	opts   storage.ListOptions
	key    string
	all    bool  // everything matches
	start  int64 // the revision behind which events begin
	ctx    context.Context
	cancel context.CancelFunc
	result chan watch.Event

	initial  bool // send the present state first
	endMark  bool // and say where it ends
	progress chan struct{}
}

// Stop ends the watch. It does not wait.
func (w *watcher) Stop() { w.cancel() }

// ResultChan gives the events. It is closed when the watch has ended.
func (w *watcher) ResultChan() <-chan watch.Event { return w.result }

// plan decides what comes before the first event.
func (w *watcher) plan() {
	streaming := utilfeature.DefaultFeatureGate.Enabled(features.WatchList)
	send := w.opts.SendInitialEvents
	switch {
	case send == nil:
		w.initial = w.start == 0
	case streaming:
		w.initial = *send
		w.endMark = *send && w.opts.Predicate.AllowWatchBookmarks
	}
	if streaming && w.start == 0 && send != nil && !*send {
		w.start = w.st.store.Revision()
	}
}

func (w *watcher) run() {
	defer close(w.result)
	defer w.cancel()
	stop := context.AfterFunc(w.st.store.ctx, w.cancel)
	defer stop()
	if w.ctx.Err() != nil {
		return
	}
	if err := w.stream(); err != nil && w.ctx.Err() == nil {
		select {
		case w.result <- errorEvent(err):
		case <-w.ctx.Done():
		}
	}
}

// stream sends events until the watch ends. An error is what the client should hear last.
func (w *watcher) stream() error {
	s := w.st.store
	if w.start > s.Revision() {
		return storage.NewTooLargeResourceVersionError(uint64(w.start), uint64(s.Revision()), 1)
	}
	if w.initial {
		if err := w.sendState(); err != nil {
			return err
		}
	}
	t := s.tap(w.key, w.opts.Recursive, w.start)
	defer t.drop()
	if w.opts.ProgressNotify {
		s.mu.Lock()
		s.hub.progress[w] = struct{}{}
		s.mu.Unlock()
		defer func() {
			s.mu.Lock()
			delete(s.hub.progress, w)
			s.mu.Unlock()
		}()
	}
	marks := w.bookmarks()
	defer marks.stop()
	mark := false
	for {
		events, rev, err := t.next()
		if err != nil {
			return err
		}
		for _, e := range events {
			if err := w.sendEvent(e); err != nil {
				return err
			}
		}
		if mark && len(events) == 0 {
			mark = false
			if err := w.sendBookmark(rev, false); err != nil {
				return err
			}
		}
		if mark {
			continue // what has just been sent took time: the bookmark goes behind what came meanwhile
		}
		select {
		case <-w.ctx.Done():
			return nil
		case <-t.wake:
		case <-marks.tick:
			mark = true
		case <-marks.last:
			mark = true
		case <-w.progress:
			mark = true
		}
	}
}

// sendState sends what is there now, as if it had just been created.
func (w *watcher) sendState() error {
	v, err := w.st.store.viewAt(0, "")
	if err != nil {
		return err
	}
	send := func(v *version) bool {
		var o *object
		if o, err = w.st.sharedVersion(w.ctx, v); err != nil {
			return false
		}
		if w.matches(o) {
			err = w.send(watch.Added, o, time.Time{})
		}
		return err == nil
	}
	if w.opts.Recursive {
		v.ascend(w.key, "", send)
	} else if one := v.get(w.key); one != nil {
		send(one)
	}
	if err != nil {
		return err
	}
	w.start = v.rev
	if w.endMark {
		return w.sendBookmark(v.rev, true)
	}
	return nil
}

func (w *watcher) matches(o *object) bool {
	if w.all {
		return true
	}
	ok, err := w.opts.Predicate.Matches(o.value)
	return ok && err == nil
}

// sendEvent sends what the event means to this watcher, which may be nothing.
func (w *watcher) sendEvent(e *event) error {
	var cur, gone *object
	var err error
	if e.cur != nil {
		if cur, err = w.st.sharedVersion(w.ctx, e.cur); err != nil {
			return err
		}
	}
	if e.prev != nil && (e.cur == nil || !w.all) {
		if gone, err = w.st.shared(w.ctx, &e.gone, e.key, e.prev.value, e.rev); err != nil {
			return goneError(e, err)
		}
	}
	now := cur != nil && w.matches(cur)
	before := e.prev != nil && (w.all || w.matches(gone))
	at := time.Unix(0, e.time)
	switch {
	case now && before:
		return w.send(watch.Modified, cur, at)
	case now:
		return w.send(watch.Added, cur, at)
	case before:
		return w.send(watch.Deleted, gone, at)
	}
	return nil
}

// goneError is what a watcher hears when the last state of a deleted object cannot be read.
func goneError(e *event, err error) error {
	var u *unreadableError
	if e.kind() != deleted || !errors.As(err, &u) {
		return err
	}
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: 500, Reason: metav1.StatusReasonStoreReadError,
		Message: fmt.Sprintf("saw a DELETED event, but object data is corrupt - %v", err),
	}}
}

// send blocks until the client takes the event or the watch ends.
func (w *watcher) send(kind watch.EventType, o *object, at time.Time) error {
	var obj runtime.Object = o.value
	if w.st.share {
		obj = o.encoded()
	}
	if w.opts.RecordTimestamps && !at.IsZero() {
		obj = &timedObject{Object: obj, at: at}
	}
	return w.deliver(watch.Event{Type: kind, Object: obj})
}

func (w *watcher) deliver(e watch.Event) error {
	select {
	case w.result <- e:
		return nil
	case <-w.ctx.Done():
		return w.ctx.Err()
	}
}

// sendBookmark tells that nothing up to rev is missing.
func (w *watcher) sendBookmark(rev int64, endOfInitial bool) error {
	if w.st.opts.NewFunc == nil {
		return nil
	}
	obj := w.st.opts.NewFunc()
	if err := w.st.setRevision(obj, rev); err != nil {
		return fmt.Errorf("bookmark: %w", err)
	}
	if endOfInitial {
		if err := storage.AnnotateInitialEventsEndBookmark(obj); err != nil {
			return fmt.Errorf("bookmark: %w", err)
		}
	}
	return w.deliver(watch.Event{Type: watch.Bookmark, Object: obj})
}

// bookmarks is the timetable of a watcher's bookmarks.
type bookmarks struct {
	tick <-chan time.Time
	last <-chan time.Time // shortly before the watch's deadline, so that it can be resumed without replay
	stop func()
}

func (w *watcher) bookmarks() bookmarks {
	period := bookmarkPeriod
	switch {
	case w.opts.ProgressNotify:
		period = w.st.store.opts.ProgressPeriod
	case !w.opts.Predicate.AllowWatchBookmarks:
		return bookmarks{stop: func() {}}
	}
	ticker := time.NewTicker(period)
	b := bookmarks{tick: ticker.C, stop: ticker.Stop}
	if end, ok := w.ctx.Deadline(); ok && w.opts.Predicate.AllowWatchBookmarks {
		timer := time.NewTimer(max(0, time.Until(end)-bookmarkBeforeEnd))
		b.last = timer.C
		b.stop = func() {
			ticker.Stop()
			timer.Stop()
		}
	}
	return b
}

// errorEvent is the last thing a client hears of a watch that failed.
func errorEvent(err error) watch.Event {
	if errors.Is(err, ErrCompacted) {
		err = apierrors.NewResourceExpired("The resourceVersion for the provided watch is too old.")
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		status = apierrors.NewInternalError(err)
	}
	return watch.Event{Type: watch.Error, Object: ptr.To(status.Status())}
}

// timedObject tells a watch cache when the event was made.
type timedObject struct {
	runtime.Object
	at time.Time
}

var _ storage.WatchEventWithRecordTime = (*timedObject)(nil)

func (t *timedObject) RecordTime() time.Time  { return t.at }
func (t *timedObject) Unwrap() runtime.Object { return t.Object }
func (t *timedObject) DeepCopyObject() runtime.Object {
	return &timedObject{Object: t.Object.DeepCopyObject(), at: t.at}
}

// GetObjectMeta gives the metadata of the object itself.
func (t *timedObject) GetObjectMeta() metav1.Object {
	m, err := meta.Accessor(t.Object)
	if err != nil {
		return nil
	}
	return m
}
