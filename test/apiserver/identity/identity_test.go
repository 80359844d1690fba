// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package identity_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/wherry-dev/wherry/test/apiserver/identity"
	"github.com/wherry-dev/wherry/test/apiserver/private"
)

func TestCertificatesAreTrustedForWhatTheySay(t *testing.T) {
	i, err := identity.New()
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(i.CA()) {
		t.Fatal("CA returns no certificate")
	}
	cert, key, err := i.Serving([]string{"localhost"}, net.ParseIP("127.0.0.1"))
	if err != nil {
		t.Fatal(err)
	}
	serving := parse(t, cert, key)
	for name, want := range map[string]bool{"localhost": true, "127.0.0.1": true, "127.0.0.2": false, "example.com": false} {
		_, err := serving.Verify(x509.VerifyOptions{Roots: roots, DNSName: name})
		if (err == nil) != want {
			t.Errorf("the serving certificate for %s: %v; want valid=%v", name, err, want)
		}
	}
	client := x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	if _, err := serving.Verify(client); err == nil {
		t.Error("a serving certificate is good for a client")
	}
	if cert, key, err = i.Client("ann", []string{"devs", "ops"}); err != nil {
		t.Fatal(err)
	}
	ann := parse(t, cert, key)
	if _, err := ann.Verify(client); err != nil {
		t.Errorf("the client certificate: %v", err)
	}
	if ann.Subject.CommonName != "ann" || len(ann.Subject.Organization) != 2 ||
		!slices.Contains(ann.Subject.Organization, "devs") || !slices.Contains(ann.Subject.Organization, "ops") {
		t.Errorf("the client certificate is for %v; want ann in devs and ops", ann.Subject)
	}
	if _, _, err := i.Client("", nil); err == nil {
		t.Error("a client certificate was made for nobody")
	}
}

func parse(t *testing.T, cert, key []byte) *x509.Certificate {
	t.Helper()
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	return pair.Leaf
}

func TestOpenKeepsAnIdentity(t *testing.T) {
	dir := t.TempDir()
	first, err := identity.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	second, err := identity.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if first.Token() != second.Token() || !bytes.Equal(first.CA(), second.CA()) ||
		!first.ServiceAccountKey().Equal(second.ServiceAccountKey()) {
		t.Error("the second opening gave another identity")
	}
	other, err := identity.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if other.Token() == first.Token() || bytes.Equal(other.CA(), first.CA()) {
		t.Error("two folders have the same identity")
	}
	if len(first.Token()) != 64 {
		t.Errorf("the token has %d characters; want 256 bits in hexadecimal", len(first.Token()))
	}
	if info, err := os.Stat(filepath.Join(dir, identity.FileName)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v; want 0600", info.Mode().Perm(), err)
	}
}

func TestOpenRefusesADamagedFile(t *testing.T) {
	dir := t.TempDir()
	if _, err := identity.Open(dir); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, identity.FileName)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	other := t.TempDir()
	if _, err := identity.Open(other); err != nil {
		t.Fatal(err)
	}
	foreign, err := os.ReadFile(filepath.Join(other, identity.FileName))
	if err != nil {
		t.Fatal(err)
	}
	end := bytes.Index(whole, []byte("-----END CERTIFICATE-----\n")) + len("-----END CERTIFICATE-----\n")
	foreignEnd := bytes.Index(foreign, []byte("-----END CERTIFICATE-----\n")) + len("-----END CERTIFICATE-----\n")
	for name, data := range map[string][]byte{
		"empty":             nil,
		"cut":               whole[:len(whole)/2],
		"trailing":          append(bytes.Clone(whole), "x"...),
		"mixed identities":  append(bytes.Clone(foreign[:foreignEnd]), whole[end:]...),
		"no token":          whole[:bytes.Index(whole, []byte("-----BEGIN WHERRY ADMIN TOKEN"))],
		"certificate alone": whole[:end],
	} {
		t.Run(name, func(t *testing.T) {
			if err := private.WriteFile(path, data); err != nil {
				t.Fatal(err)
			}
			_, err := identity.Open(dir)
			if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "remove it") {
				t.Fatalf("%v; want an error that names the file and the remedy", err)
			}
			if left, _ := os.ReadFile(path); !bytes.Equal(left, data) {
				t.Error("the damaged file was changed")
			}
		})
	}
}
