// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/wherry-dev/wherry/webhook/certwatcher"
)

// selfSignedFor is how long a certificate signed by ourselves is valid: longer than a process lives.
const selfSignedFor = 10 * 365 * 24 * time.Hour

// certificate says how the server gets its certificate: from a watcher of its files, which the caller runs, or, if there are
// none, from ourselves; then the watcher is nil.
func (s *server) certificate() (get func(*tls.ClientHelloInfo) (*tls.Certificate, error), _ *certwatcher.CertWatcher, _ error) {
	certFile, keyFile := filepath.Join(s.options.CertDir, s.options.CertName), filepath.Join(s.options.CertDir, s.options.KeyName)
	if exists(certFile) && exists(keyFile) {
		watcher, err := certwatcher.New(certFile, keyFile)
		if err != nil {
			return nil, nil, err
		}
		return watcher.GetCertificate, watcher, nil
	}
	s.log.Info("no certificate files, signing a certificate for this server", "certificate", certFile, "key", keyFile)
	own, err := selfSigned()
	return func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return own, nil }, nil, err
}

// exists says whether there is a file, also one that cannot be read: that is an error to be told, not to be passed over.
func exists(file string) bool {
	_, err := os.Stat(file)
	return !errors.Is(err, fs.ErrNotExist)
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
