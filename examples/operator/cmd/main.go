// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

// Command cmd is the operator.
package main

import (
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"os"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	ctrl "github.com/wherry-dev/wherry"
	"github.com/wherry-dev/wherry/client/log/zap"
	"github.com/wherry-dev/wherry/manager/healthz"
	"github.com/wherry-dev/wherry/manager/metrics/filters"
	"github.com/wherry-dev/wherry/webhook"

	webv1alpha1 "github.com/wherry-dev/wherry/examples/operator/api/v1alpha1"
	"github.com/wherry-dev/wherry/examples/operator/internal/controller"
	webhookv1alpha1 "github.com/wherry-dev/wherry/examples/operator/internal/webhook/v1alpha1"
	// +kubebuilder:scaffold:imports
)

var (
	scheme   = runtime.NewScheme()
	setupLog = ctrl.Log.WithName("setup")
)

// The API groups that the controllers work with.
func init() {
	utilruntime.Must(appsv1.AddToScheme(scheme))
	utilruntime.Must(webv1alpha1.AddToScheme(scheme))
	// +kubebuilder:scaffold:scheme
}

// What every operator needs beside the rights of its reconcilers: events, a lease, and to ask who may read its metrics.
// +kubebuilder:rbac:groups="";events.k8s.io,resources=events,verbs=create;patch
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,namespace=system,verbs=get;create;update
// +kubebuilder:rbac:groups=authentication.k8s.io,resources=tokenreviews,verbs=create
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create

func main() {
	if err := run(ctrl.SetupSignalHandler(), os.Args[1:]); err != nil {
		setupLog.Error(err, "The operator gave up")
		os.Exit(1)
	}
}

// run is the operator. It returns after ctx ended and everything is stopped. The test calls it as main does.
func run(ctx context.Context, args []string) error {
	options := ctrl.Options{Scheme: scheme, LeaderElectionID: "operator-leader.example.com", LeaderElectionReleaseOnCancel: true}
	hooks, logs, http2 := webhook.Options{}, zap.Options{}, false
	flags := flag.NewFlagSet("manager", flag.ExitOnError)
	flags.StringVar(&options.Metrics.BindAddress, "metrics-bind-address", "0", "Where to serve metrics, such as :8443; 0 serves none.")
	flags.BoolVar(&options.Metrics.SecureServing, "metrics-secure", true, "Serve metrics over HTTPS, to those who may get /metrics.")
	flags.StringVar(&options.Metrics.CertDir, "metrics-cert-path", "", "The folder of the metrics certificate. Without one it is self-signed.")
	flags.StringVar(&options.Metrics.CertName, "metrics-cert-name", "tls.crt", "The file of the metrics certificate.")
	flags.StringVar(&options.Metrics.KeyName, "metrics-cert-key", "tls.key", "The file of the metrics key.")
	flags.StringVar(&hooks.CertDir, "webhook-cert-path", "", "The folder of the webhook certificate.")
	flags.StringVar(&hooks.CertName, "webhook-cert-name", "tls.crt", "The file of the webhook certificate.")
	flags.StringVar(&hooks.KeyName, "webhook-cert-key", "tls.key", "The file of the webhook key.")
	flags.IntVar(&hooks.Port, "webhook-port", 9443, "The port of the webhooks; -1 serves none.")
	flags.BoolVar(&http2, "enable-http2", false, "Speak HTTP/2 on the metrics and webhook ports as well.")
	flags.StringVar(&options.HealthProbeBindAddress, "health-probe-bind-address", ":8081", "Where to answer /healthz and /readyz.")
	flags.BoolVar(&options.LeaderElection, "leader-elect", false, "Let one replica only reconcile.")
	flags.StringVar(&options.LeaderElectionNamespace, "leader-elect-namespace", "", "The namespace of the lease; in a pod, the pod's.")
	logs.BindFlags(flags)
	ctrl.RegisterFlags(flags) // --kubeconfig
	if err := flags.Parse(args); err != nil {
		return err
	}
	ctrl.SetLogger(zap.New(zap.UseFlagOptions(&logs)))

	if options.Metrics.SecureServing {
		options.Metrics.FilterProvider = filters.WithAuthenticationAndAuthorization
	}
	if http2 {
		hooks.TLSOpts = []func(*tls.Config){func(c *tls.Config) { c.NextProtos = []string{"h2", "http/1.1"} }}
		options.Metrics.TLSOpts = hooks.TLSOpts
	}
	options.WebhookServer = webhook.NewServer(hooks)
	cfg, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(cfg, options)
	if err != nil {
		return err
	}
	if err := (&controller.WebsiteReconciler{
		Client:   mgr.GetClient(),
		Scheme:   mgr.GetScheme(),
		Recorder: mgr.GetEventRecorder("website-controller"),
	}).SetupWithManager(mgr); err != nil {
		return err
	}
	if err := webhookv1alpha1.SetupWebsiteWebhookWithManager(mgr); err != nil {
		return err
	}
	// +kubebuilder:scaffold:builder

	err = errors.Join(mgr.AddHealthzCheck("healthz", healthz.Ping), mgr.AddReadyzCheck("readyz", options.WebhookServer.StartedChecker()))
	if err != nil {
		return err
	}
	return mgr.Start(ctx)
}
