// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"time"
)

const (
	// AdminName is the user the administrator's token stands for.
	AdminName = "wherry-admin"
	// AdminGroup is that user's group. Kubernetes lets its members do everything.
	AdminGroup = "system:masters"

	tokenBytes     = 32 // 256 bits
	validity       = 10 * 365 * 24 * time.Hour
	clockTolerance = time.Hour // certificates begin this much earlier, for clocks that differ

	blockCert   = "CERTIFICATE"
	blockCAKey  = "WHERRY CA KEY"
	blockSAKey  = "WHERRY SERVICE ACCOUNT KEY"
	blockToken  = "WHERRY ADMIN TOKEN"
	blockKeyPEM = "EC PRIVATE KEY"
)

// Identity is one server's authority, signing key and administrator's token. It never changes after it was made, so
// all its methods may be called at the same time.
type Identity struct {
	ca    *x509.Certificate
	caKey *ecdsa.PrivateKey
	saKey *ecdsa.PrivateKey
	token string
}

// New makes a fresh identity in memory.
func New() (*Identity, error) {
	caKey, err := newKey()
	if err != nil {
		return nil, fmt.Errorf("make the key of the certificate authority: %w", err)
	}
	saKey, err := newKey()
	if err != nil {
		return nil, fmt.Errorf("make the service account key: %w", err)
	}
	token := make([]byte, tokenBytes)
	if _, err := rand.Read(token); err != nil {
		return nil, fmt.Errorf("make the administrator's token: %w", err)
	}
	template, err := newTemplate(pkix.Name{CommonName: "wherry-apiserver-ca"})
	if err != nil {
		return nil, err
	}
	template.IsCA = true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, template, caKey.Public(), caKey)
	if err != nil {
		return nil, fmt.Errorf("make the certificate authority: %w", err)
	}
	ca, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("make the certificate authority: %w", err)
	}
	return &Identity{ca: ca, caKey: caKey, saKey: saKey, token: hex.EncodeToString(token)}, nil
}

// CA returns the authority's certificate, PEM encoded: what a client needs to trust the server.
func (i *Identity) CA() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: blockCert, Bytes: i.ca.Raw})
}

// Token returns the administrator's bearer token.
func (i *Identity) Token() string { return i.token }

// ServiceAccountKey returns the key that signs service account tokens.
func (i *Identity) ServiceAccountKey() *ecdsa.PrivateKey { return i.saKey }

// Serving makes a serving certificate for the given names and addresses, valid for ten years, and its key.
// Both are PEM encoded.
func (i *Identity) Serving(names []string, addresses ...net.IP) (cert, key []byte, err error) {
	template, err := newTemplate(pkix.Name{CommonName: "wherry-apiserver"})
	if err != nil {
		return nil, nil, err
	}
	template.DNSNames = names
	template.IPAddresses = addresses
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	return i.issue(template)
}

// Client makes a client certificate by which the server knows its bearer as this user in these groups, valid for ten
// years, and its key. Both are PEM encoded. An empty name is an error.
func (i *Identity) Client(name string, groups []string) (cert, key []byte, err error) {
	if name == "" {
		return nil, nil, errors.New("a client certificate needs a user name")
	}
	template, err := newTemplate(pkix.Name{CommonName: name, Organization: groups})
	if err != nil {
		return nil, nil, err
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	return i.issue(template)
}

func (i *Identity) issue(template *x509.Certificate) (cert, key []byte, err error) {
	private, err := newKey()
	if err != nil {
		return nil, nil, fmt.Errorf("make a key: %w", err)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, i.ca, private.Public(), i.caKey)
	if err != nil {
		return nil, nil, fmt.Errorf("make a certificate for %q: %w", template.Subject.CommonName, err)
	}
	keyDER, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		return nil, nil, fmt.Errorf("encode a key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: blockCert, Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: blockKeyPEM, Bytes: keyDER}), nil
}

func newKey() (*ecdsa.PrivateKey, error) { return ecdsa.GenerateKey(elliptic.P256(), rand.Reader) }

func newTemplate(subject pkix.Name) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, fmt.Errorf("make a serial number: %w", err)
	}
	now := time.Now()
	return &x509.Certificate{
		SerialNumber:          serial,
		Subject:               subject,
		NotBefore:             now.Add(-clockTolerance),
		NotAfter:              now.Add(validity),
		BasicConstraintsValid: true,
	}, nil
}
