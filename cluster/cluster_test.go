// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"

	"github.com/wherry-dev/wherry/cache"
	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/cluster"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// answer is a server of one pod, whatever is asked.
type answer struct{ requests []string }

func (a *answer) RoundTrip(req *http.Request) (*http.Response, error) {
	a.requests = append(a.requests, req.Method+" "+req.URL.String())
	body := `{"kind":"Pod","apiVersion":"v1","metadata":{"namespace":"a","name":"p","resourceVersion":"5"}}`
	return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(body)), Request: req}, nil
}

func withServer(a *answer) cluster.Option {
	return func(o *cluster.Options) {
		o.HTTPClient = &http.Client{Transport: a}
		o.MapperProvider = func(*rest.Config, *http.Client) (meta.RESTMapper, error) {
			m := meta.NewDefaultRESTMapper(nil)
			m.Add(corev1.SchemeGroupVersion.WithKind("Pod"), meta.RESTScopeNamespace)
			return m, nil
		}
	}
}

func ExampleNew() {
	c, err := cluster.New(&rest.Config{Host: "https://cluster.example.com"})
	if err != nil {
		fmt.Println(err)
		return
	}
	// Reads come from the cache, so they fail until the cluster is started.
	err = c.GetClient().Get(context.Background(), client.ObjectKey{Namespace: "a", Name: "p"}, &corev1.Pod{})
	fmt.Println(errors.As(err, new(*cache.ErrCacheNotStarted)))
	// Output: true
}

func TestAPIReaderNeedsNoStart(t *testing.T) {
	a := &answer{}
	c, err := cluster.New(&rest.Config{Host: "http://server.test"}, withServer(a))
	if err != nil {
		t.Fatal(err)
	}
	if len(a.requests) != 0 {
		t.Errorf("New sent %v", a.requests)
	}
	pod := &corev1.Pod{}
	if err := c.GetAPIReader().Get(t.Context(), client.ObjectKey{Namespace: "a", Name: "p"}, pod); err != nil {
		t.Fatal(err)
	}
	if pod.Name != "p" || len(a.requests) != 1 {
		t.Errorf("read %s with %v", pod.Name, a.requests)
	}
	err = c.GetClient().Get(t.Context(), client.ObjectKey{Namespace: "a", Name: "p"}, pod)
	if !errors.As(err, new(*cache.ErrCacheNotStarted)) {
		t.Errorf("a cached read before the start: %v", err)
	}
}

func TestStartEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := cluster.New(&rest.Config{Host: "http://server.test"}, withServer(&answer{}))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- c.Start(ctx) }()
		synctest.Wait()
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestOptions(t *testing.T) {
	if _, err := cluster.New(nil); err == nil {
		t.Error("no error without a config")
	}
	one, _ := cluster.New(&rest.Config{Host: "http://server.test"})
	two, _ := cluster.New(&rest.Config{Host: "http://server.test"})
	if one.GetHTTPClient() == two.GetHTTPClient() {
		t.Error("two clusters share an HTTP client")
	}
	boom := errors.New("boom")
	for name, opt := range map[string]cluster.Option{
		"mapper": func(o *cluster.Options) {
			o.MapperProvider = func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return nil, boom }
		},
		"cache": func(o *cluster.Options) {
			o.NewCache = func(*rest.Config, cache.Options) (cache.Cache, error) { return nil, boom }
		},
		"client": func(o *cluster.Options) {
			o.NewClient = func(*rest.Config, client.Options) (client.Client, error) { return nil, boom }
		},
	} {
		if _, err := cluster.New(&rest.Config{Host: "http://server.test"}, opt); !errors.Is(err, boom) {
			t.Errorf("%s: %v", name, err)
		}
	}
	var given client.Options
	_, err := cluster.New(&rest.Config{Host: "http://server.test"}, func(o *cluster.Options) {
		o.NewClient = func(c *rest.Config, opts client.Options) (client.Client, error) {
			given = opts
			return client.New(c, opts)
		}
	})
	if err != nil || given.Cache == nil || given.Cache.Reader == nil || given.Cache.EnableReadYourWritesConsistency == nil || !*given.Cache.EnableReadYourWritesConsistency {
		t.Errorf("the client is made with %+v, %v: it should read from the cache and read its own writes", given.Cache, err)
	}
}
