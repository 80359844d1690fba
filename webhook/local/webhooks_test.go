// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package local_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/client/fake"
	"github.com/wherry-dev/wherry/client/interceptor"
	"github.com/wherry-dev/wherry/manager/healthz"
	"github.com/wherry-dev/wherry/webhook"
	"github.com/wherry-dev/wherry/webhook/local"
)

// server starts after a while.
type server struct {
	webhook.Server
	from time.Time
}

func (s *server) StartedChecker() healthz.Checker {
	return func(*http.Request) error {
		if time.Now().Before(s.from) {
			return errors.New("not yet")
		}
		return nil
	}
}

func mutating(config admissionregistrationv1.WebhookClientConfig) *admissionregistrationv1.MutatingWebhookConfiguration {
	none := admissionregistrationv1.SideEffectClassNone
	return &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "things", Labels: map[string]string{"app": "op"}},
		Webhooks: []admissionregistrationv1.MutatingWebhook{
			{Name: "one.example.com", ClientConfig: config, SideEffects: &none, AdmissionReviewVersions: []string{"v1"}},
		},
	}
}

func validating(config admissionregistrationv1.WebhookClientConfig) *admissionregistrationv1.ValidatingWebhookConfiguration {
	none := admissionregistrationv1.SideEffectClassNone
	return &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "things"},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{
			{Name: "one.example.com", ClientConfig: config, SideEffects: &none, AdmissionReviewVersions: []string{"v1"}},
		},
	}
}

func service(path *string) admissionregistrationv1.WebhookClientConfig {
	return admissionregistrationv1.WebhookClientConfig{
		CABundle: []byte("theirs"), Service: &admissionregistrationv1.ServiceReference{Namespace: "op", Name: "op", Path: path},
	}
}

// run starts w until stop is called, which gives Start's error.
func run(t *testing.T, w *local.Webhooks) (stop func() error) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Start(ctx) }()
	synctest.Wait()
	return func() error {
		cancel()
		return <-ended
	}
}

func hooks(c client.Client, objects ...client.Object) *local.Webhooks {
	return &local.Webhooks{Client: c, Server: &server{}, Address: "127.0.0.1:9443", CABundle: []byte("ours"), Configurations: objects}
}

func TestConfigurationsHoldWhileTheProcessServes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := fake.NewClientBuilder().Build()
		m, v := mutating(service(ptr.To("/mutate"))), validating(service(ptr.To("/validate")))
		w := hooks(c, m, v)
		w.Server = &server{from: time.Now().Add(time.Minute)}
		if w.NeedLeaderElection() {
			t.Error("waits for leadership")
		}
		stop := run(t, w)
		got := &admissionregistrationv1.MutatingWebhookConfiguration{}
		time.Sleep(59 * time.Second)
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(m), got); !apierrors.IsNotFound(err) {
			t.Errorf("written before the server has started: %v", err)
		}
		time.Sleep(2 * time.Second)
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(m), got); err != nil {
			t.Fatal(err)
		}
		if at := got.Webhooks[0].ClientConfig; ptr.Deref(at.URL, "") != "https://127.0.0.1:9443/mutate" || at.Service != nil || string(at.CABundle) != "ours" {
			t.Errorf("reached by %+v", at)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
		for _, o := range []client.Object{m, v} {
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(o), o.DeepCopyObject().(client.Object)); !apierrors.IsNotFound(err) {
				t.Errorf("a %T is left behind: %v", o, err)
			}
		}
		if m.Webhooks[0].ClientConfig.Service == nil || m.ResourceVersion != "" {
			t.Error("the caller's configuration was changed")
		}
	})
}

