// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/wherry-dev/wherry/manager/healthz"
)

// CertificateChecker returns a check that fails if the certificate that is served now has expired or will within margin, and
// while nothing is served. A server that is switched off passes. It is in no probe unless somebody adds it.
func (s *DefaultServer) CertificateChecker(margin time.Duration) healthz.Checker {
	started := s.StartedChecker()
	return func(req *http.Request) error {
		if err := started(req); err != nil || s.Options.Port == noPort {
			return err
		}
		s.mu.Lock()
		config := s.tls
		s.mu.Unlock()
		leaf, err := servedLeaf(config)
		if err != nil {
			return fmt.Errorf("webhook server: certificate: %w", err)
		}
		switch left := time.Until(leaf.NotAfter); {
		case left <= 0:
			return fmt.Errorf("webhook server: certificate: expired at %s", leaf.NotAfter.Format(time.RFC3339))
		case left < margin:
			return fmt.Errorf("webhook server: certificate: expires at %s, in less than %s", leaf.NotAfter.Format(time.RFC3339), margin)
		default:
			return nil
		}
	}
}

// servedLeaf is the certificate that a client gets that names no server.
func servedLeaf(config *tls.Config) (*x509.Certificate, error) {
	var served *tls.Certificate
	switch {
	case config.GetCertificate != nil:
		var err error
		if served, err = config.GetCertificate(&tls.ClientHelloInfo{}); err != nil {
			return nil, err
		}
	case len(config.Certificates) > 0:
		served = &config.Certificates[0]
	}
	switch {
	case served == nil || len(served.Certificate) == 0:
		return nil, errors.New("there is none")
	case served.Leaf != nil:
		return served.Leaf, nil
	default:
		return x509.ParseCertificate(served.Certificate[0])
	}
}
