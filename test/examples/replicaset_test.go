// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package examples_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/examples/replicaset/podwebhook"
	"github.com/wherry-dev/wherry/webhook"
)

var sample = client.ObjectKey{Namespace: "default", Name: "web"}

// pods are those of the sample ReplicaSet that are not on their way out.
func pods(t *testing.T) (of *appsv1.ReplicaSet, alive []corev1.Pod, err error) {
	t.Helper()
	of = &appsv1.ReplicaSet{}
	if err := live.Get(t.Context(), sample, of); err != nil {
		return nil, nil, err
	}
	var list corev1.PodList
	if err := live.List(t.Context(), &list, client.InNamespace(sample.Namespace)); err != nil {
		return nil, nil, err
	}
	for _, p := range list.Items {
		if metav1.IsControlledBy(&p, of) && p.DeletionTimestamp == nil {
			alive = append(alive, p)
		}
	}
	return of, alive, nil
}

// misfit is a pod that says it is the sample's, and that the sample could not keep.
func misfit(of *appsv1.ReplicaSet, name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: of.Namespace, Name: name, Labels: map[string]string{"app": "other"},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(of, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))},
		},
		Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "c", Image: "example.com/c:1"}}},
	}
}

// installed reads the example's webhook configurations.
func installed(t *testing.T) (*admissionregistrationv1.MutatingWebhookConfiguration, *admissionregistrationv1.ValidatingWebhookConfiguration, error) {
	t.Helper()
	m, v := &admissionregistrationv1.MutatingWebhookConfiguration{}, &admissionregistrationv1.ValidatingWebhookConfiguration{}
	err := errors.Join(live.Get(t.Context(), client.ObjectKey{Name: "replicaset-pods"}, m), live.Get(t.Context(), client.ObjectKey{Name: "replicaset-pods"}, v))
	return m, v, err
}

// refuses waits until the API server refuses a misfit: it takes a moment to hear of webhooks.
func (p *program) refuses(name string) {
	p.Helper()
	p.eventually("a misfit is refused", func() error {
		of, _, err := pods(p.T)
		if err != nil {
			return err
		}
		m := misfit(of, name)
		err = live.Create(p.Context(), m)
		if err == nil {
			return errors.Join(errors.New("it was let through"), live.Delete(p.Context(), m, client.GracePeriodSeconds(0)))
		}
		var status apierrors.APIStatus
		if !errors.As(err, &status) || !apierrors.IsInvalid(err) || len(status.Status().Details.Causes) != 2 || !strings.Contains(err.Error(), `selector "app=web"`) {
			p.Fatalf("refused with %v", err)
		}
		return nil
	})
}

// isTaken creates a misfit: nothing is in its way, and nobody is waited for.
func isTaken(t *testing.T, name string) {
	t.Helper()
	of, _, err := pods(t)
	if err != nil {
		t.Fatal(err)
	}
	const waits, tries = 2 * time.Second, 5 // waits is how long the API server waits for a webhook
	quickest := time.Hour
	for i := 0; i < tries && quickest > waits; i++ { // a machine that does other things may stop in the middle of one, not of each
		m := misfit(of, name)
		began := time.Now()
		if err := live.Create(t.Context(), m); err != nil {
			t.Errorf("without the webhooks the pod is refused: %v", err)
		}
		quickest = min(quickest, time.Since(began))
		if err := live.Delete(t.Context(), m, client.GracePeriodSeconds(0)); err != nil {
			t.Error(err)
		}
	}
	if quickest > waits {
		t.Errorf("it took %v", quickest)
	}
}

