// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package local_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/client/fake"
	"github.com/wherry-dev/wherry/client/interceptor"
	"github.com/wherry-dev/wherry/webhook/local"
)

const widgetsName = "widgets.example.com"

// The conversions that a definition may have, and ours for each.
const (
	viaService = `{"strategy":"Webhook","webhook":{"clientConfig":{"caBundle":"dGhlaXJz","service":{"name":"op","namespace":"op","path":"/turn","port":443}},"conversionReviewVersions":["v1beta1","v1"]}}`
	viaURL     = `{"strategy":"Webhook","webhook":{"clientConfig":{"url":"https://elsewhere:1/a/b"},"conversionReviewVersions":["v1"]}}`
	noPath     = `{"strategy":"Webhook","webhook":{"clientConfig":{"url":"https://elsewhere:1"},"conversionReviewVersions":["v1"]}}`
	none       = `{"strategy":"None"}`
)

func ourConversion(path, versions string) string {
	return `{"strategy":"Webhook","webhook":{"clientConfig":{"caBundle":"b3Vycw==","url":"https://127.0.0.1:9443` + path + `"},"conversionReviewVersions":[` + versions + `]}}`
}

// definition is a CustomResourceDefinition as far as it matters here.
func definition(t *testing.T, conversion string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	spec := `{"group":"example.com"}`
	if conversion != "" {
		spec = `{"group":"example.com","conversion":` + conversion + `}`
	}
	text := `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"` + widgetsName + `","annotations":{"a":"b"}},"spec":` + spec + `}`
	if err := json.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatal(err)
	}
	return u
}

// conversionOf gives the definition's conversion and annotations, as texts.
func conversionOf(t *testing.T, c client.Client) (conversion, annotations string) {
	t.Helper()
	u := definition(t, "")
	if err := c.Get(t.Context(), client.ObjectKey{Name: widgetsName}, u); err != nil {
		t.Fatal(err)
	}
	is, _, err := unstructured.NestedFieldNoCopy(u.Object, "spec", "conversion")
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(is)
	if err != nil {
		t.Fatal(err)
	}
	kept, err := json.Marshal(u.GetAnnotations())
	if err != nil {
		t.Fatal(err)
	}
	return string(text), string(kept)
}

func conversions(c client.Client) *local.Conversions {
	return &local.Conversions{Client: c, Server: &server{}, Address: "127.0.0.1:9443", CABundle: []byte("ours"), Definitions: []string{widgetsName}}
}

// begin starts c until stop is called, which gives Start's error.
func begin(t *testing.T, c *local.Conversions) (stop func() error) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Start(ctx) }()
	synctest.Wait()
	return func() error {
		cancel()
		return <-ended
	}
}

func TestConversionsHoldWhileTheProcessServes(t *testing.T) {
	for name, test := range map[string]struct{ own, path, versions, after string }{
		"service":          {viaService, "/turn", `"v1beta1","v1"`, viaService},
		"URL":              {viaURL, "/a/b", `"v1"`, viaURL},
		"URL without path": {noPath, "/convert", `"v1"`, noPath},
		"none":             {none, "/convert", `"v1"`, none},
		"nothing":          {"", "/convert", `"v1"`, none},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				kept := fake.NewClientBuilder().WithObjects(definition(t, test.own)).Build()
				c := conversions(kept)
				c.Server = &server{from: time.Now().Add(time.Minute)}
				stop := begin(t, c)
				ctx, cancel := context.WithTimeout(t.Context(), 59*time.Second)
				defer cancel()
				if c.WaitForConversions(ctx) {
					t.Error("written before the server has started")
				}
				time.Sleep(2 * time.Second)
				if !c.WaitForConversions(t.Context()) {
					t.Error("not written")
				}
				if got, _ := conversionOf(t, kept); got != ourConversion(test.path, test.versions) {
					t.Errorf("got  %s\nwant %s", got, ourConversion(test.path, test.versions))
				}
				if err := stop(); err != nil {
					t.Error(err)
				}
				if got, annotations := conversionOf(t, kept); got != test.after || annotations != `{"a":"b"}` {
					t.Errorf("left behind: %s, %s\nwant %s", got, annotations, test.after)
				}
			})
		})
	}
}