func TestPaths(t *testing.T) {
	for name, c := range map[string]struct {
		config admissionregistrationv1.WebhookClientConfig
		want   string
	}{
		"service":              {service(ptr.To("/a")), "https://127.0.0.1:9443/a"},
		"service without path": {service(nil), "https://127.0.0.1:9443/"},
		"URL":                  {admissionregistrationv1.WebhookClientConfig{URL: ptr.To("https://elsewhere:1/b/c")}, "https://127.0.0.1:9443/b/c"},
		"URL without path":     {admissionregistrationv1.WebhookClientConfig{URL: ptr.To("https://elsewhere")}, "https://127.0.0.1:9443/"},
		"nothing":              {admissionregistrationv1.WebhookClientConfig{}, "https://127.0.0.1:9443/"},
	} {
		synctest.Test(t, func(t *testing.T) {
			kept := fake.NewClientBuilder().Build()
			stop := run(t, hooks(kept, validating(c.config)))
			got := &admissionregistrationv1.ValidatingWebhookConfiguration{}
			if err := kept.Get(t.Context(), client.ObjectKey{Name: "things"}, got); err != nil || ptr.Deref(got.Webhooks[0].ClientConfig.URL, "") != c.want {
				t.Errorf("%s: %v, %+v", name, err, got.Webhooks)
			}
			if err := stop(); err != nil {
				t.Error(err)
			}
		})
	}
}

// What a killed process left behind is taken over by the next, and what somebody else has written since is theirs.
func TestTakingOverAndLettingBe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		old := mutating(admissionregistrationv1.WebhookClientConfig{URL: ptr.To("https://127.0.0.1:1/old"), CABundle: []byte("old")})
		old.Webhooks = append(old.Webhooks, old.Webhooks[0])
		old.Webhooks[1].Name = "two.example.com"
		c := fake.NewClientBuilder().WithObjects(old).Build()
		stop := run(t, hooks(c, mutating(service(ptr.To("/new")))))
		got := &admissionregistrationv1.MutatingWebhookConfiguration{}
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(old), got); err != nil {
			t.Fatal(err)
		}
		if len(got.Webhooks) != 1 || string(got.Webhooks[0].ClientConfig.CABundle) != "ours" || !strings.HasSuffix(*got.Webhooks[0].ClientConfig.URL, "/new") {
			t.Errorf("not taken over: %+v", got.Webhooks)
		}
		got.Webhooks[0].ClientConfig.CABundle = []byte("another replica")
		if err := c.Update(t.Context(), got); err != nil {
			t.Fatal(err)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(old), got); err != nil {
			t.Errorf("the other's configuration is gone: %v", err)
		}
	})
}

func TestFailures(t *testing.T) {
	no := errors.New("no permission")
	for name, c := range map[string]struct {
		object client.Object
		want   string
	}{
		"not a configuration": {&corev1.Pod{}, "a *v1.Pod is no webhook configuration"},
		"refused":             {validating(service(nil)), "write *v1.ValidatingWebhookConfiguration things: no permission"},
	} {
		synctest.Test(t, func(t *testing.T) {
			refusing := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
				Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
					if _, ok := o.(*admissionregistrationv1.ValidatingWebhookConfiguration); ok {
						return no
					}
					return c.Create(ctx, o, opts...)
				},
			})
			first := mutating(service(nil))
			err := hooks(refusing, first, c.object).Start(t.Context())
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v", name, err)
			}
			if err := refusing.Get(t.Context(), client.ObjectKeyFromObject(first), first); !apierrors.IsNotFound(err) {
				t.Errorf("%s: the first one is left behind: %v", name, err)
			}
		})
	}
}

// A server that never starts, and an API server that does not answer at the end, hold nobody for ever.
func TestLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hanging := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
			Delete: func(ctx context.Context, _ client.WithWatch, _ client.Object, _ ...client.DeleteOption) error {
				<-ctx.Done()
				return ctx.Err()
			},
		})
		never := hooks(hanging, mutating(service(nil)))
		never.Server = &server{from: time.Now().Add(1000 * time.Hour)}
		stop := run(t, never)
		time.Sleep(time.Hour)
		if err := stop(); err != nil {
			t.Error(err)
		}
		stop = run(t, hooks(hanging, mutating(service(nil))))
		began := time.Now()
		if err := stop(); err != nil || time.Since(began) > 5*time.Second {
			t.Errorf("stopped after %s with %v", time.Since(began), err)
		}
	})
}
