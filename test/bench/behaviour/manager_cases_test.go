// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package behaviour

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// managed is a case that has a manager, not yet started.
func managed(name, why string, options func(t *testing.T, opts *ctrl.Options), run func(t *testing.T, o *outcome, mgr manager.Manager)) testCase {
	return testCase{"manager", name, why, func(t *testing.T, o *outcome) {
		opts := ctrl.Options{Metrics: metricsserver.Options{BindAddress: "0"}}
		if options != nil {
			options(t, &opts)
		}
		mgr, err := ctrl.NewManager(rest.CopyConfig(server), opts)
		must(t, err)
		run(t, o, mgr)
	}}
}

func makes(name, why string, config *rest.Config, change func(*ctrl.Options)) testCase {
	return testCase{"manager", name, why, func(t *testing.T, o *outcome) {
		opts := ctrl.Options{Metrics: metricsserver.Options{BindAddress: "0"}}
		change(&opts)
		if config == nil {
			config = server
		}
		_, err := ctrl.NewManager(config, opts)
		o.note("error", err)
	}}
}

// elected is a runnable of leaders, or one that needs no leadership.
type elected struct {
	manager.RunnableFunc
	needs bool
}

func (e elected) NeedLeaderElection() bool { return e.needs }

func startedSoon(t *testing.T, what <-chan struct{}) bool {
	t.Helper()
	select {
	case <-what:
		return true
	case <-time.After(patience):
		return false
	}
}

// announces is a runnable that says when it begins, and waits for the end.
func announces(ch chan struct{}) manager.RunnableFunc {
	return func(ctx context.Context) error {
		close(ch)
		<-ctx.Done()
		return nil
	}
}

func election(t *testing.T, opts *ctrl.Options) {
	opts.LeaderElection, opts.LeaderElectionID, opts.LeaderElectionNamespace = true, uniqueName(t), "default"
	opts.LeaderElectionReleaseOnCancel = true
	// Leases are given up here, not waited for: they may be long, for a machine that does other things.
	opts.LeaseDuration, opts.RenewDeadline, opts.RetryPeriod = new(15*time.Second), new(10*time.Second), new(200*time.Millisecond)
}

func managerCases() []testCase {
	cases := append(runCases(), makeCases()...)
	cases = append(cases, probeCases()...)
	return append(cases, electionCases()...)
}

func makeCases() []testCase {
	return []testCase{
		{"manager", "no configuration", "", func(t *testing.T, o *outcome) {
			_, err := ctrl.NewManager(nil, ctrl.Options{})
			o.note("error", err)
		}},
		managed("what it hands out", "", nil, func(t *testing.T, o *outcome, mgr manager.Manager) {
			o.note("scheme is client-go's", mgr.GetScheme() == scheme.Scheme)
			o.note("client, reader, cache, mapper, recorder", mgr.GetClient() != nil && mgr.GetAPIReader() != nil && mgr.GetCache() != nil && mgr.GetRESTMapper() != nil && mgr.GetEventRecorder("x") != nil)
			o.note("webhook server is one", mgr.GetWebhookServer() == mgr.GetWebhookServer())
			o.note("config is a copy", mgr.GetConfig() != server)
		}),
		makes("leader election without an ID", "", nil, func(o *ctrl.Options) { o.LeaderElection, o.LeaderElectionNamespace = true, "default" }),
		makes("leader election without a namespace, outside of a cluster", "", nil, func(o *ctrl.Options) { o.LeaderElection, o.LeaderElectionID = true, "x" }),
		makes("leader election with a deadline above the lease", "bad timing is refused when the manager is made, not when it starts", nil, func(o *ctrl.Options) {
			o.LeaderElection, o.LeaderElectionID, o.LeaderElectionNamespace = true, "x", "default"
			o.LeaseDuration, o.RenewDeadline = new(time.Second), new(5*time.Second)
		}),
		makes("an address of metrics that is none", "", nil, func(o *ctrl.Options) { o.Metrics.BindAddress = "no address" }),
		makes("an address of probes that is none", "", nil, func(o *ctrl.Options) { o.HealthProbeBindAddress = "no address" }),
	}
}

