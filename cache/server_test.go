// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// server is a small API server in the test's own process: an http.RoundTripper that stores objects, keeps
// their history and serves lists and watches of it. Watches can be held, cut and refused, so that a test
// decides what a cache has seen.
type server struct {
	mu       sync.Mutex
	wake     chan struct{} // closed and replaced at every change
	version  int64
	oldest   int64 // versions below cannot be watched from
	uids     int
	objects  map[string]map[string]map[string]any // resource → key → object
	history  []serverEvent
	refuse   map[string]*metav1.Status // resource → answer of list and watch
	held     map[string]bool           // resource → events are kept back
	cuts     map[string]int            // resource → how often its watches were cut
	requests []string                  // "LIST pods", "WATCH pods", …
	answers  func(req *http.Request) *http.Response
	noStream bool // refuse sendInitialEvents, as old servers do
	marks    map[string]int64
}

type serverEvent struct {
	version       int64
	resource      string
	before, after map[string]any
}

// serverKinds are the kinds of the test server.
var serverKinds = map[string]struct {
	gvk        schema.GroupVersionKind
	namespaced bool
}{
	"pods":         {schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, true},
	"configmaps":   {schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, true},
	"namespaces":   {schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, false},
	"nodes":        {schema.GroupVersionKind{Version: "v1", Kind: "Node"}, false},
	"clusterroles": {schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"}, false},
	"deployments":  {schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, true},
	"widgets":      {schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}, true},
	"events":       {schema.GroupVersionKind{Version: "v1", Kind: "Event"}, true},
}

func newServer() *server {
	return &server{
		wake: make(chan struct{}), objects: map[string]map[string]map[string]any{}, refuse: map[string]*metav1.Status{},
		held: map[string]bool{}, cuts: map[string]int{}, marks: map[string]int64{}, version: 10,
	}
}

func (s *server) config() *rest.Config {
	return &rest.Config{Host: "http://server.test", Transport: s, QPS: -1}
}

func (s *server) httpClient() *http.Client { return &http.Client{Transport: s} }

// mapper knows the kinds of the server.
func (s *server) mapper() meta.RESTMapper {
	m := meta.NewDefaultRESTMapper(nil)
	for resource, k := range serverKinds {
		scope := meta.RESTScopeRoot
		if k.namespaced {
			scope = meta.RESTScopeNamespace
		}
		plural := k.gvk.GroupVersion().WithResource(resource)
		m.AddSpecific(k.gvk, plural, plural, scope)
	}
	return m
}

// changed wakes the watches. The caller holds the lock.
func (s *server) changed() {
	close(s.wake)
	s.wake = make(chan struct{})
}

// hold keeps events of a resource back from watches until release.
func (s *server) hold(resource string)    { s.set(func() { s.held[resource] = true }) }
func (s *server) release(resource string) { s.set(func() { delete(s.held, resource) }) }

// cut ends all watches of a resource. With expire they cannot go on where they were.
func (s *server) cut(resource string, expire bool) {
	s.set(func() {
		s.cuts[resource]++
		if expire {
			s.oldest = s.version + 1
		}
	})
}

// bookmark sends all watches of a resource a bookmark at the present version.
func (s *server) bookmark(resource string) {
	s.set(func() { s.version++; s.marks[resource] = s.version })
}

func (s *server) set(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
	s.changed()
}

// count returns how many requests began with what.
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

// forbid makes lists and watches of a resource fail; nil lifts it.
func (s *server) forbid(resource string, status *metav1.Status) {
	s.set(func() {
		if status == nil {
			delete(s.refuse, resource)
		} else {
			s.refuse[resource] = status
		}
	})
}

func keyIn(ns, name string) string { return strings.TrimPrefix(ns+"/"+name, "/") }

// put stores an object behind every client's back, as another writer would.
func (s *server) put(t testing.TB, obj map[string]any) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{Object: obj}
	for resource, k := range serverKinds {
		if k.gvk == u.GroupVersionKind() {
			s.mu.Lock()
			defer s.mu.Unlock()
			u = u.DeepCopy()
			s.store(resource, u)
			return u.DeepCopy()
		}
	}
	t.Fatalf("the server has no %s", u.GroupVersionKind())
	return nil
}

// remove deletes an object behind every client's back.
func (s *server) remove(resource, ns, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := keyIn(ns, name)
	if obj := s.objects[resource][key]; obj != nil {
		s.drop(resource, key, obj)
	}
}

