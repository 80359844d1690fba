// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"sync"
	"time"

	"github.com/go-logr/logr"
)

const (
	// rereadAfter is how long a certificate is served before its files are looked at again.
	rereadAfter = 10 * time.Second
	// selfSignedFor is how long a certificate signed by ourselves is valid: longer than a process lives.
	selfSignedFor = 10 * 365 * 24 * time.Hour
)

// keyPair is a certificate that follows its files. It needs no goroutine: a handshake looks at the files when it has been a
// while, and goes on with the old certificate as long as they make no good new one.
type keyPair struct {
	certFile, keyFile string
	log               logr.Logger

	mu        sync.Mutex
	looked    time.Time // when the files were last read
	cert, key []byte    // what they held
	current   *tls.Certificate
}

// newKeyPair reads the files. If there are none, it serves a certificate signed by itself, until there are.
func newKeyPair(certFile, keyFile string, log logr.Logger) (*keyPair, error) {
	k := &keyPair{certFile: certFile, keyFile: keyFile, log: log, looked: time.Now()}
	err := k.read()
	if errors.Is(err, fs.ErrNotExist) {
		log.Info("no certificate files, signing a certificate for this server", "certificate", certFile, "key", keyFile)
		k.current, err = selfSigned()
	}
	return k, err
}

func (k *keyPair) getCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if time.Since(k.looked) >= rereadAfter {
		k.looked = time.Now()
		if err := k.read(); err != nil && !errors.Is(err, fs.ErrNotExist) {
			k.log.Error(err, "cannot read the renewed certificate, serving the old one")
		}
	}
	return k.current, nil
}

// read takes the files over if they changed: all of them count, since a renewal may change an intermediate only.
func (k *keyPair) read() error {
	cert, err := os.ReadFile(k.certFile)
	if err != nil {
		return err
	}
	key, err := os.ReadFile(k.keyFile)
	if err != nil {
		return err
	}
	if bytes.Equal(cert, k.cert) && bytes.Equal(key, k.key) {
		return nil
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return fmt.Errorf("certificate %s with key %s: %w", k.certFile, k.keyFile, err)
	}
	k.cert, k.key, k.current = cert, key, &pair
	return nil
}

func selfSigned() (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: "localhost"},
		NotBefore:    now.Add(-time.Hour), // for readers whose clock is behind
		NotAfter:     now.Add(selfSignedFor),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames:     []string{"localhost"},
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}
