// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/manager/healthz"
	"github.com/wherry-dev/wherry/manager/leaderelection"
)

func TestNewRefuses(t *testing.T) {
	taken := errors.New("address already in use")
	for _, c := range []struct {
		name   string
		change func(*Options)
		err    string
	}{
		{"a deadline longer than the lease", func(o *Options) { o.RenewDeadline = new(20 * time.Second) }, "LeaseDuration 15s must be greater than RenewDeadline 20s"},
		{"an unknown lock", func(o *Options) { o.LeaderElectionResourceLock = "configmaps" }, `unknown resource lock "configmaps"`},
		{"no ID", func(o *Options) { o.LeaderElectionID = "" }, "LeaderElectionID must be configured"},
		{"no namespace", func(o *Options) { o.LeaderElectionNamespace = "" }, "set LeaderElectionNamespace"},
		{"one path for both probes", func(o *Options) { o.LivenessEndpointName, o.ReadinessEndpointName = "x", "/x/" }, "share the path /x"},
		{"a probe port in use", func(o *Options) {
			o.HealthProbeBindAddress = ":1"
			o.listen = func(string) (net.Listener, error) { return nil, taken }
		}, "health probe server: error listening on :1: address already in use"},
		{"a metrics handler at /metrics", func(o *Options) {
			o.Metrics.BindAddress, o.Metrics.ExtraHandlers = ":1", map[string]http.Handler{"/metrics": http.NotFoundHandler()}
		}, "/metrics"},
	} {
		w := &world{}
		o := w.electing()
		c.change(&o)
		if m, err := New(w.config(), o); m != nil || err == nil || !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: error %v, want %q", c.name, err, c.err)
		}
	}
	if _, err := New(nil, Options{}); err == nil {
		t.Error("made without a config")
	}
}

func TestNewLeavesNoListenerOpenWhenItFails(t *testing.T) {
	w, l := &world{}, newMemListener()
	o := w.options()
	o.HealthProbeBindAddress, o.PprofBindAddress = ":1", ":2"
	o.listen = func(address string) (net.Listener, error) {
		if address == ":1" {
			return l, nil
		}
		return nil, errors.New("taken")
	}
	if _, err := New(w.config(), o); err == nil || !strings.Contains(err.Error(), "pprof") {
		t.Errorf("error: %v", err)
	}
	if !l.isClosed() {
		t.Error("the probes' listener is open")
	}
}

func TestStartThatIsOverAtOnceFreesThePorts(t *testing.T) {
	w, l := &world{}, newMemListener()
	o := w.electing()
	o.HealthProbeBindAddress, o.listen = ":1", func(string) (net.Listener, error) { return l, nil }
	m, err := New(w.config(), o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := m.Start(ctx); err != nil {
		t.Error(err)
	}
	if !l.isClosed() {
		t.Error("the probes' listener is open")
	}
}

func TestParts(t *testing.T) {
	w := &world{}
	config := w.config()
	a, err := New(config, w.electing())
	if err != nil {
		t.Fatal(err)
	}
	b, err := New(config, w.options())
	if err != nil {
		t.Fatal(err)
	}
	if config.WrapTransport != nil {
		t.Error("the caller's config was changed")
	}
	for _, h := range []*http.Client{a.GetHTTPClient(), b.GetHTTPClient()} {
		if h == nil || h == http.DefaultClient {
			t.Error("a manager has no HTTP client of its own")
		}
	}
	if a.GetHTTPClient() == b.GetHTTPClient() {
		t.Error("two managers share an HTTP client")
	}
	if a.GetClient() == nil || a.GetCache() == nil || a.GetScheme() == nil || a.GetRESTMapper() == nil || a.GetAPIReader() == nil ||
		a.GetFieldIndexer() == nil || a.GetConfig() == nil || a.GetLogger().GetSink() == nil || a.GetControllerOptions().Logger.GetSink() == nil {
		t.Error("a part is missing")
	}
	if err := a.Add(nil); err == nil {
		t.Error("nil was added")
	}
	if len(w.sent) > 0 {
		t.Errorf("New asked the API server: %v", w.sent)
	}
}

// start runs a manager until the returned function is called, which gives Start's error.
func start(t *testing.T, m Manager) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- m.Start(ctx) }()
	return func() error {
		cancel()
		return <-ended
	}
}

