// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

// Command herald is an operator with all that one has in a cluster: probes, protected metrics, leader election and a webhook. It
// announces every ConfigMap that names somebody. The README shows its main.
package main

import (
	"context"
	"crypto/tls"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/utils/ptr"

	ctrl "github.com/wherry-dev/wherry"
	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/client/log/zap"
	"github.com/wherry-dev/wherry/cluster/recorder"
	"github.com/wherry-dev/wherry/manager"
	"github.com/wherry-dev/wherry/manager/healthz"
	"github.com/wherry-dev/wherry/manager/metrics/filters"
	metricsserver "github.com/wherry-dev/wherry/manager/metrics/server"
	"github.com/wherry-dev/wherry/webhook"
	"github.com/wherry-dev/wherry/webhook/local"
)

type herald struct {
	client.Client
	events recorder.EventRecorder
}

func (h *herald) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var cm corev1.ConfigMap
	if err := h.Get(ctx, req.NamespacedName, &cm); err != nil || cm.Data["name"] == "" {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	h.events.Eventf(&cm, nil, corev1.EventTypeNormal, "Announced", "Announce", "make way for %s %s", cm.Data["title"], cm.Data["name"])
	return ctrl.Result{}, nil
}

// Default is the webhook: who has a name has a title.
func (h *herald) Default(_ context.Context, cm *corev1.ConfigMap) error {
	if cm.Data["name"] != "" && cm.Data["title"] == "" {
		cm.Data["title"] = "citizen"
	}
	return nil
}

// configuration tells an API server when to call the webhook. Without an answer the ConfigMap is written as it is.
func configuration() client.Object {
	return &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "herald"},
		Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name: "title.herald.example.com",
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
			}},
			ClientConfig: admissionregistrationv1.WebhookClientConfig{
				Service: &admissionregistrationv1.ServiceReference{Namespace: "herald", Name: "webhooks", Path: ptr.To("/mutate--v1-configmap")},
			},
			NamespaceSelector:       &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: "default"}},
			FailurePolicy:           ptr.To(admissionregistrationv1.Ignore),
			SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNone),
			AdmissionReviewVersions: []string{"v1"},
		}},
	}
}

func main() {
	ctrl.SetLogger(zap.New())
	certificate, err := webhook.NewSelfSigned() // in a cluster: webhook.Options.CertDir, and no local.Webhooks
	utilruntime.Must(err)
	mgr, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{
		HealthProbeBindAddress: "127.0.0.1:8081",
		Metrics: metricsserver.Options{
			BindAddress: "127.0.0.1:8443", SecureServing: true, FilterProvider: filters.WithAuthenticationAndAuthorization,
		},
		LeaderElection: true, LeaderElectionID: "herald", LeaderElectionNamespace: "default", LeaderElectionReleaseOnCancel: true,
		WebhookServer: webhook.NewServer(webhook.Options{Host: "127.0.0.1", TLSOpts: []func(*tls.Config){certificate.TLS}}),
	})
	utilruntime.Must(err)
	h := &herald{mgr.GetClient(), mgr.GetEventRecorder("herald")}
	utilruntime.Must(ctrl.NewControllerManagedBy(mgr).For(&corev1.ConfigMap{}).Complete(h))
	utilruntime.Must(ctrl.NewWebhookManagedBy(mgr, &corev1.ConfigMap{}).WithDefaulter(h).Complete())
	utilruntime.Must(mgr.Add(&local.Webhooks{
		Client: mgr.GetClient(), Server: mgr.GetWebhookServer(), Address: "127.0.0.1:9443", CABundle: certificate.CABundle,
		Configurations: []client.Object{configuration()},
	}))
	utilruntime.Must(mgr.AddHealthzCheck("ping", healthz.Ping))
	utilruntime.Must(mgr.AddReadyzCheck("configmaps", manager.CacheSyncedCheck(mgr, &corev1.ConfigMap{})))
	utilruntime.Must(mgr.AddReadyzCheck("webhooks", mgr.GetWebhookServer().StartedChecker()))
	utilruntime.Must(mgr.Start(ctrl.SetupSignalHandler()))
}