func runCases() []testCase {
	broken := errors.New("broken")
	return []testCase{
		managed("starts and stops", "", nil, func(t *testing.T, o *outcome, mgr manager.Manager) {
			began := make(chan struct{})
			must(t, mgr.Add(announces(began)))
			stop := start(t, mgr)
			o.note("runnable began", startedSoon(t, began))
			o.note("stop", stop())
		}),
		managed("order of start and stop", "", nil, func(t *testing.T, o *outcome, mgr manager.Manager) {
			var order sequence
			say := func(name string) manager.RunnableFunc {
				return func(ctx context.Context) error {
					order.add("+" + name)
					<-ctx.Done()
					order.add("-" + name)
					return nil
				}
			}
			must(t, mgr.Add(elected{say("leader"), true}))
			must(t, mgr.Add(elected{say("other"), false}))
			stop := start(t, mgr)
			within(patience, func() bool { return order.len() == 2 })
			o.note("both began", order.len() == 2) // in which order is the scheduler's
			o.note("stop", stop())
			order.mu.Lock()
			o.note("ends", order.what[2:])
			order.mu.Unlock()
		}),
		managed("a runnable that fails ends it", "", nil, func(t *testing.T, o *outcome, mgr manager.Manager) {
			must(t, mgr.Add(manager.RunnableFunc(func(context.Context) error { return broken })))
			o.note("start gives its error", errors.Is(mgr.Start(soon(t, patience)), broken))
		}),
		managed("a runnable that returns ends nothing", "", nil, func(t *testing.T, o *outcome, mgr manager.Manager) {
			began := make(chan struct{})
			must(t, mgr.Add(manager.RunnableFunc(func(context.Context) error { close(began); return nil })))
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- mgr.Start(ctx) }()
			<-began
			select {
			case <-ended:
				o.note("goes on", false)
			case <-time.After(quiet):
				o.note("goes on", true)
			}
			cancel()
			o.note("then", <-ended)
		}),
		managed("a runnable added while it runs", "", nil, func(t *testing.T, o *outcome, mgr manager.Manager) {
			first, late := make(chan struct{}), make(chan struct{})
			must(t, mgr.Add(announces(first)))
			start(t, mgr)
			startedSoon(t, first)
			o.note("add", mgr.Add(announces(late)))
			o.note("began", startedSoon(t, late))
		}),
		managed("a runnable added after the end", "", nil, func(t *testing.T, o *outcome, mgr manager.Manager) {
			began := make(chan struct{})
			must(t, mgr.Add(announces(began)))
			stop := start(t, mgr)
			startedSoon(t, began)
			must(t, stop())
			o.note("refused", mgr.Add(manager.RunnableFunc(func(context.Context) error { return nil })) != nil)
		}),
		managed("a second start", "", nil, func(t *testing.T, o *outcome, mgr manager.Manager) {
			began := make(chan struct{})
			must(t, mgr.Add(announces(began)))
			start(t, mgr)
			startedSoon(t, began)
			o.note("refused", mgr.Start(soon(t, patience)) != nil)
		}),
		managed("a runnable that outlives the grace period", "", func(t *testing.T, opts *ctrl.Options) { opts.GracefulShutdownTimeout = new(100 * time.Millisecond) }, func(t *testing.T, o *outcome, mgr manager.Manager) {
			began, leave := make(chan struct{}), make(chan struct{})
			must(t, mgr.Add(manager.RunnableFunc(func(context.Context) error { close(began); <-leave; return nil })))
			stop := start(t, mgr)
			<-began
			o.note("stop", stop())
			close(leave)
		}),
		managed("the end waits for a runnable", "", nil, func(t *testing.T, o *outcome, mgr manager.Manager) {
			began := make(chan struct{})
			var done counter
			must(t, mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
				close(began)
				<-ctx.Done()
				time.Sleep(quiet)
				done.add("done")
				return nil
			})))
			stop := start(t, mgr)
			<-began
			o.note("stop", stop())
			o.note("runnable was done", done.of("done") == 1)
		}),
		managed("the base context", "", func(t *testing.T, opts *ctrl.Options) {
			opts.BaseContext = func() context.Context { return context.WithValue(context.Background(), contextKey{}, "value") }
		}, func(t *testing.T, o *outcome, mgr manager.Manager) {
			seen := make(chan any, 1)
			must(t, mgr.Add(manager.RunnableFunc(func(ctx context.Context) error { seen <- ctx.Value(contextKey{}); return nil })))
			start(t, mgr)
			o.note("value", <-seen)
		}),
		managed("elected without an election", "", nil, func(t *testing.T, o *outcome, mgr manager.Manager) {
			select {
			case <-mgr.Elected():
				o.note("before the start", true)
			default:
				o.note("before the start", false)
			}
			start(t, mgr)
			o.note("after it", startedSoon(t, mgr.Elected()))
		}),
		managed("an event", "", nil, func(t *testing.T, o *outcome, mgr manager.Manager) {
			ns := namespace(t)
			cm := configMap(t, ns, "a", nil)
			start(t, mgr)
			startedSoon(t, mgr.Elected())
			mgr.GetEventRecorderFor("me").Event(cm, corev1.EventTypeNormal, "Reason", "message")
			var events []corev1.Event
			o.note("stored", within(patience, func() bool {
				l, err := truth.CoreV1().Events(ns).List(t.Context(), metav1.ListOptions{})
				if err == nil {
					events = l.Items
				}
				return len(events) == 1
			}))
			o.note("reason", events[0].Reason)
			o.note("of", events[0].InvolvedObject.Name)
		}),
		managed("an event through the newer API", "", nil, func(t *testing.T, o *outcome, mgr manager.Manager) {
			ns := namespace(t)
			cm := configMap(t, ns, "a", nil)
			start(t, mgr)
			startedSoon(t, mgr.Elected())
			mgr.GetEventRecorder("me").Eventf(cm, nil, corev1.EventTypeNormal, "Reason", "Action", "message %d", 1)
			o.note("stored", within(patience, func() bool {
				l, err := truth.EventsV1().Events(ns).List(t.Context(), metav1.ListOptions{})
				return err == nil && len(l.Items) == 1 && l.Items[0].Reason == "Reason" && l.Items[0].Note == "message 1"
			}))
		}),
		{"manager", "an event in the last moment", "what is recorded before the end is sent before the end", func(t *testing.T, o *outcome) {
			slow := wire(func(r *http.Request) *http.Response {
				if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/events") {
					time.Sleep(2 * time.Second) // the manager is told to end while this is under way; it waits 5 s at most
				}
				return nil
			})
			mgr, err := ctrl.NewManager(slow, ctrl.Options{Metrics: metricsserver.Options{BindAddress: "0"}})
			must(t, err)
			ns := namespace(t)
			cm := configMap(t, ns, "a", nil)
			began := make(chan struct{})
			must(t, mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
				close(began)
				<-ctx.Done()
				mgr.GetEventRecorder("me").Eventf(cm, nil, corev1.EventTypeNormal, "Last", "Action", "message")
				return nil
			})))
			stop := start(t, mgr)
			<-began
			o.note("stop", stop())
			l, err := truth.EventsV1().Events(ns).List(t.Context(), metav1.ListOptions{})
			must(t, err)
			o.note("stored", len(l.Items))
		}},
		managed("reads before the start", "", nil, func(t *testing.T, o *outcome, mgr manager.Manager) {
			o.note("client", mgr.GetClient().List(soon(t, patience), &corev1.ConfigMapList{}))
			o.note("API reader", mgr.GetAPIReader().List(soon(t, patience), &corev1.ConfigMapList{}))
		}),
	}
}