// The example with all its flags: what `make run` does, and what a cluster would.
func TestReplicaSet(t *testing.T) {
	probes, metrics := freeAddress(t), freeAddress(t)
	flags := []string{"--sample", "--leader-elect", "--health-probe-bind-address=" + probes, "--metrics-bind-address=" + metrics}
	p := start(t, "replicaset", flags...)
	page := p.awaitReady(probes)
	for _, check := range []string{"[+]replicasets ok", "[+]pods ok", "[+]webhooks ok", "[+]webhook-certificate ok"} {
		if !strings.Contains(page, check) {
			t.Errorf("no %q in\n%s", check, page)
		}
	}
	p.eventually("three pods", func() error {
		_, alive, err := pods(t)
		if err == nil && len(alive) != 3 {
			err = fmt.Errorf("%d pods", len(alive))
		}
		return err
	})
	p.refuses("bad-1")
	t.Run("pods are completed", func(t *testing.T) { completed(t, p) })
	t.Run("taking a pod out warns", func(t *testing.T) { takenOut(t, p) })
	t.Run("metrics", func(t *testing.T) { metered(t, metrics) })
	lease := &coordinationv1.Lease{}
	if err := live.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "replicaset.example.com"}, lease); err != nil || ptr.Deref(lease.Spec.HolderIdentity, "") == "" {
		t.Errorf("the lease: %v, %+v", err, lease.Spec)
	}

	p.interrupt()
	if _, _, err := installed(t); !apierrors.IsNotFound(err) {
		t.Errorf("webhook configurations are left behind: %v", err)
	}
	isTaken(t, "after-the-stop")
	if err := live.Get(t.Context(), client.ObjectKeyFromObject(lease), lease); err != nil || ptr.Deref(lease.Spec.HolderIdentity, "") != "" {
		t.Errorf("the lease is not given up: %v, %+v", err, lease.Spec)
	}
}

