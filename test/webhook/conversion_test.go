// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http/httptest"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	ctrl "github.com/wherry-dev/wherry"
	"github.com/wherry-dev/wherry/cache"
	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/controller"
	"github.com/wherry-dev/wherry/controller/builder"
	"github.com/wherry-dev/wherry/controller/reconcile"
	"github.com/wherry-dev/wherry/manager"
	metricsserver "github.com/wherry-dev/wherry/manager/metrics/server"
	"github.com/wherry-dev/wherry/webhook"
	"github.com/wherry-dev/wherry/webhook/local"
)

// WidgetV2List is what a cache of WidgetV2 is listed into.
type WidgetV2List struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []WidgetV2 `json:"items"`
}

// DeepCopyObject is generated in real life.
func (l *WidgetV2List) DeepCopyObject() runtime.Object {
	c := *l
	c.Items = append([]WidgetV2(nil), l.Items...)
	return &c
}

// Upstream #1685: objects that are stored in another version can be listed only with the help of our own webhook, before any
// cache is filled, whoever leads.
func TestStartThatNeedsItsOwnConversion(t *testing.T) {
	stored := widget("v1", "stored-long-ago", map[string]any{"size": int64(3)})
	live, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := live.Create(t.Context(), stored); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = live.Delete(context.WithoutCancel(t.Context()), stored) })
	for _, waits := range []bool{false, true} {
		t.Run(fmt.Sprintf("waits for leadership %v", waits), func(t *testing.T) {
			scheme := newScheme()
			scheme.AddKnownTypeWithName(schema.GroupVersionKind{Group: widgetKind.Group, Version: "v2", Kind: "WidgetList"}, &WidgetV2List{})
			o := manager.Options{
				Scheme:         scheme,
				Metrics:        metricsserver.Options{BindAddress: "0"},
				WebhookServer:  webhook.NewServer(webhook.Options{Host: "127.0.0.1", Port: port, TLSOpts: []func(*tls.Config){certificate.TLS}}),
				LeaderElection: waits, LeaderElectionID: "conversion", LeaderElectionNamespace: "default",
			}
			if waits {
				holdLease(t, live, o.LeaderElectionID)
			}
			m, err := manager.New(config, o)
			if err != nil {
				t.Fatal(err)
			}
			reconciled := make(chan string, 1)
			err = errors.Join(
				builder.WebhookManagedBy(m, &WidgetV1{}).WithConverter(widgetConverter()).Complete(),
				ctrl.NewControllerManagedBy(m).For(&WidgetV2{}).WithOptions(controller.Options{SkipNameValidation: ptr.To(true), EnableWarmup: ptr.To(true)}).
					Complete(reconcile.Func(func(_ context.Context, req reconcile.Request) (reconcile.Result, error) {
						select {
						case reconciled <- req.Name:
						default:
						}
						return reconcile.Result{}, nil
					})),
			)
			if err != nil {
				t.Fatal(err)
			}
			if err := manager.CacheSyncedCheck(m, &WidgetV2{})(httptest.NewRequest("GET", "/readyz", nil)); err != nil {
				t.Errorf("the kind that is converted here keeps the process from being ready: %v", err)
			}
			started(t, m, waits, reconciled)
		})
	}
}

// A process outside the cluster has the API server convert by it, before its own caches ask for a conversion, although the
// definition names a webhook that is not there. Afterwards the definition is as it was, also if the process has led.
func TestConversionsOfALocalProcess(t *testing.T) {
	live, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	stored := widget("v1", "stored-long-ago", map[string]any{"size": int64(3)})
	if err := live.Create(t.Context(), stored); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = live.Delete(context.WithoutCancel(t.Context()), stored) })
	scheme := newScheme()
	scheme.AddKnownTypeWithName(schema.GroupVersionKind{Group: widgetKind.Group, Version: "v2", Kind: "WidgetList"}, &WidgetV2List{})
	for _, leads := range []bool{false, true} {
		t.Run(fmt.Sprintf("leads %v", leads), func(t *testing.T) { convertLocally(t, live, scheme, leads) })
	}
}

func convertLocally(t *testing.T, live client.Client, scheme *runtime.Scheme, leads bool) {
	elsewhere := freePort(t)
	m, err := manager.New(config, manager.Options{
		Scheme:         scheme,
		Metrics:        metricsserver.Options{BindAddress: "0"},
		WebhookServer:  webhook.NewServer(webhook.Options{Host: "127.0.0.1", Port: elsewhere, TLSOpts: []func(*tls.Config){certificate.TLS}}),
		LeaderElection: leads, LeaderElectionID: "local-conversion", LeaderElectionNamespace: "default", LeaderElectionReleaseOnCancel: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	reconciled := make(chan string, 1) // nothing is reconciled here, but the last stage has its turn
	go func() {
		<-m.Elected()
		reconciled <- ""
	}()
	err = errors.Join(
		builder.WebhookManagedBy(m, &WidgetV1{}).WithConverter(widgetConverter()).Complete(),
		m.Add(&local.Conversions{
			Client: m.GetClient(), Server: m.GetWebhookServer(), Address: fmt.Sprintf("127.0.0.1:%d", elsewhere), CABundle: certificate.CABundle,
			Definitions: []string{"widgets.example.com"},
		}),
	)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.GetCache().GetInformer(t.Context(), &WidgetV2{}, cache.BlockUntilSynced(false)); err != nil {
		t.Fatal(err)
	}
	started(t, m, false, reconciled)
	definition := &unstructured.Unstructured{}
	definition.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
	if err := live.Get(t.Context(), client.ObjectKey{Name: "widgets.example.com"}, definition); err != nil {
		t.Fatal(err)
	}
	if url, _, _ := unstructured.NestedString(definition.Object, "spec", "conversion", "webhook", "clientConfig", "url"); url != at("/convert") || len(definition.GetAnnotations()) > 0 {
		t.Errorf("left behind: %s, %v", url, definition.GetAnnotations())
	}
}

// started runs m until its cache has the widget in the version that it wants, and has been reconciled unless m waits to lead.
func started(t *testing.T, m manager.Manager, waits bool, reconciled <-chan string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- m.Start(ctx) }()
	eventually(t, "the cache has the widget", func() error {
		var w WidgetV2
		err := m.GetCache().Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "stored-long-ago"}, &w)
		if err == nil && w.Spec.Millis != 3000 {
			err = fmt.Errorf("converted to %+v", w.Spec)
		}
		return err
	})
	limit := patience
	if waits {
		limit = time.Second // nothing tells that nothing comes
	}
	select {
	case <-reconciled:
		if waits {
			t.Error("reconciled without leadership")
		}
	case <-time.After(limit):
		if !waits {
			t.Error("not reconciled")
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// holdLease lets somebody else have a lease for a long time.
func holdLease(t *testing.T, c client.Client, name string) {
	t.Helper()
	l := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: ptr.To("another"), LeaseDurationSeconds: ptr.To[int32](3600), RenewTime: ptr.To(metav1.NowMicro())},
	}
	if err := c.Create(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // or the next run of the test could not
		if err := c.Delete(context.WithoutCancel(t.Context()), l); err != nil {
			t.Error(err)
		}
	})
}