// The definition's own conversion is not lost when a process is killed, and one that somebody has applied since counts.
func TestConversionsAfterAKilledProcess(t *testing.T) {
	for name, test := range map[string]struct{ found, want string }{
		"as it was left":            {"", viaService},
		"applied since":             {none, none},
		"applied by others, by URL": {viaURL, viaURL},
		"applied by others":         {`{"strategy":"Webhook","webhook":{"clientConfig":{"service":{"name":"new","namespace":"op"}},"conversionReviewVersions":["v1"]}}`, ``},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if test.want == "" {
					test.want = test.found
				}
				kept := fake.NewClientBuilder().WithObjects(definition(t, viaService)).Build()
				killed := false
				dead := interceptor.NewClient(kept, interceptor.Funcs{
					Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
						if killed {
							return apierrors.NewServiceUnavailable("killed")
						}
						return c.Patch(ctx, o, p, opts...)
					},
				})
				stop := begin(t, conversions(dead))
				killed = true
				if err := stop(); err != nil {
					t.Error(err)
				}
				if test.found != "" {
					u := definition(t, "")
					if err := kept.Get(t.Context(), client.ObjectKeyFromObject(u), u); err != nil {
						t.Fatal(err)
					}
					u.Object["spec"] = definition(t, test.found).Object["spec"]
					if err := kept.Update(t.Context(), u); err != nil {
						t.Fatal(err)
					}
				}
				next := conversions(kept)
				next.CABundle, next.Address = []byte("next"), "127.0.0.1:1"
				stop = begin(t, next)
				if got, _ := conversionOf(t, kept); !strings.Contains(got, "https://127.0.0.1:1/") {
					t.Errorf("not taken over: %s", got)
				}
				if err := stop(); err != nil {
					t.Error(err)
				}
				if got, annotations := conversionOf(t, kept); got != test.want || annotations != `{"a":"b"}` {
					t.Errorf("left behind: %s, %s\nwant %s", got, annotations, test.want)
				}
			})
		})
	}
}

// A write that failed may have got through: a process that is stopped while it starts leaves nothing behind either.
func TestConversionsOfAWriteThatIsCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept := fake.NewClientBuilder().WithObjects(definition(t, none)).Build()
		ctx, cancel := context.WithCancel(t.Context())
		c := interceptor.NewClient(kept, interceptor.Funcs{
			Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
				if err := c.Patch(ctx, o, p, opts...); err != nil || ctx.Err() != nil {
					return err
				}
				if got, _ := conversionOf(t, kept); got != none {
					cancel()
				}
				return ctx.Err()
			},
		})
		if err := conversions(c).Start(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		if got, annotations := conversionOf(t, kept); got != none || annotations != `{"a":"b"}` {
			t.Errorf("left behind: %s, %s", got, annotations)
		}
	})
}

// What somebody else has written meanwhile is theirs, and a definition that is gone is no trouble.
func TestConversionsOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept := fake.NewClientBuilder().WithObjects(definition(t, none)).Build()
		stop := begin(t, conversions(kept))
		for _, change := range []func(*local.Conversions){
			func(other *local.Conversions) { other.CABundle = []byte("theirs") },
			func(other *local.Conversions) { other.Address = "127.0.0.1:1" },
		} {
			other := conversions(kept)
			change(other)
			stopOther := begin(t, other)
			want, _ := conversionOf(t, kept)
			if err := stop(); err != nil {
				t.Error(err)
			}
			if got, _ := conversionOf(t, kept); got != want {
				t.Errorf("the other's conversion is gone: %s", got)
			}
			if err := stopOther(); err != nil {
				t.Error(err)
			}
			if got, _ := conversionOf(t, kept); got != none {
				t.Errorf("left behind: %s", got)
			}
			stop = begin(t, conversions(kept))
		}
		if err := kept.Delete(t.Context(), definition(t, "")); err != nil {
			t.Fatal(err)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestConversionsFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept := fake.NewClientBuilder().WithObjects(definition(t, none)).Build()
		c := conversions(kept)
		c.Definitions = append(c.Definitions, "gadgets.example.com")
		if err := c.Start(t.Context()); !apierrors.IsNotFound(err) || !strings.Contains(err.Error(), "conversion of gadgets.example.com: ") {
			t.Errorf("got %v", err)
		}
		if got, _ := conversionOf(t, kept); got != none {
			t.Errorf("the first one is left behind: %s", got)
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if c.WaitForConversions(ended) || c.NeedLeaderElection() {
			t.Error("written, or waits for leadership")
		}
	})
}

// Another's write between ours is borne, and a server that does not answer holds nobody for ever.
func TestConversionsAtTheEnd(t *testing.T) {
	for name, test := range map[string]struct {
		fail func(ctx context.Context, n int) error
		want string
	}{
		"conflict": {func(_ context.Context, n int) error {
			if n == 2 {
				return apierrors.NewConflict(schema.GroupResource{}, widgetsName, nil)
			}
			return nil
		}, none},
		"no answer": {func(ctx context.Context, _ int) error {
			<-ctx.Done()
			return ctx.Err()
		}, ourConversion("/convert", `"v1"`)},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				second := definition(t, none)
				second.SetName("gadgets.example.com")
				kept := fake.NewClientBuilder().WithObjects(definition(t, none), second).Build()
				ending, patches := false, 0
				c := interceptor.NewClient(kept, interceptor.Funcs{
					Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
						if ending {
							patches++
							if err := test.fail(ctx, patches); err != nil {
								return err
							}
						}
						return c.Patch(ctx, o, p, opts...)
					},
				})
				ours := conversions(c)
				ours.Definitions = append(ours.Definitions, "gadgets.example.com")
				stop := begin(t, ours)
				ending = true
				began := time.Now()
				if err := stop(); err != nil || time.Since(began) > 5*time.Second {
					t.Errorf("stopped after %s with %v", time.Since(began), err)
				}
				if got, _ := conversionOf(t, kept); got != test.want {
					t.Errorf("got %s, want %s", got, test.want)
				}
			})
		})
	}
}
