// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package apiutil

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

var (
	podKind    = schema.GroupKind{Kind: "Pod"}
	widgetKind = schema.GroupKind{Group: "example.com", Kind: "Widget"}
)

// A discoveryServer answers discovery from what it has, as a RoundTripper without a port.
type discoveryServer struct {
	mu sync.Mutex
	// groups is the text of each group in an aggregated document, by name.
	groups map[string]string
	// plain is the answer to every other path, for servers without aggregated discovery; used if not nil.
	plain map[string]string
	down  error
	asked []string
}

func newDiscoveryServer() *discoveryServer {
	return &discoveryServer{groups: map[string]string{
		"":     aggregated("", "v1", "Current", "pods", "Pod", "Namespaced"),
		"apps": aggregated("apps", "v1", "Current", "deployments", "Deployment", "Namespaced"),
	}}
}

func aggregated(group, version, freshness, resource, kind, scope string) string {
	return fmt.Sprintf(`{"metadata":{"name":%q},"versions":[%s]}`, group, aggregatedVersion(version, freshness, resource, kind, scope))
}

func aggregatedVersion(version, freshness, resource, kind, scope string) string {
	return fmt.Sprintf(`{"version":%q,"freshness":%q,"resources":[{"resource":%q,"responseKind":{"kind":%q},"scope":%q,"singularResource":%q}]}`,
		version, freshness, resource, kind, scope, strings.ToLower(kind))
}

func (s *discoveryServer) set(group, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if text == "" {
		delete(s.groups, group)
		return
	}
	s.groups[group] = text
}

func (s *discoveryServer) requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.asked
	s.asked = nil
	return all
}

func (s *discoveryServer) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, r.URL.Path)
	if s.down != nil {
		return nil, s.down
	}
	if s.plain != nil {
		text, ok := s.plain[r.URL.Path]
		switch {
		case !ok:
			return respond(r, http.StatusNotFound, "text/plain", "404 page not found"), nil
		case text == "down":
			return respond(r, http.StatusServiceUnavailable, "text/plain", "no endpoints"), nil
		}
		return respond(r, http.StatusOK, "application/json", text), nil
	}
	var items []string
	for name, text := range s.groups {
		if (name == "") == (r.URL.Path == "/api") {
			items = append(items, text)
		}
	}
	return respond(r, http.StatusOK, "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList", `{"items":[`+strings.Join(items, ",")+`]}`), nil
}

func respond(r *http.Request, code int, contentType, body string) *http.Response {
	return &http.Response{
		StatusCode: code, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {contentType}}, Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)),
	}
}

func newMapper(t *testing.T, s *discoveryServer) *lazyMapper {
	t.Helper()
	m, err := NewDynamicRESTMapper(&rest.Config{Host: "https://server.test"}, &http.Client{Transport: s})
	if err != nil {
		t.Fatal(err)
	}
	return m.(*lazyMapper)
}

