package main

import (
	"crypto/tls"
	"flag"
	"os"

	// Log-in plugins that a kubeconfig may name.
	_ "k8s.io/client-go/plugin/pkg/client/auth"

	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	notesv1 "example.org/memo/api/v1"
	"example.org/memo/internal/controller"
	webhookv1 "example.org/memo/internal/webhook/v1"
	// +kubebuilder:scaffold:imports
)

var (
	scheme   = runtime.NewScheme()
	setupLog = ctrl.Log.WithName("setup")
)

func init() {
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))

	utilruntime.Must(notesv1.AddToScheme(scheme))
	// +kubebuilder:scaffold:scheme
}

func main() {
	var metricsAddr, metricsCertPath, webhookCertPath, probeAddr string
	var enableLeaderElection, secureMetrics, enableHTTP2 bool
	var tlsOpts []func(*tls.Config)
	flag.StringVar(&metricsAddr, "metrics-bind-address", "0", "where metrics are served; 0 switches them off")
	flag.StringVar(&probeAddr, "health-probe-bind-address", ":8081", "where probes are answered")
	flag.BoolVar(&enableLeaderElection, "leader-elect", false, "let one replica work at a time")
	flag.BoolVar(&secureMetrics, "metrics-secure", true, "serve metrics over HTTPS, to those who may read them")
	flag.StringVar(&webhookCertPath, "webhook-cert-path", "", "folder of the webhook server's certificate")
	flag.StringVar(&metricsCertPath, "metrics-cert-path", "", "folder of the metrics server's certificate")
	flag.BoolVar(&enableHTTP2, "enable-http2", false, "speak HTTP/2")
	opts := zap.Options{Development: true}
	opts.BindFlags(flag.CommandLine)
	flag.Parse()

	ctrl.SetLogger(zap.New(zap.UseFlagOptions(&opts)))

	if !enableHTTP2 {
		tlsOpts = append(tlsOpts, func(c *tls.Config) { c.NextProtos = []string{"http/1.1"} })
	}
	metricsOptions := metricsserver.Options{BindAddress: metricsAddr, SecureServing: secureMetrics, TLSOpts: tlsOpts, CertDir: metricsCertPath}
	if secureMetrics {
		metricsOptions.FilterProvider = filters.WithAuthenticationAndAuthorization
	}

	mgr, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{
		Scheme:                 scheme,
		Metrics:                metricsOptions,
		WebhookServer:          webhook.NewServer(webhook.Options{TLSOpts: tlsOpts, CertDir: webhookCertPath}),
		HealthProbeBindAddress: probeAddr,
		LeaderElection:         enableLeaderElection,
		LeaderElectionID:       "a1b2c3d4.example.org",
	})
	if err != nil {
		setupLog.Error(err, "no manager")
		os.Exit(1)
	}

	if err := (&controller.MemoReconciler{Client: mgr.GetClient(), Scheme: mgr.GetScheme()}).SetupWithManager(mgr); err != nil {
		setupLog.Error(err, "no controller", "controller", "Memo")
		os.Exit(1)
	}
	if os.Getenv("ENABLE_WEBHOOKS") != "false" {
		if err := webhookv1.SetupMemoWebhookWithManager(mgr); err != nil {
			setupLog.Error(err, "no webhook", "webhook", "Memo")
			os.Exit(1)
		}
	}
	// +kubebuilder:scaffold:builder

	if err := mgr.AddHealthzCheck("healthz", healthz.Ping); err != nil {
		setupLog.Error(err, "no health check")
		os.Exit(1)
	}
	if err := mgr.AddReadyzCheck("readyz", healthz.Ping); err != nil {
		setupLog.Error(err, "no ready check")
		os.Exit(1)
	}

	setupLog.Info("sailing")
	if err := mgr.Start(ctrl.SetupSignalHandler()); err != nil {
		setupLog.Error(err, "the manager failed")
		os.Exit(1)
	}
}
