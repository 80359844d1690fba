// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"bytes"
	"context"
	"encoding/json"
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
	success := o.Err == nil && o.StatusCode >= 200 && o.StatusCode < 300
	if w.Verb == client.VerbDeleteAllOf {
		p.recordDeleteAllOf(w, o)
		return
	}
	ours := success && w.GroupVersionKind == p.set.entry.gvk
	key := p.reader.storeKey(client.ObjectKey{Namespace: w.Namespace, Name: w.Name})
	if w.Name == "" {
		if ours {
			if obj, ok := p.decode(w, o); ok {
				p.recordCreated(w, obj, sent)
				return
			}
		}
		if key = p.nameIn(w, o, success); key == "" {
			return // a create with a generated name that nobody was told
		}
	}
	if !ours {
		p.overlay.putHole(key)
		return
	}
	if w.Verb == client.VerbDelete && w.SubResource == "" {
		if status := statusOf(o); status != nil {
			p.recordStatus(key, status, sent)
			return
		}
		if m := p.departed(o); m != nil {
			p.bury(key, m.UID, m.ResourceVersion, sent)
			return
		}
	}
	obj, ok := p.decode(w, o)
	if !ok {
		p.overlay.putHole(key)
		return
	}
	p.recordObject(key, obj, w.Verb == client.VerbDelete && w.SubResource == "", sent)
}

// recordCreated files an object whose name the server made.
func (p *part) recordCreated(w *client.Write, obj runtime.Object, sent uint64) {
	if m, ok := obj.(metav1.Object); ok && m.GetName() != "" {
		p.recordObject(p.reader.storeKey(client.ObjectKey{Namespace: w.Namespace, Name: m.GetName()}), obj, false, sent)
	}
}

// nameIn returns the key of a created object whose name the server made.
func (p *part) nameIn(w *client.Write, o *client.Outcome, success bool) string {
	if !success {
		return ""
	}
	m := &metav1.PartialObjectMetadata{}
	if decodeObject(o.Body, o.ContentType, m) != nil || m.Name == "" {
		return ""
	}
	return p.reader.storeKey(client.ObjectKey{Namespace: w.Namespace, Name: m.Name})
}

// recordStatus files a deletion that was answered with a Status.
func (p *part) recordStatus(key string, status *metav1.Status, sent uint64) {
	if status.Details == nil || status.Details.UID == "" {
		p.overlay.putHole(key)
		return
	}
	p.bury(key, status.Details.UID, "", sent)
}

// departed returns the metadata of an object that a deletion was answered with, if it alone says that the object is gone.
// In protobuf the rest need not be decoded: deletions are many, and what they answer is not kept.
func (p *part) departed(o *client.Outcome) *metav1.PartialObjectMetadata {
	tm, ok := typeIn(o)
	if !ok || !isProtobuf(o.ContentType) || tm.GroupVersionKind() != p.set.entry.gvk {
		return nil
	}
	m := &metav1.PartialObjectMetadata{}
	if decodeObject(o.Body, o.ContentType, m) != nil || !isNumber(m.ResourceVersion) {
		return nil
	}
	if held, known := p.finalized(m, m); held || !known {
		return nil
	}
	return m
}

// recordObject files a write that was answered with the object. deleted tells that the write was its deletion.
func (p *part) recordObject(key string, in runtime.Object, deleted bool, sent uint64) {
	m, ok := in.(metav1.Object)
	if !ok || !isNumber(m.GetResourceVersion()) {
		p.overlay.putHole(key)
		return
	}
	if deleted || m.GetDeletionTimestamp() != nil {
		held, known := p.finalized(in, m)
		if !known {
			p.overlay.putHole(key)
			return
		}
		if !held {
			p.bury(key, m.GetUID(), m.GetResourceVersion(), sent)
			return
		}
	}
	hidden, known := p.scope.hides(m)
	if !known {
		p.overlay.putHole(key)
		return
	}
	version, uid := m.GetResourceVersion(), m.GetUID()
	if hidden {
		p.answer(key, nil, uid, version, sent)
		return
	}
	_, obj, err := p.prepare(in)
	if err != nil {
		p.overlay.putHole(key)
		return
	}
	p.answer(key, obj, uid, version, sent)
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

// finalized reports whether an object that is being deleted is still there: it has finalizers or its grace
// period runs. A Namespace has finalizers of its own in its spec; known is false where they cannot be seen.
func (p *part) finalized(obj runtime.Object, m metav1.Object) (held, known bool) {
	if len(m.GetFinalizers()) > 0 {
		return true, true
	}
	if grace := m.GetDeletionGracePeriodSeconds(); grace != nil && *grace > 0 {
		return true, true
	}
	if gvk := p.set.entry.gvk; gvk.Group != "" || gvk.Kind != "Namespace" {
		return false, true
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

// decode turns the body of an answer into an object as the part stores it. ok is false if the body does not
// tell all that the store would hold.
func (p *part) decode(w *client.Write, o *client.Outcome) (_ runtime.Object, ok bool) {
	switch p.set.form {
	case apiutil.Typed:
		if w.Form == apiutil.Metadata {
			return nil, false
		}
	case apiutil.Unstructured:
		if w.Form != apiutil.Unstructured {
			return nil, false // a typed answer may lack fields that the type does not know
		}
	}
	if !p.tellsKind(w, o) {
		return nil, false // of a sub-resource such as Scale
	}
	obj := p.source.item()
	if err := decodeObject(o.Body, o.ContentType, obj); err != nil {
		return nil, false
	}
	return obj, true
}

// tellsKind reports whether a body holds an object of the part's kind, or its metadata.
func (p *part) tellsKind(w *client.Write, o *client.Outcome) bool {
	tm, ok := typeIn(o)
	if !ok {
		return false
	}
	if w.Form == apiutil.Metadata && tm.Kind == "PartialObjectMetadata" {
		return true
	}
	return tm.GroupVersionKind() == p.set.entry.gvk
}

// typeIn reads the kind that a body says it is.
func typeIn(o *client.Outcome) (tm metav1.TypeMeta, ok bool) {
	if !isProtobuf(o.ContentType) {
		return tm, json.Unmarshal(o.Body, &tm) == nil
	}
	data, found := bytes.CutPrefix(o.Body, protobufMagic)
	var unknown runtime.Unknown
	if !found || unknown.Unmarshal(data) != nil {
		return tm, false
	}
	return metav1.TypeMeta{APIVersion: unknown.APIVersion, Kind: unknown.Kind}, true
}

// statusOf returns the Status that a body holds, or nil.
func statusOf(o *client.Outcome) *metav1.Status {
	tm, ok := typeIn(o)
	if !ok || tm.Kind != "Status" {
		return nil
	}
	status := &metav1.Status{}
	if !isProtobuf(o.ContentType) {
		if json.Unmarshal(o.Body, status) != nil {
			return nil
		}
		return status
	}
	var unknown runtime.Unknown
	if unknown.Unmarshal(o.Body[len(protobufMagic):]) != nil || status.Unmarshal(unknown.Raw) != nil {
		return nil
	}
	return status
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
