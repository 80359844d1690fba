// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"strconv"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	ctrl "github.com/wherry-dev/wherry"
	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/cluster/recorder"
	"github.com/wherry-dev/wherry/controller"
	"github.com/wherry-dev/wherry/manager"
	"github.com/wherry-dev/wherry/manager/healthz"
	"github.com/wherry-dev/wherry/manager/metrics/filters"
	metricsserver "github.com/wherry-dev/wherry/manager/metrics/server"
	"github.com/wherry-dev/wherry/webhook"
	"github.com/wherry-dev/wherry/webhook/local"
)

// everything is an operator with every part switched on, under the same names each time.
type everything struct {
	client.Client
	events     recorder.EventRecorder
	reconciled chan string
	defaulted  chan string
}

func (e *everything) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	cm := configMap(req.Name)
	if err := e.Get(ctx, req.NamespacedName, cm); err != nil || cm.Labels["cycle"] == "" {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	e.events.Eventf(cm, nil, corev1.EventTypeNormal, "Seen", "See", "in cycle %s", cm.Labels["cycle"])
	select {
	case e.reconciled <- cm.Labels["cycle"]:
	default: // told before
	}
	return ctrl.Result{}, nil
}

func (e *everything) Default(_ context.Context, cm *corev1.ConfigMap) error {
	select {
	case e.defaulted <- cm.Name:
	default: // told before
	}
	return nil
}

// newEverything makes a manager of it that nobody has started.
func newEverything(t *testing.T, certificate *webhook.SelfSigned, port int) (manager.Manager, *everything) {
	t.Helper()
	o := options("cycles")
	o.LeaseDuration, o.RenewDeadline, o.RetryPeriod = nil, nil, nil // no cycle waits for another's lease: each gives it up
	o.Metrics = metricsserver.Options{BindAddress: "127.0.0.1:0", SecureServing: true, FilterProvider: filters.WithAuthenticationAndAuthorization, CertDir: t.TempDir()}
	o.HealthProbeBindAddress, o.PprofBindAddress = "127.0.0.1:0", "127.0.0.1:0"
	o.WebhookServer = webhook.NewServer(webhook.Options{Host: "127.0.0.1", Port: port, TLSOpts: []func(*tls.Config){certificate.TLS}})
	o.Controller.EnableWarmup = ptr.To(true)
	m, err := manager.New(config, o)
	if err != nil {
		t.Fatal(err)
	}
	e := &everything{m.GetClient(), m.GetEventRecorder("cycles"), make(chan string, 1), make(chan string, 1)}
	err = errors.Join(
		ctrl.NewControllerManagedBy(m).For(&corev1.ConfigMap{}).WithOptions(controller.Options{SkipNameValidation: ptr.To(false)}).Complete(e),
		ctrl.NewWebhookManagedBy(m, &corev1.ConfigMap{}).WithDefaulter(e).Complete(),
		m.Add(&local.Webhooks{
			Client: m.GetClient(), Server: m.GetWebhookServer(), Address: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)),
			CABundle: certificate.CABundle, Configurations: []client.Object{cyclesWebhook()},
		}),
		m.AddHealthzCheck("ping", healthz.Ping),
		m.AddReadyzCheck("configmaps", manager.CacheSyncedCheck(m, &corev1.ConfigMap{})),
	)
	if err != nil {
		t.Fatal(err)
	}
	return m, e
}

func cyclesWebhook() client.Object {
	return &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "cycles"},
		Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name: "cycles.example.com",
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Update},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
			}},
			ClientConfig: admissionregistrationv1.WebhookClientConfig{
				Service: &admissionregistrationv1.ServiceReference{Namespace: "default", Name: "cycles", Path: ptr.To("/mutate--v1-configmap")},
			},
			ObjectSelector:          &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "cycle", Operator: metav1.LabelSelectorOpExists}}},
			FailurePolicy:           ptr.To(admissionregistrationv1.Ignore),
			SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNone),
			AdmissionReviewVersions: []string{"v1"},
		}},
	}
}

// stopLimit is well below the time that a manager gives its parts to end: none may be given up on.
const stopLimit = 20 * time.Second

// cycles is how often a manager is built, started and stopped.
const cycles = 100

// A process may have many managers, one after the other: none leaves a goroutine, a port or a name behind.
func TestHundredStartsAndStopsWithEverything(t *testing.T) {
	certificate, err := webhook.NewSelfSigned("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	if err := client.IgnoreAlreadyExists(live.Create(t.Context(), configMap("cycles"))); err != nil {
		t.Fatal(err)
	}
	before := 0
	for i := range cycles {
		m, e := newEverything(t, certificate, freePort(t))
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- m.Start(ctx) }()
		e.work(t, i, ended)
		cancel()
		began := time.Now()
		if err := <-ended; err != nil {
			t.Fatalf("cycle %d: %v", i, err)
		}
		if took := time.Since(began); took > stopLimit {
			t.Errorf("cycle %d: the stop took %s", i, took)
		}
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
		if i == 0 {
			before = settled() // the connection to the API server and its like, which a process has once
		}
	}
	eventually(t, patience, "as few goroutines as after the first cycle", func() bool { return runtime.NumGoroutine() <= before })
	if after := runtime.NumGoroutine(); after > before {
		t.Errorf("%d goroutines after the first cycle, %d after %d", before, after, cycles)
	}
	if holder := *readLease(t, "cycles").Spec.HolderIdentity; holder != "" {
		t.Errorf("the lease is held by %s", holder)
	}
}

// work writes until the cycle's manager has had its part in it: the webhook was called, and the controller has reconciled.
func (e *everything) work(t *testing.T, cycle int, ended <-chan error) {
	t.Helper()
	defaulted, reconciled := false, false
	eventually(t, patience, fmt.Sprintf("cycle %d: webhook and controller have worked", cycle), func() bool {
		patch := fmt.Appendf(nil, `{"metadata":{"labels":{"cycle":"%d"}},"data":{"at":"%d"}}`, cycle, time.Now().UnixNano())
		if err := live.Patch(t.Context(), configMap("cycles"), client.RawPatch(client.Merge.Type(), patch)); err != nil {
			t.Fatal(err)
		}
		select {
		case <-e.defaulted:
			defaulted = true
		case err := <-ended:
			t.Fatalf("cycle %d: the manager ended: %v", cycle, err)
		case got := <-e.reconciled:
			reconciled = reconciled || got == strconv.Itoa(cycle)
		default:
		}
		return defaulted && reconciled
	})
}

// settleLimit bounds the wait for goroutines that end; what is still there then counts as left.
const settleLimit = 30 * time.Second

// settled is the number of goroutines when it has not changed for a while.
func settled() int {
	n, since := runtime.NumGoroutine(), time.Now()
	for end := time.Now().Add(settleLimit); time.Since(since) < time.Second && time.Now().Before(end); {
		time.Sleep(20 * time.Millisecond)
		if now := runtime.NumGoroutine(); now != n {
			n, since = now, time.Now()
		}
	}
	return n
}

// freePort is a loopback port that was free a moment ago.
func freePort(t *testing.T) int {
	t.Helper()
	_, port, err := net.SplitHostPort(freeAddress(t))
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
