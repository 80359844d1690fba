// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package envtest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"time"
)

const (
	// certificateLife is longer than any test.
	certificateLife = 7 * 24 * time.Hour
	// clockSkew is how far another process's clock may be behind ours.
	clockSkew = time.Hour
)

// authority signs certificates for one test. Nothing of it outlives the test but
// what its callers write to files.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority() (*authority, error) {
	template := newTemplate(pkix.Name{CommonName: "envtest"})
	template.IsCA = true
	template.KeyUsage = x509.KeyUsageCertSign
	cert, key, err := issue(template, template, nil)
	if err != nil {
		return nil, err
	}
	return &authority{cert, key}, nil
}

// bundle is what a client needs to trust the certificates, PEM.
func (a *authority) bundle() []byte { return certPEM(a.cert) }

// serving makes a certificate for a server of these names and addresses, and its
// key, PEM.
func (a *authority) serving(hosts ...string) (cert, key []byte, err error) {
	template := newTemplate(pkix.Name{CommonName: "envtest"})
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else if host != "" {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	return a.pair(template)
}

// client makes a certificate by which an API server knows a user, and its key,
// PEM.
func (a *authority) client(user User) (cert, key []byte, err error) {
	template := newTemplate(pkix.Name{CommonName: user.Name, Organization: user.Groups})
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	return a.pair(template)
}

func (a *authority) pair(template *x509.Certificate) (cert, key []byte, err error) {
	signed, private, err := issue(template, a.cert, a.key)
	if err != nil {
		return nil, nil, err
	}
	key, err = keyPEM(private)
	return certPEM(signed), key, err
}

// issue makes a key and a certificate for it. Without a signer it signs itself.
func issue(template, parent *x509.Certificate, signer crypto.Signer) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("make a certificate: %w", err)
	}
	if signer == nil {
		signer = key
	}
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127)); err != nil {
		return nil, nil, fmt.Errorf("make a certificate: %w", err)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		return nil, nil, fmt.Errorf("make a certificate: %w", err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, nil, fmt.Errorf("make a certificate: %w", err)
	}
	return cert, key, nil
}

func newTemplate(subject pkix.Name) *x509.Certificate {
	now := time.Now()
	return &x509.Certificate{
		Subject:               subject,
		NotBefore:             now.Add(-clockSkew),
		NotAfter:              now.Add(certificateLife),
		KeyUsage:              x509.KeyUsageDigitalSignature,
		BasicConstraintsValid: true,
	}
}

func certPEM(cert *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw})
}

func keyPEM(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode a key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), nil
}