func TestMapperAsksOnlyWhenNeededAndOnce(t *testing.T) {
	s := newDiscoveryServer()
	m := newMapper(t, s)
	if asked := s.requests(); len(asked) != 0 {
		t.Fatalf("made with requests %v", asked)
	}
	var wait sync.WaitGroup
	for range 20 {
		wait.Go(func() {
			if _, err := m.RESTMapping(podKind, "v1"); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	mapping, err := m.RESTMapping(schema.GroupKind{Group: "apps", Kind: "Deployment"}, "v1")
	if err != nil || mapping.Resource.Resource != "deployments" || mapping.Scope.Name() != meta.RESTScopeNameNamespace {
		t.Errorf("got %v, %v", mapping, err)
	}
	if asked := s.requests(); len(asked) != 2 {
		t.Errorf("requests %v, want the two documents once", asked)
	}
	mapping.Resource.Resource = "spoiled"
	if again, _ := m.RESTMapping(schema.GroupKind{Group: "apps", Kind: "Deployment"}, "v1"); again.Resource.Resource != "deployments" {
		t.Error("a caller can change what others get")
	}
}

func TestMapperAnswersEveryQuestion(t *testing.T) {
	s := newDiscoveryServer()
	s.set("example.com", `{"metadata":{"name":"example.com"},"versions":[`+
		aggregatedVersion("v2", "Current", "widgets", "Widget", "Namespaced")+`,`+
		aggregatedVersion("v1", "Current", "widgets", "Widget", "Namespaced")+`]}`)
	m := newMapper(t, s)
	if mapping, err := m.RESTMapping(widgetKind); err != nil || mapping.Resource.Version != "v2" {
		t.Errorf("the preferred version comes first: %v, %v", mapping, err)
	}
	if mapping, err := m.RESTMapping(widgetKind, "v1"); err != nil || mapping.Resource.Version != "v1" {
		t.Errorf("the version that was asked for: %v, %v", mapping, err)
	}
	if mapping, err := m.RESTMapping(widgetKind, "v9", "v1"); err != nil || mapping.Resource.Version != "v1" {
		t.Errorf("the first version that exists: %v, %v", mapping, err)
	}
	if mappings, err := m.RESTMappings(widgetKind); err != nil || len(mappings) != 2 {
		t.Errorf("RESTMappings: %v, %v", mappings, err)
	}
	if kind, err := m.KindFor(schema.GroupVersionResource{Resource: "widgets"}); err != nil || kind.Kind != "Widget" || kind.Version != "v2" {
		t.Errorf("KindFor: %v, %v", kind, err)
	}
	if kinds, err := m.KindsFor(schema.GroupVersionResource{Resource: "widgets"}); err != nil || len(kinds) != 2 {
		t.Errorf("KindsFor: %v, %v", kinds, err)
	}
	if resource, err := m.ResourceFor(schema.GroupVersionResource{Group: "example.com", Resource: "widget"}); err != nil || resource.Resource != "widgets" {
		t.Errorf("ResourceFor: %v, %v", resource, err)
	}
	if resources, err := m.ResourcesFor(schema.GroupVersionResource{Resource: "widgets", Version: "v1"}); err != nil || len(resources) != 1 {
		t.Errorf("ResourcesFor: %v, %v", resources, err)
	}
	if singular, err := m.ResourceSingularizer("widgets"); err != nil || singular != "widget" {
		t.Errorf("ResourceSingularizer: %q, %v", singular, err)
	}
	if asked := s.requests(); len(asked) != 2 {
		t.Errorf("requests %v", asked)
	}
}

// A kind that does not exist, asked for in a loop by many, costs two requests a second.
func TestMapperIsNoStorm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newDiscoveryServer()
		m := newMapper(t, s)
		start := time.Now()
		var wait sync.WaitGroup
		for range 50 {
			wait.Go(func() {
				for time.Since(start) < 10*time.Second {
					if _, err := m.RESTMapping(widgetKind, "v1"); !meta.IsNoMatchError(err) {
						t.Errorf("got %v", err)
					}
				}
			})
		}
		wait.Wait()
		if looks := len(s.requests()) / 2; looks < 10 || looks > 13 {
			t.Errorf("%d looks in 10 s", looks)
		}
	})
}

// A CRD can be used as soon as it is installed, also within the second after a look that missed it.
func TestMapperFindsWhatWasJustInstalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newDiscoveryServer()
		m := newMapper(t, s)
		if _, err := m.RESTMapping(widgetKind, "v1"); !meta.IsNoMatchError(err) {
			t.Fatalf("got %v", err)
		}
		time.Sleep(100 * time.Millisecond)
		s.set("example.com", aggregated("example.com", "v1", "Current", "widgets", "Widget", "Namespaced"))
		start := time.Now()
		mapping, err := m.RESTMapping(widgetKind, "v1")
		if err != nil || mapping.Resource.Resource != "widgets" {
			t.Fatalf("got %v, %v", mapping, err)
		}
		if took := time.Since(start); took > refreshInterval {
			t.Errorf("took %v", took)
		}
	})
}

func TestMapperFollowsAChangingServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newDiscoveryServer()
		s.set("example.com", aggregated("example.com", "v1", "Current", "widgets", "Widget", "Namespaced"))
		m := newMapper(t, s)
		if _, err := m.RESTMapping(widgetKind, "v1"); err != nil {
			t.Fatal(err)
		}
		// A new version in a known group is found, and the old one is gone with the same look.
		s.set("example.com", aggregated("example.com", "v2", "Current", "widgets", "Widget", "Cluster"))
		if mapping, err := m.RESTMapping(widgetKind, "v2"); err != nil || mapping.Scope.Name() != meta.RESTScopeNameRoot {
			t.Fatalf("v2: %v, %v", mapping, err)
		}
		if _, err := m.RESTMapping(widgetKind, "v1"); !meta.IsNoMatchError(err) {
			t.Errorf("v1: %v", err)
		}
		// A kind comes back under another name: the client was told by the server, and tells the mapper.
		s.set("example.com", aggregated("example.com", "v2", "Current", "gadgets", "Widget", "Namespaced"))
		m.Stale(widgetKind.WithVersion("v2"))
		if mapping, err := m.RESTMapping(widgetKind, "v2"); err != nil || mapping.Resource.Resource != "gadgets" {
			t.Errorf("renamed: %v, %v", mapping, err)
		}
		// The kind disappears.
		s.set("example.com", "")
		m.Stale(widgetKind.WithVersion("v2"))
		if _, err := m.RESTMapping(widgetKind, "v2"); !meta.IsNoMatchError(err) {
			t.Errorf("gone: %v", err)
		}
		if _, err := m.RESTMapping(podKind, "v1"); err != nil {
			t.Errorf("the others are not disturbed: %v", err)
		}
		m.Reset()
		s.requests()
		if _, err := m.RESTMapping(podKind, "v1"); err != nil || len(s.requests()) != 2 {
			t.Errorf("after Reset: %v", err)
		}
	})
}