// store writes an object. The caller holds the lock.
func (s *server) store(resource string, u *unstructured.Unstructured) {
	key := keyIn(u.GetNamespace(), u.GetName())
	before := s.objects[resource][key]
	s.version++
	if before == nil {
		s.uids++
		u.SetUID(typesUID(fmt.Sprintf("uid-%d", s.uids)))
	} else {
		u.SetUID((&unstructured.Unstructured{Object: before}).GetUID())
	}
	u.SetResourceVersion(strconv.FormatInt(s.version, 10))
	if s.objects[resource] == nil {
		s.objects[resource] = map[string]map[string]any{}
	}
	after := u.DeepCopy().Object
	s.objects[resource][key] = after
	s.history = append(s.history, serverEvent{s.version, resource, before, after})
	s.changed()
}

func (s *server) drop(resource, key string, obj map[string]any) *unstructured.Unstructured {
	s.version++
	delete(s.objects[resource], key)
	s.history = append(s.history, serverEvent{s.version, resource, obj, nil})
	s.changed()
	return &unstructured.Unstructured{Object: obj}
}

// RoundTrip serves a request.
func (s *server) RoundTrip(req *http.Request) (*http.Response, error) {
	if s.answers != nil {
		if res := s.answers(req); res != nil {
			return res, nil
		}
	}
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	r, ok := s.parse(req)
	if !ok {
		return reply(404, failure(404, metav1.StatusReasonNotFound, "the server could not find the requested resource")), nil
	}
	s.mu.Lock()
	s.requests = append(s.requests, strings.TrimSpace(fmt.Sprintf("%s %s %s %s", r.verb, r.resource, r.ns, r.name)))
	refused := s.refuse[r.resource]
	s.mu.Unlock()
	if refused != nil && (r.verb == "LIST" || r.verb == "WATCH") {
		return reply(int(refused.Code), refused), nil
	}
	switch r.verb {
	case "WATCH":
		return s.watch(req, r)
	case "LIST":
		return s.list(req, r), nil
	default:
		return s.write(req, r), nil
	}
}

type serverRequest struct {
	verb, resource, ns, name, sub string
	body                          []byte
	label                         labels.Selector
	field                         fields.Selector
}

func (s *server) parse(req *http.Request) (r serverRequest, ok bool) {
	seg := strings.Split(strings.Trim(req.URL.Path, "/"), "/")
	switch {
	case len(seg) > 2 && seg[0] == "api":
		seg = seg[2:]
	case len(seg) > 3 && seg[0] == "apis":
		seg = seg[3:]
	default:
		return r, false
	}
	if len(seg) > 2 && seg[0] == "namespaces" {
		r.ns, seg = seg[1], seg[2:]
	}
	r.resource = seg[0]
	if len(seg) > 1 {
		r.name = seg[1]
	}
	if len(seg) > 2 {
		r.sub = seg[2]
	}
	if _, ok := serverKinds[r.resource]; !ok {
		return r, false
	}
	q := req.URL.Query()
	r.label, _ = labels.Parse(q.Get("labelSelector"))
	r.field, _ = fields.ParseSelector(q.Get("fieldSelector"))
	if req.Body != nil {
		r.body, _ = io.ReadAll(req.Body)
	}
	r.verb = req.Method
	if req.Method == http.MethodGet && r.name == "" {
		r.verb = "LIST"
		if q.Get("watch") == "true" || q.Get("watch") == "1" {
			r.verb = "WATCH"
		}
	}
	return r, true
}

func (r *serverRequest) matches(obj map[string]any) bool {
	if obj == nil {
		return false
	}
	u := &unstructured.Unstructured{Object: obj}
	if r.ns != "" && u.GetNamespace() != r.ns || !r.label.Matches(labels.Set(u.GetLabels())) {
		return false
	}
	return r.field.Matches(fields.Set{"metadata.name": u.GetName(), "metadata.namespace": u.GetNamespace()})
}

func (s *server) list(req *http.Request, r serverRequest) *http.Response {
	s.mu.Lock()
	defer s.mu.Unlock()
	items := []any{}
	for _, key := range slices.Sorted(maps.Keys(s.objects[r.resource])) {
		if obj := s.objects[r.resource][key]; r.matches(obj) {
			items = append(items, s.shown(req, obj))
		}
	}
	k := serverKinds[r.resource].gvk
	list := map[string]any{
		"apiVersion": k.GroupVersion().String(), "kind": k.Kind + "List",
		"metadata": map[string]any{"resourceVersion": strconv.FormatInt(s.version, 10)}, "items": items,
	}
	return reply(200, list)
}

