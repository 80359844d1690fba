// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/manager"
	"github.com/wherry-dev/wherry/manager/healthz"
	"github.com/wherry-dev/wherry/manager/metrics/filters"
	metricsserver "github.com/wherry-dev/wherry/manager/metrics/server"
)

// token makes a service account and returns a token of it.
func token(t *testing.T, name string) string {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	if err := live.Create(t.Context(), account); err != nil {
		t.Fatal(err)
	}
	request := &authenticationv1.TokenRequest{}
	if err := live.SubResource("token").Create(t.Context(), account, request); err != nil {
		t.Fatal(err)
	}
	return request.Status.Token
}

func TestMetricsWithAndWithoutPermission(t *testing.T) {
	account, role := unique("reader"), unique("metrics-reader")
	reader, stranger := token(t, account), token(t, unique("stranger"))
	for _, obj := range []client.Object{
		&rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: role},
			Rules:      []rbacv1.PolicyRule{{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}}},
		},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: role},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "default", Name: account}},
		},
	} {
		if err := live.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
	address := freeAddress(t)
	m := start(t, config, manager.Options{Metrics: metricsserver.Options{
		BindAddress: address, SecureServing: true, FilterProvider: filters.WithAuthenticationAndAuthorization,
		ExtraHandlers: map[string]http.Handler{"/extra": http.NotFoundHandler()},
	}})
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	defer transport.CloseIdleConnections()
	get := func(path, token string) (int, string) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+address+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		resp, err := (&http.Client{Transport: transport}).Do(req)
		if err != nil {
			return 0, err.Error()
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(b)
	}
	eventually(t, patience, "the metrics server answers", func() bool { code, _ := get("/metrics", ""); return code != 0 })
	for _, c := range []struct {
		name, path, token string
		code              int
	}{
		{"with permission", "/metrics", reader, 200},
		{"with permission for another path", "/extra", reader, 403},
		{"without permission", "/metrics", stranger, 403},
		{"admin", "/metrics", config.BearerToken, 200},
		{"no token", "/metrics", "", 401},
		{"bad token", "/metrics", "nonsense", 401},
		{"a token with its signature cut off", "/metrics", reader[:strings.LastIndex(reader, ".")], 401},
	} {
		if c.name == "admin" && c.token == "" {
			continue // this server's admin has a certificate instead
		}
		if code, body := get(c.path, c.token); code != c.code {
			t.Errorf("%s: %d %.80s, want %d", c.name, code, body, c.code)
		}
	}
	_, body := get("/metrics", reader)
	for _, want := range []string{"rest_client_requests_total{code=\"201\"", "go_goroutines", "process_start_time_seconds"} {
		if !strings.Contains(body, want) {
			t.Errorf("no %s among the metrics", want)
		}
	}
	if err := m.stop(); err != nil {
		t.Error(err)
	}
}

func TestProbesOverTCP(t *testing.T) {
	address := freeAddress(t)
	o := manager.Options{Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: address}
	m, err := manager.New(config, o)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.AddReadyzCheck("configmaps", manager.CacheSyncedCheck(m, &corev1.ConfigMap{})); err != nil {
		t.Fatal(err)
	}
	if err := m.AddHealthzCheck("ping", healthz.Ping); err != nil {
		t.Fatal(err)
	}
	// The address is taken from New on.
	if _, err := manager.New(config, o); err == nil || !strings.Contains(err.Error(), address) {
		t.Errorf("a second manager at %s: %v", address, err)
	}
	ctx := t.Context()
	ended := make(chan error, 1)
	stopped, stop := context.WithCancel(ctx)
	go func() { ended <- m.Start(stopped) }()
	get := func(path string) int {
		resp, err := http.Get("http://" + address + path)
		if err != nil {
			return 0
		}
		_ = resp.Body.Close()
		return resp.StatusCode
	}
	eventually(t, patience, "ready", func() bool { return get("/readyz") == 200 })
	if code := get("/healthz/ping"); code != 200 {
		t.Errorf("ping: %d", code)
	}
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatalf("the address is not free after the stop: %v", err)
	}
	_ = l.Close()
}
