// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package certwatcher_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// authority signs certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

var serial int64

func newAuthority(t *testing.T) *authority {
	t.Helper()
	certPEM, _, key := sign(t, nil, &x509.Certificate{IsCA: true, KeyUsage: x509.KeyUsageCertSign, BasicConstraintsValid: true}, time.Hour)
	block, _ := pem.Decode(certPEM)
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return &authority{cert: cert, key: key, pem: certPEM}
}

// sign makes certificate and key, PEM. A nil parent means that it signs itself.
func sign(t *testing.T, parent *authority, template *x509.Certificate, validFor time.Duration) (certPEM, keyPEM []byte, key *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	serial++
	template.SerialNumber = big.NewInt(serial)
	template.Subject = pkix.Name{CommonName: "test"}
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Minute), time.Now().Add(validFor)
	signer, signerKey := template, key
	if parent != nil {
		signer, signerKey = parent.cert, parent.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, signer, &key.PublicKey, signerKey)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER}), key
}

// files are a certificate and a key in a folder.
type files struct {
	t         *testing.T
	cert, key string
}

func newFiles(t *testing.T) *files {
	dir := t.TempDir()
	return &files{t: t, cert: filepath.Join(dir, "tls.crt"), key: filepath.Join(dir, "tls.key")}
}

func (f *files) write(key []byte, certs ...[]byte) {
	f.t.Helper()
	if err := os.WriteFile(f.cert, bytes.Join(certs, nil), 0o600); err != nil {
		f.t.Fatal(err)
	}
	if err := os.WriteFile(f.key, key, 0o600); err != nil {
		f.t.Fatal(err)
	}
}

// renew writes a new certificate and gives its bytes.
func (f *files) renew() []byte {
	f.t.Helper()
	cert, key, _ := sign(f.t, nil, &x509.Certificate{}, time.Hour)
	f.write(key, cert)
	return leafOf(cert)
}

func leafOf(certPEM []byte) []byte {
	block, _ := pem.Decode(certPEM)
	return block.Bytes
}
