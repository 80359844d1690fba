// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/manager"
	metricsserver "github.com/wherry-dev/wherry/manager/metrics/server"
	"github.com/wherry-dev/wherry/test/envtest"
	"github.com/wherry-dev/wherry/webhook"
	"github.com/wherry-dev/wherry/webhook/authentication"
)

const (
	tokenPath = "/authenticate"
	// remembered is how long the API server keeps an answer. Beside that it knows for 10 s whom it has let in.
	remembered = "1ms"
)

// doorman knows some tokens.
func doorman(_ context.Context, req authentication.Request) authentication.Response {
	jane := authenticationv1.UserInfo{Username: "jane", UID: "7", Groups: []string{"team"}}
	switch req.Spec.Token {
	case "good", "asked for late":
		return authentication.ReviewResponse(true, jane, "", req.Spec.Audiences...)
	case "unaware": // of audiences
		return authentication.Authenticated("", jane)
	case "for another":
		return authentication.ReviewResponse(true, jane, "", "somebody-else")
	case "broken":
		return authentication.Errored(errors.New("the directory is down"))
	case "panic":
		panic("secret")
	}
	return authentication.Unauthenticated("unknown token", authenticationv1.UserInfo{})
}

// reviewConfig writes the file that tells an API server where tokens are reviewed.
func reviewConfig(t *testing.T, url string) string {
	t.Helper()
	k := clientcmdapi.NewConfig()
	k.Clusters["webhook"] = &clientcmdapi.Cluster{Server: url, CertificateAuthorityData: certificate.CABundle}
	k.Contexts["webhook"] = &clientcmdapi.Context{Cluster: "webhook"}
	k.CurrentContext = "webhook"
	file := filepath.Join(t.TempDir(), "tokens.kubeconfig")
	if err := clientcmd.WriteToFile(*k, file); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestTokensAreReviewed has an API server ask us whose tokens it is shown.
func TestTokensAreReviewed(t *testing.T) {
	port := freePort(t)
	env := &envtest.Environment{ControlPlaneStartTimeout: startLimit}
	env.ControlPlane.GetAPIServer().Configure().
		Set("authentication-token-webhook-config-file", reviewConfig(t, "https://"+net.JoinHostPort("127.0.0.1", strconv.Itoa(port))+tokenPath)).
		Set("authentication-token-webhook-version", "v1").
		Set("authentication-token-webhook-cache-ttl", remembered)
	admin, err := env.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := env.Stop(); err != nil {
			t.Error(err)
		}
	})
	stop := serveTokens(t, admin, port)
	before := requests(t, tokenPath)
	for token, known := range map[string]bool{"good": true, "unaware": true, "for another": false, "unknown": false, "broken": false, "panic": false} {
		user, err := whoIs(t, admin, token)
		switch {
		case !known && !apierrors.IsUnauthorized(err):
			t.Errorf("%s: %+v, %v", token, user, err)
		case known && (err != nil || user.Username != "jane" || user.UID != "7" || !slices.Contains(user.Groups, "team") || !slices.Contains(user.Groups, "system:authenticated")):
			t.Errorf("%s: %+v, %v", token, user, err)
		}
	}
	if got := requests(t, tokenPath) - before; got < 6 {
		t.Errorf("the webhook counted %v requests for six tokens", got)
	}

	// Without its webhook the API server lets nobody in by such tokens, but those it has let in in the last seconds, and serves
	// everybody else.
	stop()
	began := time.Now()
	if user, err := whoIs(t, admin, "asked for late"); !apierrors.IsUnauthorized(err) {
		t.Errorf("without the webhook: %+v, %v", user, err)
	}
	t.Logf("refused after %s without the webhook", time.Since(began).Round(time.Millisecond))
	c, err := client.New(admin, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.List(t.Context(), &corev1.NamespaceList{}); err != nil {
		t.Errorf("the admin: %v", err)
	}
}

// serveTokens runs a manager with the webhook until stop is called.
func serveTokens(t *testing.T, config *rest.Config, port int) (stop func()) {
	t.Helper()
	server := webhook.NewServer(webhook.Options{Host: "127.0.0.1", Port: port, TLSOpts: []func(*tls.Config){certificate.TLS}})
	m, err := manager.New(config, manager.Options{Metrics: metricsserver.Options{BindAddress: "0"}, WebhookServer: server})
	if err != nil {
		t.Fatal(err)
	}
	m.GetWebhookServer().Register(tokenPath, &authentication.Webhook{Handler: authentication.HandlerFunc(doorman)})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- m.Start(ctx) }()
	stop = func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		ended <- nil // for the one who stops again
	}
	t.Cleanup(stop)
	eventually(t, "the webhook server has started", func() error { return server.StartedChecker()(nil) })
	return stop
}

// whoIs asks the API server who the bearer of a token is to it.
func whoIs(t *testing.T, config *rest.Config, token string) (authenticationv1.UserInfo, error) {
	t.Helper()
	bearer := rest.AnonymousClientConfig(config)
	bearer.BearerToken = token
	c, err := client.New(bearer, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	review := &authenticationv1.SelfSubjectReview{}
	err = c.Create(t.Context(), review)
	return review.Status.UserInfo, err
}
