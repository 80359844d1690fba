// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/wherry-dev/wherry/cache"
	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/client/apiutil"
	"github.com/wherry-dev/wherry/manager"
	metricsserver "github.com/wherry-dev/wherry/manager/metrics/server"
)

// emptyServer is an API server of kinds that have no objects. It counts requests by method and path.
type emptyServer struct {
	kinds map[string]schema.GroupVersionKind // path of the resource → kind

	mu    sync.Mutex
	asked map[string]int
}

// add lets the server have a kind, and gives it an object to ask for it with.
func (s *emptyServer) add(kind schema.GroupVersionKind, obj client.Object) client.Object {
	path := "/apis/" + kind.Group
	if kind.Group == "" {
		path = "/api"
	}
	s.kinds[path+"/"+kind.Version+"/"+plural(kind)] = kind
	return obj
}

func plural(kind schema.GroupVersionKind) string { return strings.ToLower(kind.Kind) + "s" }

// discovery is the aggregated document of the root /api or /apis.
func (s *emptyServer) discovery(root string) string {
	resources := map[schema.GroupVersion][]string{}
	for _, path := range slices.Sorted(maps.Keys(s.kinds)) {
		if kind := s.kinds[path]; strings.HasPrefix(path, root+"/") {
			resources[kind.GroupVersion()] = append(resources[kind.GroupVersion()], fmt.Sprintf(
				`{"resource":%q,"responseKind":{"kind":%q},"scope":"Namespaced","singularResource":""}`, plural(kind), kind.Kind))
		}
	}
	var groups []string
	for gv, all := range resources {
		groups = append(groups, fmt.Sprintf(`{"metadata":{"name":%q},"versions":[{"version":%q,"freshness":"Current","resources":[%s]}]}`,
			gv.Group, gv.Version, strings.Join(all, ",")))
	}
	return `{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","items":[` + strings.Join(groups, ",") + `]}`
}

func (s *emptyServer) RoundTrip(req *http.Request) (*http.Response, error) {
	path := req.URL.Path
	s.mu.Lock()
	s.asked[req.Method+" "+path]++
	s.mu.Unlock()
	if path == "/api" || path == "/apis" {
		return answerWith(req, http.StatusOK, "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
			io.NopCloser(strings.NewReader(s.discovery(path)))), nil
	}
	kind, ok := s.kinds[path]
	if !ok {
		return answerWith(req, http.StatusNotFound, "text/plain", io.NopCloser(strings.NewReader("404 page not found"))), nil
	}
	if strings.Contains(req.Header.Get("Accept"), "as=PartialObjectMetadata") {
		kind = metav1.SchemeGroupVersion.WithKind("PartialObjectMetadata")
	}
	if req.URL.Query().Get("watch") == "" {
		list := fmt.Sprintf(`{"apiVersion":%q,"kind":"%sList","metadata":{"resourceVersion":"5"},"items":[]}`, kind.GroupVersion(), kind.Kind)
		return answerWith(req, http.StatusOK, "application/json", io.NopCloser(strings.NewReader(list))), nil
	}
	r, w := io.Pipe()
	context.AfterFunc(req.Context(), func() { w.CloseWithError(req.Context().Err()) })
	go fmt.Fprintf(w, `{"type":"BOOKMARK","object":{"apiVersion":%q,"kind":%q,"metadata":{"resourceVersion":"5","annotations":{%q:"true"}}}}`+"\n",
		kind.GroupVersion(), kind.Kind, metav1.InitialEventsAnnotationKey)
	return answerWith(req, http.StatusOK, "application/json", r), nil
}

func answerWith(req *http.Request, code int, contentType string, body io.ReadCloser) *http.Response {
	return &http.Response{StatusCode: code, Header: http.Header{"Content-Type": {contentType}}, Body: body, Request: req}
}

// tenKinds adds ten kinds in five groups, asked for in all three forms.
func (s *emptyServer) tenKinds() []client.Object {
	core, apps, batch := corev1.SchemeGroupVersion, appsv1.SchemeGroupVersion, batchv1.SchemeGroupVersion
	custom := func(group, kind string) client.Object {
		gvk := schema.GroupVersionKind{Group: group, Version: "v1", Kind: kind}
		obj := &unstructured.Unstructured{}
		obj.SetGroupVersionKind(gvk)
		return s.add(gvk, obj)
	}
	metadata := &metav1.PartialObjectMetadata{}
	metadata.SetGroupVersionKind(apps.WithKind("StatefulSet"))
	return []client.Object{
		s.add(core.WithKind("Pod"), &corev1.Pod{}),
		s.add(core.WithKind("ConfigMap"), &corev1.ConfigMap{}),
		s.add(core.WithKind("Secret"), &corev1.Secret{}),
		s.add(core.WithKind("Service"), &corev1.Service{}),
		s.add(apps.WithKind("Deployment"), &appsv1.Deployment{}),
		s.add(apps.WithKind("ReplicaSet"), &appsv1.ReplicaSet{}),
		s.add(apps.WithKind("StatefulSet"), metadata),
		s.add(batch.WithKind("Job"), &batchv1.Job{}),
		custom("example.com", "Widget"),
		custom("other.example.com", "Gadget"),
	}
}

// Two documents tell about the whole server, so a manager asks for those, once, however many kinds it watches and reads.
func TestStartAsksForTwoDiscoveryDocuments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &emptyServer{kinds: map[string]schema.GroupVersionKind{}, asked: map[string]int{}}
		kinds := s.tenKinds()
		m, err := manager.New(&rest.Config{Host: "https://server.test", Transport: s}, manager.Options{
			Scheme:  apiutil.DefaultScheme(),
			Metrics: metricsserver.Options{BindAddress: "0"},
			Client:  client.Options{Cache: &client.CacheOptions{Unstructured: true}},
		})
		if err != nil {
			t.Fatal(err)
		}
		if len(s.asked) > 0 {
			t.Errorf("New sent %v", s.asked)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var started sync.WaitGroup
		// As controllers do: each asks for its informer in a goroutine of its own once the manager runs.
		for _, obj := range kinds {
			started.Add(1)
			if err := m.Add(manager.RunnableFunc(func(ctx context.Context) error {
				defer started.Done()
				_, err := m.GetCache().GetInformer(ctx, obj, cache.BlockUntilSynced(true))
				return err
			})); err != nil {
				t.Fatal(err)
			}
		}
		ended := make(chan error, 1)
		go func() { ended <- m.Start(ctx) }()
		started.Wait()
		for _, obj := range kinds {
			err := m.GetClient().Get(ctx, client.ObjectKey{Namespace: "default", Name: "none"}, obj)
			if client.IgnoreNotFound(err) != nil || err == nil {
				t.Errorf("read of a %T: %v", obj, err)
			}
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		s.check(t, len(kinds))
	})
}

// check says what is wrong with the requests that were sent.
func (s *emptyServer) check(t *testing.T, kinds int) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, document := range []string{"GET /api", "GET /apis"} {
		if s.asked[document] != 1 {
			t.Errorf("%s was sent %d times, want once", document, s.asked[document])
		}
		delete(s.asked, document)
	}
	for path := range s.kinds {
		if s.asked["GET "+path] == 0 {
			t.Errorf("%s was not watched", path)
		}
		delete(s.asked, "GET "+path)
	}
	if len(s.asked) > 0 {
		t.Errorf("sent beside discovery and watches: %v", s.asked)
	}
	if len(s.kinds) != kinds || kinds != 10 {
		t.Errorf("the server has %d kinds, the manager watches %d; want 10", len(s.kinds), kinds)
	}
}
