// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/wherry-dev/wherry/webhook"
	"github.com/wherry-dev/wherry/webhook/admission"
)

// A server for development: its certificate is its own, and what goes into the caBundle of a webhook configuration.
func ExampleNewSelfSigned() {
	certificate, err := webhook.NewSelfSigned("localhost")
	if err != nil {
		fmt.Println(err)
		return
	}
	server := webhook.NewServer(webhook.Options{TLSOpts: []func(*tls.Config){certificate.TLS}})
	fmt.Println(server.NeedLeaderElection(), strings.HasPrefix(string(certificate.CABundle), "-----BEGIN CERTIFICATE-----"))
	// Output: false true
}

func ExampleServer() {
	server := webhook.NewServer(webhook.Options{CertDir: "/certs"})
	server.Register("/validate", &webhook.Admission{Handler: admission.HandlerFunc(
		func(_ context.Context, req webhook.AdmissionRequest) webhook.AdmissionResponse {
			if req.Namespace == "frozen" {
				return webhook.Denied("nothing changes here")
			}
			return webhook.Allowed("")
		})})

	// The API server posts this; server.Start(ctx) would serve it over HTTPS.
	review := `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"1","namespace":"frozen"}}`
	req := httptest.NewRequest(http.MethodPost, "/validate", strings.NewReader(review))
	req.Header.Set("Content-Type", "application/json")
	answer := httptest.NewRecorder()
	server.WebhookMux().ServeHTTP(answer, req)
	fmt.Println(answer.Code, strings.Contains(answer.Body.String(), "nothing changes here"))
	// Output: 200 true
}
