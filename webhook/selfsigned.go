// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"time"
)

const (
	// selfSignedFor is how long a certificate of our own is valid: longer than a process lives, since nobody renews it.
	selfSignedFor = 10 * 365 * 24 * time.Hour
	// clockSkew is how far the clock of an API server may be behind ours.
	clockSkew = time.Hour
)

// SelfSigned is a serving certificate that is signed by itself and lives in memory only: for webhooks in development, and for
// metrics whose readers trust anybody.
type SelfSigned struct {
	// CABundle is what the caBundle of a webhook configuration, or of a CRD's conversion, must hold for the API server to trust
	// the server, PEM.
	CABundle []byte

	certificate tls.Certificate
}

// NewSelfSigned makes a certificate for the given names and IP addresses; none means localhost and the loopback addresses. It
// is valid for ten years and cannot sign others.
func NewSelfSigned(hosts ...string) (*SelfSigned, error) {
	if len(hosts) == 0 {
		hosts = []string{"localhost", "127.0.0.1", "::1"}
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("sign a certificate for %v: %w", hosts, err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, fmt.Errorf("sign a certificate for %v: %w", hosts, err)
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{CommonName: hosts[0]},
		NotBefore:             now.Add(-clockSkew),
		NotAfter:              now.Add(selfSignedFor),
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
	}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, fmt.Errorf("sign a certificate for %v: %w", hosts, err)
	}
	return &SelfSigned{
		CABundle:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		certificate: tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key},
	}, nil
}

// TLS makes a server serve the certificate: it goes into Options.TLSOpts.
func (s *SelfSigned) TLS(config *tls.Config) {
	config.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &s.certificate, nil }
}