// A new pod gets the annotation, and is nobody else's business.
func completed(t *testing.T, p *program) {
	_, alive, err := pods(t)
	if err != nil {
		t.Fatal(err)
	}
	old := map[string]bool{}
	for _, pod := range alive {
		old[pod.Name] = true
	}
	if err := live.Delete(t.Context(), &alive[0], client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	p.eventually("its replacement names its container", func() error {
		_, alive, err := pods(t)
		for _, pod := range alive {
			if !old[pod.Name] && pod.Annotations[podwebhook.DefaultContainer] == "web" {
				return nil
			}
		}
		return errors.Join(err, errors.New("none does"))
	})
	stray := misfit(&appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default"}}, "stray")
	stray.OwnerReferences = nil
	if err := live.Create(t.Context(), stray); err != nil || stray.Annotations[podwebhook.DefaultContainer] != "" {
		t.Errorf("a pod that is nobody's: %v, %v", err, stray.Annotations)
	}
	if err := live.Delete(t.Context(), stray, client.GracePeriodSeconds(0)); err != nil {
		t.Error(err)
	}
}

func takenOut(t *testing.T, p *program) {
	_, alive, err := pods(t)
	if err != nil || len(alive) == 0 {
		t.Fatalf("%d pods, %v", len(alive), err)
	}
	out := &alive[0]
	heard.taken()
	if err := live.Patch(t.Context(), out, client.RawPatch(client.Merge.Type(), []byte(`{"metadata":{"labels":{"app":"debug"}}}`))); err != nil {
		t.Fatal(err)
	}
	if got := heard.taken(); len(got) != 1 || !strings.Contains(got[0], "does not match the selector of ReplicaSet web any more") {
		t.Errorf("warnings: %q", got)
	}
	p.eventually("it is released and replaced", func() error {
		_, alive, err := pods(t)
		if err == nil && len(alive) != 3 {
			err = fmt.Errorf("%d pods", len(alive))
		}
		for _, pod := range alive {
			if pod.Name == out.Name {
				err = errors.New("it is still the ReplicaSet's")
			}
		}
		return err
	})
	if err := live.Delete(t.Context(), out, client.GracePeriodSeconds(0)); err != nil {
		t.Error(err)
	}
}

func metered(t *testing.T, address string) {
	reader, stranger := token(t, "replicaset-reader", true), token(t, "replicaset-stranger", false)
	for who, c := range map[string]struct {
		token string
		code  int
	}{"nobody": {"", 401}, "a stranger": {stranger, 403}, "a reader": {reader, 200}} {
		code, body, err := get("https://"+address+"/metrics", c.token)
		if err != nil || code != c.code {
			t.Errorf("%s: %d, want %d; %v", who, code, c.code, err)
		}
		if code != 200 {
			continue
		}
		for _, want := range []string{
			`leader_election_master_status{name="replicaset.example.com"} 1`,
			`controller_runtime_webhook_requests_total{code="200",webhook="/validate--v1-pod"}`,
			`controller_runtime_reconcile_total{controller="replicaset",result="success"}`,
		} {
			if !strings.Contains(body, want) {
				t.Errorf("no %s among the metrics", want)
			}
		}
	}
}

// What a killed program leaves keeps no pod from being written, and the next one takes it over.
func TestKilledReplicaSet(t *testing.T) {
	p := start(t, "replicaset", "--sample")
	p.refuses("bad-2")
	p.kill()
	left, _, err := installed(t)
	if err != nil {
		t.Fatalf("this test needs what a killed program leaves: %v", err)
	}
	isTaken(t, "after-the-kill")

	p = start(t, "replicaset", "--sample")
	p.eventually("the configurations are the next one's", func() error {
		now, _, err := installed(t)
		if err == nil && bytes.Equal(now.Webhooks[0].ClientConfig.CABundle, left.Webhooks[0].ClientConfig.CABundle) {
			err = errors.New("they trust the certificate of the one that was killed")
		}
		return err
	})
	p.refuses("bad-3")
	p.interrupt()
	if _, _, err := installed(t); !apierrors.IsNotFound(err) {
		t.Errorf("webhook configurations are left behind: %v", err)
	}
}

// With a certificate of the cluster's, the example serves and tells nobody.
func TestReplicaSetWithCertificateFiles(t *testing.T) {
	folder, cert := t.TempDir(), keyPair(t)
	for name, b := range cert {
		if err := os.WriteFile(filepath.Join(folder, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	address, probes := freeAddress(t), freeAddress(t)
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	p := start(t, "replicaset", "--sample", "--webhook-cert-path="+folder, "--webhook-port="+port, "--health-probe-bind-address="+probes)
	p.awaitReady(probes)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(cert["tls.crt"])
	conn, err := tls.Dial("tcp", address, &tls.Config{RootCAs: pool, ServerName: "localhost"})
	if err != nil {
		t.Fatalf("the webhooks are not served by the files' certificate: %v", err)
	}
	conn.Close()
	if _, _, err := installed(t); !apierrors.IsNotFound(err) {
		t.Errorf("it wrote webhook configurations: %v", err)
	}
	p.interrupt()
}

// keyPair is a certificate and its key, as files have them.
func keyPair(t *testing.T) map[string][]byte {
	t.Helper()
	own, err := webhook.NewSelfSigned()
	if err != nil {
		t.Fatal(err)
	}
	var c tls.Config
	own.TLS(&c)
	pair, err := c.GetCertificate(nil)
	if err != nil {
		t.Fatal(err)
	}
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	return map[string][]byte{"tls.crt": own.CABundle, "tls.key": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})}
}

// What cannot work is told in one line, with a status that says so.
func TestReplicaSetRefuses(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"probe port in use":   {[]string{"--health-probe-bind-address=" + taken.Addr().String()}, "health probe server: error listening on " + taken.Addr().String()},
		"metrics port in use": {[]string{"--metrics-bind-address=" + taken.Addr().String()}, "metrics server: listen on"},
		"no certificate":      {[]string{"--webhook-cert-path=" + t.TempDir()}, "tls.crt"},
		"no such file":        {[]string{"--webhook-cert-path=" + t.TempDir(), "--webhook-cert-name=no.pem"}, "no.pem"},
		"not a port":          {[]string{"--webhook-port=70000"}, "--webhook-port 70000 is no port"},
		"no flag":             {[]string{"serve"}, `unexpected argument "serve"`},
	} {
		p := start(t, "replicaset", c.args...)
		select {
		case <-p.exited:
		case <-time.After(settle):
			t.Fatalf("%s: it runs on; it said:\n%s", name, p.said)
		}
		last := p.said.String()
		last = last[strings.LastIndexByte(strings.TrimRight(last, "\n"), '\n')+1:]
		if p.cmd.ProcessState.ExitCode() != 1 || !strings.HasPrefix(last, "replicaset: ") || !strings.Contains(last, c.want) {
			t.Errorf("%s: ended with %d, saying %q", name, p.cmd.ProcessState.ExitCode(), last)
		}
	}
}