// Slip of upstream #2321: probes answer before caches are synced.
func TestProbes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, l := &world{}, newMemListener()
		o := w.electing()
		o.HealthProbeBindAddress = ":8081"
		o.LivenessEndpointName = "live/"
		o.listen = func(address string) (net.Listener, error) {
			if address != ":8081" {
				t.Errorf("listening on %s", address)
			}
			return l, nil
		}
		m, err := New(w.config(), o)
		if err != nil {
			t.Fatal(err)
		}
		ready := false
		check := func(*http.Request) error {
			if !ready {
				return errors.New("not yet")
			}
			return nil
		}
		if err := errors.Join(m.AddReadyzCheck("mine", check), m.AddHealthzCheck("ping", healthz.Ping), m.AddReadyzCheck("nil", nil)); err == nil {
			t.Error("a nil check was added")
		}
		mustAdd(t, m.(*controllerManager).life, &cachePart{part: &part{"cache", &journal{}, 0}, syncs: time.Hour})
		stop := start(t, m)
		for range 2 {
			for path, want := range map[string]struct {
				code int
				body string
			}{
				"/live":                {200, "ok"},
				"/live/ping":           {200, "ok"},
				"/live?verbose":        {200, "[+]ping ok\nhealthz check passed\n"},
				"/live/mine":           {404, "404 page not found\n"},
				"/healthz":             {404, "404 page not found\n"},
				"/readyz":              {500, "[-]mine failed: reason withheld\nhealthz check failed\n"},
				"/readyz/mine":         {500, "internal server error: reason withheld\n"},
				"/readyz?exclude=mine": {200, "ok"},
			} {
				if ready && strings.HasPrefix(path, "/readyz") {
					want.code, want.body = 200, "ok"
				}
				if code, body := l.get(t, path); code != want.code || body != want.body {
					t.Errorf("%s: %d %q, want %d %q", path, code, body, want.code, want.body)
				}
			}
			ready = true
		}
		if err := m.Start(t.Context()); err == nil {
			t.Error("started twice")
		}
		if code, _ := l.get(t, "/live"); code != 200 {
			t.Errorf("a second start broke the first: %d", code)
		}
		if m.AddHealthzCheck("late", healthz.Ping) == nil || m.AddReadyzCheck("late", healthz.Ping) == nil || m.AddMetricsServerExtraHandler("/late", nil) == nil {
			t.Error("something was added after the start")
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
		time.Sleep(2 * time.Hour)
	})
}

func TestProfiles(t *testing.T) {
	w, l := &world{}, newMemListener()
	o := w.options()
	o.PprofBindAddress = "127.0.0.1:6060"
	o.listen = func(string) (net.Listener, error) { return l, nil }
	m, err := New(w.config(), o)
	if err != nil {
		t.Fatal(err)
	}
	stop := start(t, m)
	for path, want := range map[string]string{
		"/debug/pprof/": "goroutine", "/debug/pprof/goroutine?debug=1": "goroutine profile", "/debug/pprof/cmdline": "test", "/debug/pprof/symbol": "num_symbols",
	} {
		if code, body := l.get(t, path); code != 200 || !strings.Contains(body, want) {
			t.Errorf("%s: %d %.60q", path, code, body)
		}
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}

func TestHundredManagersLeaveNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{}
		for i := range 100 {
			o := w.electing()
			o.HealthProbeBindAddress, o.PprofBindAddress = ":1", ":2"
			o.listen = func(string) (net.Listener, error) { return newMemListener(), nil }
			m, err := New(w.config(), o)
			if err != nil {
				t.Fatal(err)
			}
			j := &journal{}
			for _, r := range []Runnable{&part{"leader", j, 0}, otherPart{&part{"other", j, 0}}, warmPart{&part{"warm", j, 0}}} {
				if err := m.Add(r); err != nil {
					t.Fatal(err)
				}
			}
			stop := start(t, m)
			<-m.Elected()
			synctest.Wait()
			began := time.Now()
			if err := stop(); err != nil {
				t.Errorf("round %d: %v", i, err)
			}
			if d := time.Since(began); d > time.Second {
				t.Errorf("round %d: stopped after %s", i, d)
			}
			if got := len(strings.Split(j.String(), "\n")); got != 8 {
				t.Errorf("round %d:\n%s", i, j)
			}
		}
	})
}

// The webhook server runs if somebody asks for it, once however often.
func TestWebhookServerRunsOnDemand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, asked := range []int{0, 1, 2} {
			w, j := &world{}, &journal{}
			o := w.options()
			o.WebhookServer = webhookPart{part: &part{"webhook", j, 0}}
			m, err := New(w.config(), o)
			if err != nil {
				t.Fatal(err)
			}
			if m.GetConverterRegistry() == nil || m.GetConverterRegistry() != m.GetConverterRegistry() {
				t.Error("no registry, or more than one")
			}
			for range asked {
				if m.GetWebhookServer() != o.WebhookServer {
					t.Error("another server")
				}
			}
			stop := start(t, m)
			synctest.Wait()
			if err := stop(); err != nil {
				t.Error(err)
			}
			if got := j.count("start webhook"); got != min(asked, 1) {
				t.Errorf("asked %d times, started %d times", asked, got)
			}
		}
	})
}

// create writes a ConfigMap with c.
func create(ctx context.Context, c client.Client, name string) error {
	return c.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}})
}