// shown is an object as a request wants it: whole, or its metadata.
func (s *server) shown(req *http.Request, obj map[string]any) map[string]any {
	if !strings.Contains(req.Header.Get("Accept"), "as=PartialObjectMetadata") {
		return obj
	}
	return map[string]any{"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": obj["metadata"]}
}

func (s *server) watch(req *http.Request, r serverRequest) (*http.Response, error) {
	q := req.URL.Query()
	initial := q.Get("sendInitialEvents") == "true"
	if initial && s.noStream {
		return reply(422, failure(422, metav1.StatusReasonInvalid, "sendInitialEvents is forbidden")), nil
	}
	from, _ := strconv.ParseInt(q.Get("resourceVersion"), 10, 64)
	pr, pw := io.Pipe()
	s.mu.Lock()
	cuts := s.cuts[r.resource]
	s.mu.Unlock()
	go s.serveWatch(req, r, pw, from, initial, cuts)
	return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"application/json"}}, Body: pr, Request: req}, nil
}

func (s *server) serveWatch(req *http.Request, r serverRequest, pw *io.PipeWriter, from int64, initial bool, cuts int) {
	defer pw.Close()
	go func() {
		<-req.Context().Done()
		pw.CloseWithError(req.Context().Err())
	}()
	send := func(typ string, obj any) bool {
		data, err := json.Marshal(map[string]any{"type": typ, "object": obj})
		if err == nil {
			_, err = pw.Write(append(data, '\n'))
		}
		return err == nil
	}
	mark := func(v int64, annotations map[string]any) map[string]any {
		k := serverKinds[r.resource].gvk
		obj := map[string]any{"apiVersion": k.GroupVersion().String(), "kind": k.Kind,
			"metadata": map[string]any{"resourceVersion": strconv.FormatInt(v, 10), "annotations": annotations}}
		return s.shown(req, obj)
	}
	s.mu.Lock()
	if initial {
		from = s.version
		var objs []map[string]any
		for _, key := range slices.Sorted(maps.Keys(s.objects[r.resource])) {
			if obj := s.objects[r.resource][key]; r.matches(obj) {
				objs = append(objs, s.shown(req, obj))
			}
		}
		s.mu.Unlock()
		for _, obj := range objs {
			if !send("ADDED", obj) {
				return
			}
		}
		if !send("BOOKMARK", mark(from, map[string]any{metav1.InitialEventsAnnotationKey: "true"})) {
			return
		}
		s.mu.Lock()
	} else if from < s.oldest-1 || from > s.version {
		s.mu.Unlock()
		send("ERROR", failure(410, metav1.StatusReasonExpired, "too old resource version"))
		return
	}
	marked := from
	for {
		wake := s.wake
		if s.cuts[r.resource] != cuts || req.Context().Err() != nil {
			s.mu.Unlock()
			return
		}
		var out []func() bool
		if !s.held[r.resource] {
			i, _ := slices.BinarySearchFunc(s.history, from+1, func(e serverEvent, v int64) int { return cmp.Compare(e.version, v) })
			for _, e := range s.history[i:] {
				from = e.version
				if typ, obj := r.seen(e); obj != nil {
					out = append(out, func() bool { return send(typ, s.shown(req, obj)) })
				}
			}
			if m := s.marks[r.resource]; m > marked {
				marked, from = m, max(from, m)
				out = append(out, func() bool { return send("BOOKMARK", mark(m, nil)) })
			}
		}
		s.mu.Unlock()
		for _, f := range out {
			if !f() {
				return
			}
		}
		if len(out) == 0 {
			select {
			case <-wake:
			case <-req.Context().Done():
				return
			}
		}
		s.mu.Lock()
	}
}

// seen is what a watch shows of an event, nil if nothing.
func (r *serverRequest) seen(e serverEvent) (string, map[string]any) {
	if e.resource != r.resource {
		return "", nil
	}
	was, is := r.matches(e.before), r.matches(e.after)
	switch {
	case is && was:
		return "MODIFIED", e.after
	case is:
		return "ADDED", e.after
	case was:
		u := (&unstructured.Unstructured{Object: e.before}).DeepCopy()
		u.SetResourceVersion(strconv.FormatInt(e.version, 10))
		return "DELETED", u.Object
	}
	return "", nil
}