// page is what a GET shows: the status, and the body if wanted.
func page(t *testing.T, url string) (int, string) {
	t.Helper()
	var resp *http.Response
	if !within(patience, func() bool {
		r, err := http.Get(url)
		resp = r
		return err == nil
	}) {
		t.Fatalf("nobody answers at %s", url)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	must(t, err)
	return resp.StatusCode, string(b)
}

func probeCases() []testCase {
	probed := func(name, why string, prepare func(t *testing.T, mgr manager.Manager), run func(t *testing.T, o *outcome, url string)) testCase {
		return testCase{"manager", name, why, func(t *testing.T, o *outcome) {
			address := fmt.Sprintf("127.0.0.1:%d", freePort(t))
			mgr, err := ctrl.NewManager(rest.CopyConfig(server), ctrl.Options{Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: address})
			must(t, err)
			prepare(t, mgr)
			start(t, mgr)
			run(t, o, "http://"+address)
		}}
	}
	bad := func(*http.Request) error { return errors.New("secret reason") }
	lateTried := make(chan struct{}) // closed when the late check was added, or refused
	return []testCase{
		probed("probes", "", func(t *testing.T, mgr manager.Manager) {
			must(t, mgr.AddHealthzCheck("good", healthz.Ping))
			must(t, mgr.AddReadyzCheck("good", healthz.Ping))
			must(t, mgr.AddReadyzCheck("bad", bad))
		}, func(t *testing.T, o *outcome, url string) {
			for _, path := range []string{"/healthz", "/readyz", "/healthz/good", "/readyz/good", "/readyz/bad", "/readyz/none", "/readyz?exclude=bad"} {
				status, _ := page(t, url+path)
				o.note(path, status)
			}
		}),
		probed("probes without any check", "a program without checks answers its probes", func(t *testing.T, mgr manager.Manager) {}, func(t *testing.T, o *outcome, url string) {
			for _, path := range []string{"/healthz", "/readyz"} {
				status, _ := page(t, url+path)
				o.note(path, status)
			}
		}),
		probed("the page of a failing check", "a probe's page never holds the reason, the log does", func(t *testing.T, mgr manager.Manager) {
			must(t, mgr.AddReadyzCheck("bad", bad))
		}, func(t *testing.T, o *outcome, url string) {
			status, body := page(t, url+"/readyz/bad")
			o.note("status", status)
			o.note("tells the reason", strings.Contains(body, "secret reason"))
			status, body = page(t, url+"/readyz")
			o.note("status", status)
			o.note("tells the reason", strings.Contains(body, "secret reason"))
		}),
		probed("a check added while it runs", "", func(t *testing.T, mgr manager.Manager) {
			must(t, mgr.AddHealthzCheck("first", healthz.Ping))
			must(t, mgr.Add(manager.RunnableFunc(func(context.Context) error {
				_ = mgr.AddHealthzCheck("late", healthz.Ping)
				close(lateTried)
				return nil
			})))
		}, func(t *testing.T, o *outcome, url string) {
			startedSoon(t, lateTried)
			status, _ := page(t, url+"/healthz/late")
			o.note("/healthz/late", status)
		}),
		{"manager", "metrics", "", func(t *testing.T, o *outcome) {
			address := fmt.Sprintf("127.0.0.1:%d", freePort(t))
			mgr, err := ctrl.NewManager(rest.CopyConfig(server), ctrl.Options{Metrics: metricsserver.Options{BindAddress: address}})
			must(t, err)
			o.note("extra handler", mgr.AddMetricsServerExtraHandler("/extra", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(418) })))
			o.note("one path twice", mgr.AddMetricsServerExtraHandler("/extra", http.NotFoundHandler()))
			start(t, mgr)
			status, body := page(t, "http://"+address+"/metrics")
			o.note("/metrics", status)
			for _, name := range []string{"rest_client_requests_total", "go_goroutines", "process_cpu_seconds_total"} {
				o.note(name, strings.Contains(body, name))
			}
			status, _ = page(t, "http://"+address+"/extra")
			o.note("/extra", status)
		}},
		{"manager", "metrics of a controller's work", "", func(t *testing.T, o *outcome) {
			address := fmt.Sprintf("127.0.0.1:%d", freePort(t))
			mgr, err := ctrl.NewManager(rest.CopyConfig(server), ctrl.Options{Metrics: metricsserver.Options{BindAddress: address}})
			must(t, err)
			name := uniqueName(t)
			must(t, ctrl.NewControllerManagedBy(mgr).Named(name).For(&corev1.Namespace{}).Complete(nothing))
			start(t, mgr)
			want := []string{
				`controller_runtime_reconcile_total{controller="` + name + `",result="success"}`,
				`controller_runtime_reconcile_time_seconds_count{controller="` + name + `"}`,
				`controller_runtime_active_workers{controller="` + name + `"}`,
				`controller_runtime_max_concurrent_reconciles{controller="` + name + `"}`,
				`workqueue_depth{controller="` + name + `"`,
			}
			var body string
			within(patience, func() bool {
				_, body = page(t, "http://"+address+"/metrics")
				return !strings.Contains(body, want[0]+" 0\n") && !slices.ContainsFunc(want, func(w string) bool { return !strings.Contains(body, w) })
			})
			for _, w := range want {
				o.note(strings.ReplaceAll(w, name, "NAME"), strings.Contains(body, w))
			}
		}},
		{"manager", "health handler by itself", "", func(t *testing.T, o *outcome) {
			h := &healthz.Handler{Checks: map[string]healthz.Checker{"good": healthz.Ping, "bad": bad}}
			for _, path := range []string{"/", "/good", "/bad", "/none"} {
				w := httptest.NewRecorder()
				h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
				o.note(path, w.Code)
			}
		}},
	}
}

