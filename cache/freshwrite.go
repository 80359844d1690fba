// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"net/http"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/client/apiutil"
)

var _ client.WriteGate = (*informerCache)(nil)

// Begin makes the cache hear of a client's writes: what the server answers is what reads show from then on.
func (c *informerCache) Begin(ctx context.Context, w client.Write) (context.Context, func(client.Outcome), error) {
	if w.DryRun || w.DisableReadYourWrites {
		return ctx, nil, nil
	}
	sent := c.tick()
	return ctx, func(o client.Outcome) { c.answered(&w, &o, sent) }, nil
}

// answered files the outcome of a write with every store that may hold the object. It runs before the caller
// hears of the outcome.
func (c *informerCache) answered(w *client.Write, o *client.Outcome, sent uint64) {
	if !o.Sent || refusedWrite(w, o) {
		return
	}
	for _, e := range c.entriesOf(w.GroupVersionKind.GroupKind()) {
		for _, p := range e.partsFor(w.Namespace) {
			p.record(w, o, sent)
		}
	}
}

// refusedWrite reports whether the server said that it did not store the write. A deletion of many objects may
// have stored some before it failed.
func refusedWrite(w *client.Write, o *client.Outcome) bool {
	return o.Err != nil && !o.Unknown && o.StatusCode < 500 && o.StatusCode != http.StatusRequestTimeout && w.Verb != client.VerbDeleteAllOf
}

// partsFor returns the parts, of all sets, that hold a namespace.
func (e *entry) partsFor(namespace string) []*part {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.stopped {
		return nil
	}
	var out []*part
	for _, s := range []*set{e.current, e.next} {
		if s == nil {
			continue
		}
		if p := s.partFor(namespace); p != nil {
			out = append(out, p)
		}
	}
	return out
}

// record makes the outcome of a write an answer, a tombstone or holes.
func (p *part) record(w *client.Write, o *client.Outcome, sent uint64) {
	if w.Verb == client.VerbDeleteAllOf {
		p.recordDeleteAllOf(w, o)
		return
	}
	var in opened
	told := o.Err == nil && o.StatusCode >= 200 && o.StatusCode < 300
	if told {
		var err error
		in, err = open(o.Body, o.ContentType)
		told = err == nil
	}
	name := w.Name
	if name == "" && told {
		name = in.name // the server made it
	}
	if name == "" {
		return // a create with a generated name that nobody was told
	}
	key := p.reader.storeKey(client.ObjectKey{Namespace: w.Namespace, Name: name})
	deletion := w.Verb == client.VerbDelete && w.SubResource == ""
	switch {
	case !told || w.GroupVersionKind != p.set.entry.gvk:
		p.overlay.putHole(key)
	case deletion && in.Kind == "Status":
		p.recordStatus(key, &in, sent)
	case deletion && p.departed(&in):
		p.bury(key, in.uid, in.version, sent)
	case !isNumber(in.version) || !p.holdsForm(w) || !p.holdsKind(w, &in):
		p.overlay.putHole(key)
	case !deletion && !in.ending && !newer(in.version, p.store.at()):
		// The event was here before the answer, as it often is: there is nothing to add, and nothing to decode.
		p.overlay.overtaken(key, p.store.at(), sent)
	default:
		p.recordObject(key, &in, deletion, sent)
	}
}

// recordStatus files a deletion that was answered with a Status.
func (p *part) recordStatus(key string, in *opened, sent uint64) {
	status := &metav1.Status{}
	if in.decode(status) != nil || status.Details == nil || status.Details.UID == "" {
		p.overlay.putHole(key)
		return
	}
	p.bury(key, status.Details.UID, "", sent)
}

// departed reports whether the metadata that a deletion was answered with says by itself that the object is gone. The rest
// need not be decoded then: deletions are many, and what they answer is not kept.
func (p *part) departed(in *opened) bool {
	return in.GroupVersionKind() == p.set.entry.gvk && isNumber(in.version) && !in.held() && !p.finalizesBySpec()
}

// recordObject files a write that was answered with the object. deleted tells that the write was its deletion.
func (p *part) recordObject(key string, in *opened, deleted bool, sent uint64) {
	obj := p.source.item()
	m, ok := obj.(metav1.Object)
	if !ok || in.decode(obj) != nil {
		p.overlay.putHole(key)
		return
	}
	if deleted || in.ending {
		held, known := p.finalized(in, obj)
		if !known {
			p.overlay.putHole(key)
			return
		}
		if !held {
			p.bury(key, in.uid, in.version, sent)
			return
		}
	}
	hidden, known := p.scope.hides(m)
	if !known {
		p.overlay.putHole(key)
		return
	}
	if hidden {
		p.answer(key, nil, in.uid, in.version, sent)
		return
	}
	_, stored, err := p.prepare(obj)
	if err != nil {
		p.overlay.putHole(key)
		return
	}
	p.answer(key, stored, in.uid, in.version, sent)
}