// write serves everything that is neither a list nor a watch.
func (s *server) write(req *http.Request, r serverRequest) *http.Response {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := keyIn(r.ns, r.name)
	held := s.objects[r.resource][key]
	if r.verb != http.MethodPost && r.name != "" && held == nil {
		return reply(404, failure(404, metav1.StatusReasonNotFound, r.resource+" "+strconv.Quote(r.name)+" not found"))
	}
	switch r.verb {
	case http.MethodGet:
		return reply(200, s.shown(req, held))
	case http.MethodPost:
		u := r.object(nil)
		if u.GetName() == "" {
			u.SetName(u.GetGenerateName() + strconv.Itoa(s.uids))
		}
		u.SetNamespace(r.ns)
		if s.objects[r.resource][keyIn(r.ns, u.GetName())] != nil {
			return reply(409, failure(409, metav1.StatusReasonAlreadyExists, "already exists"))
		}
		s.store(r.resource, u)
		return reply(201, s.shown(req, u.Object))
	case http.MethodDelete:
		if r.name == "" {
			return s.deleteAll(req, r)
		}
		return s.deleteOne(r, key, held)
	}
	u := r.object(held)
	if v := u.GetResourceVersion(); r.verb == http.MethodPut && v != "" && v != (&unstructured.Unstructured{Object: held}).GetResourceVersion() {
		return reply(409, failure(409, metav1.StatusReasonConflict, "the object has been modified"))
	}
	if u.GetDeletionTimestamp() != nil && len(u.GetFinalizers()) == 0 {
		s.drop(r.resource, key, held) // answered at the old version, as real servers do
		u.SetResourceVersion((&unstructured.Unstructured{Object: held}).GetResourceVersion())
		return reply(200, s.shown(req, u.Object))
	}
	s.store(r.resource, u)
	return reply(200, s.shown(req, u.Object))
}

func (s *server) deleteOne(r serverRequest, key string, held map[string]any) *http.Response {
	u := (&unstructured.Unstructured{Object: held}).DeepCopy()
	if len(u.GetFinalizers()) > 0 {
		if u.GetDeletionTimestamp() == nil {
			now := metav1.NewTime(time.Now())
			u.SetDeletionTimestamp(&now)
			s.store(r.resource, u)
		}
		return reply(200, u.Object)
	}
	s.drop(r.resource, key, held)
	return reply(200, metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusSuccess,
		Details: &metav1.StatusDetails{Name: u.GetName(), UID: u.GetUID()},
	})
}

func (s *server) deleteAll(req *http.Request, r serverRequest) *http.Response {
	items := []any{}
	for key, obj := range maps.Clone(s.objects[r.resource]) {
		if r.matches(obj) {
			items = append(items, s.shown(req, obj))
			s.deleteOne(r, key, obj)
		}
	}
	return reply(200, map[string]any{"apiVersion": "v1", "kind": "List", "metadata": map[string]any{}, "items": items})
}

// object is what a request's body makes of the stored object.
func (r *serverRequest) object(held map[string]any) *unstructured.Unstructured {
	data := bytes.Clone(r.body)
	if r.verb == http.MethodPatch {
		before, _ := json.Marshal(held)
		data, _ = jsonpatch.MergePatch(before, data)
	}
	u := &unstructured.Unstructured{}
	if err := json.Unmarshal(data, &u.Object); err != nil {
		panic(fmt.Sprintf("the test server reads JSON only: %v", err))
	}
	u.SetGroupVersionKind(serverKinds[r.resource].gvk)
	if held != nil {
		was := &unstructured.Unstructured{Object: held}
		u.SetDeletionTimestamp(was.GetDeletionTimestamp())
		u.SetCreationTimestamp(was.GetCreationTimestamp())
	}
	return u
}

func failure(code int, reason metav1.StatusReason, message string) *metav1.Status {
	return &metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure, Code: int32(code), Reason: reason, Message: message,
	}
}

func reply(code int, obj any) *http.Response {
	data, err := json.Marshal(obj)
	if err != nil {
		panic(err)
	}
	return &http.Response{
		StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(bytes.NewReader(data)),
	}
}
