// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

// Command replicaset runs the ReplicaSet reconciler of this example, and its
// webhooks for pods, against the cluster of your kubeconfig, which should be one
// that has no ReplicaSet controller of its own, such as the embedded API server
// of `make run`.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	ctrl "github.com/wherry-dev/wherry"
	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/client/log/zap"
	"github.com/wherry-dev/wherry/examples/replicaset/podwebhook"
	"github.com/wherry-dev/wherry/examples/replicaset/reconciler"
	"github.com/wherry-dev/wherry/manager"
	"github.com/wherry-dev/wherry/manager/healthz"
	"github.com/wherry-dev/wherry/webhook"
	"github.com/wherry-dev/wherry/webhook/local"
)

// reachTimeout bounds the questions asked of the API server before the manager
// starts; one that does not answer by then counts as not reachable.
const reachTimeout = 10 * time.Second

// certificateMargin is how long before its certificate ends a replica stops being ready: time to renew it.
const certificateMargin = time.Hour

func main() {
	if err := run(ctrl.SetupSignalHandler()); err != nil {
		fmt.Fprintln(os.Stderr, "replicaset: "+strings.ReplaceAll(err.Error(), "\n", "; ")) // one line, whatever was joined
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	set, err := newSettings(flag.CommandLine, os.Args[1:])
	if err != nil {
		return err
	}
	ctrl.SetLogger(zap.New(zap.UseFlagOptions(&set.logs)))
	cfg, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	options := set.manager()
	if options.Scheme, err = newScheme(); err != nil {
		return err
	}
	if err := reconciler.RequireReadYourWrites(options); err != nil {
		return err
	}
	server, configurations, err := set.webhooks(cfg.Host)
	if err != nil {
		return err
	}
	options.WebhookServer = server
	mgr, err := ctrl.NewManager(cfg, options)
	if err != nil {
		return err
	}
	rs := &reconciler.ReplicaSet{Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Scheme: options.Scheme}
	if err := rs.SetupWithManager(mgr); err != nil {
		return err
	}
	if server != nil {
		if err := addWebhooks(mgr, configurations); err != nil {
			return err
		}
	}
	if err := addChecks(mgr); err != nil {
		return err
	}
	if err := prepare(ctx, mgr, set.force, set.sample); err != nil {
		return unreachable(cfg.Host, err)
	}
	return mgr.Start(ctx)
}

func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	return scheme, errors.Join(
		appsv1.AddToScheme(scheme), corev1.AddToScheme(scheme), coordinationv1.AddToScheme(scheme), admissionregistrationv1.AddToScheme(scheme))
}

// addWebhooks has mgr serve the webhooks for pods, and tell the API server of them if there are configurations for that.
func addWebhooks(mgr ctrl.Manager, configurations *local.Webhooks) error {
	if err := (&podwebhook.Pod{Reader: mgr.GetClient()}).SetupWithManager(mgr); err != nil {
		return err
	}
	server := mgr.GetWebhookServer()
	checks := []error{mgr.AddReadyzCheck("webhooks", server.StartedChecker())}
	if own, ok := server.(*webhook.DefaultServer); ok {
		checks = append(checks, mgr.AddReadyzCheck("webhook-certificate", own.CertificateChecker(certificateMargin)))
	}
	if configurations != nil {
		configurations.Client = mgr.GetClient()
		checks = append(checks, mgr.Add(configurations))
	}
	return errors.Join(checks...)
}

// addChecks makes the process ready when its caches are filled.
func addChecks(mgr ctrl.Manager) error {
	return errors.Join(
		mgr.AddHealthzCheck("ping", healthz.Ping),
		mgr.AddReadyzCheck("replicasets", manager.CacheSyncedCheck(mgr, &appsv1.ReplicaSet{})),
		mgr.AddReadyzCheck("pods", manager.CacheSyncedCheck(mgr, &corev1.Pod{})),
	)
}

// prepare asks what must be known of the cluster before the manager starts.
func prepare(ctx context.Context, mgr ctrl.Manager, force, sample bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, reachTimeout, errNoAnswer)
	defer cancel()
	// Ask once before the manager does: it would wait for a server to appear.
	if err := mgr.GetAPIReader().List(ctx, &appsv1.ReplicaSetList{}, client.Limit(1)); err != nil {
		return err
	}
	if !force {
		if err := reconciler.RefuseRival(ctx, mgr.GetAPIReader()); err != nil {
			return err
		}
	}
	if sample {
		return createSample(ctx, mgr.GetClient())
	}
	return nil
}

var errNoAnswer = fmt.Errorf("no answer within %v", reachTimeout)

// unreachable says so, with the remedy, if err came from the network rather
// than from an API server.
func unreachable(host string, err error) error {
	var network interface{ Timeout() bool }
	if errors.As(err, &network) || errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("API server %s is not reachable: start it, or name another with --kubeconfig or KUBECONFIG: %w", host, err)
	}
	return err
}