// A group whose extension server is down is not taken for one without the kind, and does not disturb the others.
func TestMapperIsolatesBrokenGroups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newDiscoveryServer()
		s.set("metrics.k8s.io", `{"metadata":{"name":"metrics.k8s.io"},"versions":[{"version":"v1beta1","freshness":"Stale"}]}`)
		m := newMapper(t, s)
		if _, err := m.RESTMapping(podKind, "v1"); err != nil {
			t.Fatal(err)
		}
		_, err := m.RESTMapping(schema.GroupKind{Group: "metrics.k8s.io", Kind: "NodeMetrics"}, "v1beta1")
		var failed *ErrResourceDiscoveryFailed
		if !errors.As(err, &failed) || meta.IsNoMatchError(err) || !errors.Is(err, errStale) {
			t.Errorf("got %v", err)
		}
		if _, err := m.RESTMapping(widgetKind, "v1"); !meta.IsNoMatchError(err) {
			t.Errorf("a missing kind of another group: %v", err)
		}
		if _, err := m.KindFor(schema.GroupVersionResource{Resource: "nodemetrics"}); !errors.As(err, &failed) {
			t.Errorf("a look-up in any group may miss because of the broken one: %v", err)
		}
	})
}

func TestMapperAsksOldServersGroupByGroup(t *testing.T) {
	s := &discoveryServer{plain: map[string]string{
		"/api":    `{"kind":"APIVersions","versions":["v1"]}`,
		"/api/v1": `{"kind":"APIResourceList","resources":[{"name":"pods","singularName":"","kind":"Pod","namespaced":true},{"name":"pods/status","kind":"Pod","namespaced":true}]}`,
		"/apis": `{"kind":"APIGroupList","groups":[
			{"name":"example.com","versions":[{"groupVersion":"example.com/v1","version":"v1"},{"groupVersion":"example.com/v2","version":"v2"}],"preferredVersion":{"version":"v2"}},
			{"name":"broken.io","versions":[{"groupVersion":"broken.io/v1","version":"v1"}],"preferredVersion":{"version":"v1"}}]}`,
		"/apis/example.com/v1": `{"resources":[{"name":"widgets","singularName":"widget","kind":"Widget","namespaced":true}]}`,
		"/apis/example.com/v2": `{"resources":[{"name":"widgets","singularName":"widget","kind":"Widget","namespaced":false}]}`,
		"/apis/broken.io/v1":   "down",
	}}
	m := newMapper(t, s)
	if mapping, err := m.RESTMapping(podKind, "v1"); err != nil || mapping.Scope.Name() != meta.RESTScopeNameNamespace {
		t.Fatalf("pod: %v, %v", mapping, err)
	}
	if mapping, err := m.RESTMapping(widgetKind); err != nil || mapping.Resource.Version != "v2" {
		t.Errorf("widget: %v, %v", mapping, err)
	}
	if asked := s.requests(); len(asked) != 6 {
		t.Errorf("requests %v", asked)
	}
	_, err := m.RESTMapping(schema.GroupKind{Group: "broken.io", Kind: "Thing"}, "v1")
	if failed := (*ErrResourceDiscoveryFailed)(nil); !errors.As(err, &failed) || len(*failed) != 1 {
		t.Errorf("broken group: %v", err)
	}
}

func TestMapperOnAnUnreachableServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newDiscoveryServer()
		s.down = errors.New("connection refused")
		m := newMapper(t, s)
		_, err := m.RESTMapping(podKind, "v1")
		if err == nil || meta.IsNoMatchError(err) || !strings.Contains(err.Error(), "connection refused") {
			t.Fatalf("got %v", err)
		}
		s.mu.Lock()
		s.down = nil
		s.mu.Unlock()
		if _, err := m.RESTMapping(podKind, "v1"); err != nil {
			t.Errorf("recovered: %v", err)
		}
	})
}

func TestMapperRefusesNil(t *testing.T) {
	if _, err := NewDynamicRESTMapper(nil, &http.Client{}); err == nil {
		t.Error("nil config")
	}
	if _, err := NewDynamicRESTMapper(&rest.Config{}, nil); err == nil {
		t.Error("nil client")
	}
}
