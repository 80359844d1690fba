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

// CertificateCheck returns a check that fails when the certificate that get gives has expired or will within margin, and when it
// cannot be had. get is what tls.Config.GetCertificate takes, such as a CertWatcher's; it is asked with an empty hello. It is in
// no probe unless somebody adds it.
func CertificateCheck(get func(*tls.ClientHelloInfo) (*tls.Certificate, error), margin time.Duration) healthz.Checker {
	return func(*http.Request) error {
		leaf, err := leafFrom(get)
		if err != nil {
			return fmt.Errorf("certificate: %w", err)
		}
		end := leaf.NotAfter.Format(time.RFC3339)
		switch left := time.Until(leaf.NotAfter); {
		case left <= 0:
			return fmt.Errorf("certificate: that of %q expired at %s", leaf.Subject.CommonName, end)
		case left <= margin:
			return fmt.Errorf("certificate: that of %q expires at %s, in less than %s", leaf.Subject.CommonName, end, margin)
		default:
			return nil
		}
	}
}

// CertificateChecker returns a CertificateCheck of what this server serves now, which fails while nothing is served. A server that
// is switched off passes.
func (s *DefaultServer) CertificateChecker(margin time.Duration) healthz.Checker {
	started := s.StartedChecker()
	served := CertificateCheck(s.served, margin)
	return func(req *http.Request) error {
		if err := started(req); err != nil || s.Options.Port == noPort {
			return err
		}
		if err := served(req); err != nil {
			return fmt.Errorf("webhook server: %w", err)
		}
		return nil
	}
}

// served is the certificate that a client gets that names no server.
func (s *DefaultServer) served(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	s.mu.Lock()
	config := s.tls
	s.mu.Unlock()
	switch {
	case config.GetCertificate != nil:
		return config.GetCertificate(hello)
	case len(config.Certificates) > 0:
		return &config.Certificates[0], nil
	default:
		return nil, nil
	}
}

func leafFrom(get func(*tls.ClientHelloInfo) (*tls.Certificate, error)) (*x509.Certificate, error) {
	c, err := get(&tls.ClientHelloInfo{})
	switch {
	case err != nil:
		return nil, err
	case c == nil || len(c.Certificate) == 0:
		return nil, errors.New("there is none")
	case c.Leaf != nil:
		return c.Leaf, nil
	default:
		return x509.ParseCertificate(c.Certificate[0])
	}
}