func electionCases() []testCase {
	return []testCase{
		managed("leads", "", election, func(t *testing.T, o *outcome, mgr manager.Manager) {
			began := make(chan struct{})
			must(t, mgr.Add(elected{announces(began), true}))
			stop := start(t, mgr)
			o.note("elected", startedSoon(t, mgr.Elected()))
			o.note("runnable began", startedSoon(t, began))
			o.note("stop", stop())
		}),
		{"manager", "a second replica waits, and takes over", "", func(t *testing.T, o *outcome) {
			opts := ctrl.Options{Metrics: metricsserver.Options{BindAddress: "0"}}
			election(t, &opts)
			var mgrs []manager.Manager
			for range 2 {
				mgr, err := ctrl.NewManager(rest.CopyConfig(server), opts)
				must(t, err)
				mgrs = append(mgrs, mgr)
			}
			unled := make(chan struct{})
			must(t, mgrs[1].Add(elected{announces(unled), false}))
			stop := start(t, mgrs[0])
			o.note("first leads", startedSoon(t, mgrs[0].Elected()))
			start(t, mgrs[1])
			o.note("what needs no leader runs", startedSoon(t, unled))
			select {
			case <-mgrs[1].Elected():
				o.note("second waits", false)
			case <-time.After(time.Second):
				o.note("second waits", true)
			}
			o.note("first stops", stop())
			o.note("second leads", startedSoon(t, mgrs[1].Elected()))
		}},
		{"manager", "the lease is released at the end", "", func(t *testing.T, o *outcome) {
			opts := ctrl.Options{Metrics: metricsserver.Options{BindAddress: "0"}}
			election(t, &opts)
			mgr, err := ctrl.NewManager(rest.CopyConfig(server), opts)
			must(t, err)
			stop := start(t, mgr)
			startedSoon(t, mgr.Elected())
			lease := func() string {
				l, err := truth.CoordinationV1().Leases("default").Get(t.Context(), opts.LeaderElectionID, metav1.GetOptions{})
				must(t, err)
				if l.Spec.HolderIdentity == nil {
					return ""
				}
				return *l.Spec.HolderIdentity
			}
			o.note("held", lease() != "")
			o.note("stop", stop())
			o.note("held afterwards", lease() != "")
		}},
		{"manager", "a lost lease ends it", "", func(t *testing.T, o *outcome) {
			opts := ctrl.Options{Metrics: metricsserver.Options{BindAddress: "0"}}
			election(t, &opts)
			mgr, err := ctrl.NewManager(rest.CopyConfig(server), opts)
			must(t, err)
			ctx := soon(t, patience)
			ended := make(chan error, 1)
			go func() { ended <- mgr.Start(ctx) }()
			startedSoon(t, mgr.Elected())
			taken := within(patience, func() bool {
				l, err := truth.CoordinationV1().Leases("default").Get(t.Context(), opts.LeaderElectionID, metav1.GetOptions{})
				if err != nil {
					return false
				}
				l.Spec.HolderIdentity, l.Spec.RenewTime, l.Spec.LeaseDurationSeconds = new("another"), new(metav1.NowMicro()), new(int32(60))
				_, err = truth.CoordinationV1().Leases("default").Update(t.Context(), l, metav1.UpdateOptions{})
				return err == nil
			})
			err = <-ended
			o.note("taken", taken)
			o.note("start fails", err != nil && ctx.Err() == nil)
		}},
	}
}
