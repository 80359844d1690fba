// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package envtest

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
)

// WaitUntilServed waits until this process answers on the path of every webhook
// that was installed: to be called once the manager under test was started. If
// ctx ends before, the error names a webhook and says why it is not served.
// controller-runtime has no such method; its users ask the port in a loop, which
// does not find a path that nobody serves.
func (o *WebhookInstallOptions) WaitUntilServed(ctx context.Context) error {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(o.LocalServingCAData)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}
	defer transport.CloseIdleConnections()
	c := &http.Client{Transport: transport, Timeout: probeLimit}
	calls, err := o.calls()
	if err != nil {
		return err
	}
	for _, w := range calls {
		err := poll(ctx, orDefault(o.PollInterval, defaultPollInterval), func() error { return answers(c, w.url) })
		if err != nil {
			return fmt.Errorf("envtest: webhook %s calls %s: %w", w.name, w.url, err)
		}
	}
	return nil
}

// answers says why a webhook's URL is not served, or nil. It asks without ctx:
// the last answer is worth more than that time was up.
func answers(c *http.Client, url string) error {
	got, err := c.Post(url, "application/json", strings.NewReader("{}"))
	if verify, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return fmt.Errorf("another certificate is served there than that of LocalServingCertDir; set the webhook server's CertDir to it: %w", verify)
	}
	if err != nil {
		return fmt.Errorf("no webhook server answers; give the manager one on LocalServingHost and LocalServingPort, and start it: %w", err)
	}
	got.Body.Close()
	if got.StatusCode == http.StatusNotFound {
		return errors.New("nobody serves that path; register the webhook with the manager, or correct the path in its configuration")
	}
	return nil
}

// call is a webhook and where it calls.
type call struct{ name, url string }

// calls lists the webhooks that call this process.
func (o *WebhookInstallOptions) calls() ([]call, error) {
	address, err := o.address()
	if err != nil {
		return nil, err
	}
	var out []call
	add := func(name string, c admissionregistrationv1.WebhookClientConfig) {
		if c.URL != nil && strings.HasPrefix(*c.URL, "https://"+address+"/") {
			out = append(out, call{name, *c.URL})
		}
	}
	for _, c := range o.MutatingWebhooks {
		for _, w := range c.Webhooks {
			add(w.Name, w.ClientConfig)
		}
	}
	for _, c := range o.ValidatingWebhooks {
		for _, w := range c.Webhooks {
			add(w.Name, w.ClientConfig)
		}
	}
	return out, nil
}