// A leader that is cut off from its lease, but not from anything else, sends no write after its term.
func TestPartitionedLeaderSendsNothingAfterItsTerm(t *testing.T) {
	for _, standDown := range []bool{false, true} {
		t.Run(fmt.Sprintf("stand down %v", standDown), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &world{delay: 300 * time.Millisecond}
				o := w.electing()
				o.LeaderElectionStandDown = standDown
				o.GracefulShutdownTimeout = new(time.Minute)
				m, err := New(w.config(), o)
				if err != nil {
					t.Fatal(err)
				}
				var refused error
				const writing = 70 * time.Second
				// It writes on and on, in its own context, whatever that says.
				err = m.Add(RunnableFunc(func(ctx context.Context) error {
					ctx = context.WithoutCancel(ctx)
					until := time.Now().Add(writing)
					for i := 0; time.Now().Before(until); i++ {
						if err := create(ctx, m.GetClient(), fmt.Sprint("elected-", i)); err != nil {
							refused = err
						}
						time.Sleep(200 * time.Millisecond)
					}
					return nil
				}))
				if err != nil {
					t.Fatal(err)
				}
				err = m.Add(otherFunc(func(ctx context.Context) error {
					for i := 0; ctx.Err() == nil; i++ {
						_ = create(context.WithoutCancel(ctx), m.GetClient(), fmt.Sprint("other-", i))
						time.Sleep(200 * time.Millisecond)
					}
					return nil
				}))
				if err != nil {
					t.Fatal(err)
				}
				stop := start(t, m)
				<-m.Elected()
				time.Sleep(30 * time.Second)
				w.LeaseServer.Fail(errors.New("partition"))
				term := w.Lease("ns", "op").Spec.RenewTime.Time
				time.Sleep(39 * time.Second)
				if !standDown {
					if err := stop(); !errors.Is(err, leaderelection.ErrLost) {
						t.Errorf("ended with: %v", err)
					}
				}
				time.Sleep(2 * time.Second)
				synctest.Wait()
				last := map[string]time.Duration{}
				for _, s := range w.writes("configmaps") {
					kind := "other"
					if strings.Contains(s.body, "elected-") {
						kind = "elected"
					}
					last[kind] = s.at.Sub(term)
				}
				within(t, "last elected write, from the last renewal", last["elected"], 9*time.Second, 10*time.Second)
				if !errors.Is(refused, leaderelection.ErrTermOver) {
					t.Errorf("refused with: %v", refused)
				}
				if standDown {
					within(t, "last write of another runnable", last["other"], 38*time.Second, 45*time.Second)
					w.LeaseServer.Fail(nil)
					if err := stop(); err != nil {
						t.Errorf("ended with: %v", err)
					}
				} else {
					within(t, "last write of another runnable", last["other"], 9*time.Second, 10*time.Second)
				}
			})
		})
	}
}

// A write that hangs when the lease expires is cut.
func TestWriteUnderWayIsCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{delay: time.Hour}
		m, err := New(w.config(), w.electing())
		if err != nil {
			t.Fatal(err)
		}
		var cut error
		var took time.Duration
		err = m.Add(RunnableFunc(func(context.Context) error {
			time.Sleep(time.Second)
			w.LeaseServer.Fail(errors.New("partition"))
			term := w.Lease("ns", "op").Spec.RenewTime.Time
			cut = create(context.Background(), m.GetClient(), "slow")
			took = time.Since(term)
			return nil
		}))
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Start(t.Context()); !errors.Is(err, leaderelection.ErrLost) {
			t.Errorf("ended with: %v", err)
		}
		time.Sleep(time.Minute) // the flush of events, which hang too, has its own limit
		synctest.Wait()
		if !errors.Is(cut, leaderelection.ErrTermOver) || took != 15*time.Second {
			t.Errorf("after %s: %v", took, cut)
		}
	})
}

// What is recorded until the last runnable has stopped is sent before Start returns; what comes later is never sent.
func TestEventsAreFlushedAndNoLaterOnesSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{}
		m, err := New(w.config(), w.electing())
		if err != nil {
			t.Fatal(err)
		}
		about := &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "x"}}
		events := m.GetEventRecorder("tester")
		err = m.Add(RunnableFunc(func(ctx context.Context) error {
			<-ctx.Done()
			time.Sleep(time.Second)
			events.Eventf(about, nil, corev1.EventTypeNormal, "Last", "Stop", "last words")
			return nil
		}))
		if err != nil {
			t.Fatal(err)
		}
		stop := start(t, m)
		<-m.Elected()
		time.Sleep(time.Minute)
		if err := stop(); err != nil {
			t.Error(err)
		}
		all := w.writes("/events")
		text := fmt.Sprint(all)
		for _, want := range []string{"became leader", "stopped leading", "last words"} {
			if !strings.Contains(text, want) {
				t.Errorf("no event %q among %d", want, len(all))
			}
		}
		events.Eventf(about, nil, corev1.EventTypeNormal, "Late", "Stop", "too late")
		time.Sleep(time.Minute)
		if n := len(w.writes("/events")); n != len(all) {
			t.Errorf("%d events sent after the end", n-len(all))
		}
	})
}