// answer puts an answer into the overlay and takes it out again if the store has seen as much already, as it
// often has: events come by another way than answers.
func (p *part) answer(key string, obj any, uid types.UID, version string, sent uint64) {
	p.overlay.putAnswer(key, obj, uid, version, sent)
	p.overlay.passed(key, p.store.at())
}

// bury files the end of an object.
func (p *part) bury(key string, uid types.UID, version string, sent uint64) {
	p.overlay.putTombstone(key, uid, version, uidOf(p.store.get(key)), sent)
	p.overlay.passed(key, p.store.at())
}

// held reports whether an object that is being deleted stays for now: it has finalizers or its grace period runs.
func (g *glance) held() bool { return g.finalizers > 0 || g.grace > 0 }

// finalizesBySpec reports whether the kind has finalizers that are not in the metadata: those of a Namespace are in its
// spec.
func (p *part) finalizesBySpec() bool {
	return p.set.entry.gvk.Group == "" && p.set.entry.gvk.Kind == "Namespace"
}

// finalized reports whether an object that is being deleted is still there; known is false where that cannot be seen.
func (p *part) finalized(in *opened, obj runtime.Object) (held, known bool) {
	if in.held() || !p.finalizesBySpec() {
		return in.held(), true
	}
	switch apiutil.FormOf(obj) {
	case apiutil.Typed:
		f := reflect.ValueOf(obj).Elem().FieldByName("Spec")
		if f.Kind() == reflect.Struct {
			f = f.FieldByName("Finalizers")
		}
		if f.Kind() != reflect.Slice {
			return false, false
		}
		return f.Len() > 0, true
	case apiutil.Unstructured:
		names, _, err := unstructured.NestedSlice(obj.(*unstructured.Unstructured).Object, "spec", "finalizers")
		return len(names) > 0, err == nil
	default:
		return false, false
	}
}

// holdsForm reports whether the answer to a write tells all that the part would store.
func (p *part) holdsForm(w *client.Write) bool {
	switch p.set.form {
	case apiutil.Typed:
		return w.Form != apiutil.Metadata
	case apiutil.Unstructured:
		return w.Form == apiutil.Unstructured // a typed answer may lack fields that the type does not know
	default:
		return true
	}
}

// holdsKind reports whether an answer is an object of the part's kind, or its metadata, and not one of a sub-resource
// such as Scale.
func (p *part) holdsKind(w *client.Write, in *opened) bool {
	if w.Form == apiutil.Metadata && in.Kind == "PartialObjectMetadata" {
		return true
	}
	return in.GroupVersionKind() == p.set.entry.gvk
}

// recordDeleteAllOf leaves a hole for every object that the deletion may have reached: those its answer lists
// and those known here that its namespace and selector cover. Without a list of what was deleted, the whole
// namespace is one hole: labels known here may be old, and objects unknown.
func (p *part) recordDeleteAllOf(w *client.Write, o *client.Outcome) {
	keys := map[string]bool{}
	q := &query{index: indexNames(p.set.form)}
	if p.set.namespaced && w.Namespace != "" {
		q.prefix = w.Namespace + "/"
	}
	item := func() runtime.Object { return &metav1.PartialObjectMetadata{} }
	list, err := decodeList(o.Body, o.ContentType, item)
	if err != nil || o.Err != nil {
		p.overlay.putRange(q.prefix)
		return
	}
	for _, obj := range list.Items {
		if key, err := keyOf(obj); err == nil {
			keys[key] = true
		}
	}
	if w.List != nil {
		q.selector = w.List.LabelSelector // a field selector is the server's to judge
	}
	// The overlay's own objects are as good as stored ones.
	for key, s := range p.overlay.snapshot(q.covers) {
		if s.answer != nil && s.answer.obj != nil && (q.selector == nil || matchesLabels(s.answer.obj, q.selector)) {
			keys[key] = true
		}
	}
	found, _, err := p.store.query(q)
	if err != nil {
		p.overlay.putRange(q.prefix)
	}
	for _, f := range found {
		keys[f.key] = true
	}
	for key := range keys {
		p.overlay.putHole(key)
	}
}
