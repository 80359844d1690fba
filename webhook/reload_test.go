// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bytes"
	"crypto/tls"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// reloadWithin is the promise of a reload.
const reloadWithin = 10 * time.Second

func TestServingCertificateIsReloaded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		first, second := newKeyPair(t), newKeyPair(t)
		write(t, dir, "tls.crt", first.cert, "tls.key", first.key)
		s := NewServer(Options{CertDir: dir}).(*DefaultServer)
		s.Register("/x", say("x"))
		m := newMemory()
		defer m.run(t, s)()
		served := func(trust *keyPair) []byte {
			t.Helper()
			resp, _ := get(t, m.client(t, trust.cert), "/x")
			return resp.TLS.PeerCertificates[0].Raw
		}
		if !bytes.Equal(served(first), leafOf(first.cert)) {
			t.Error("not the first certificate")
		}
		write(t, dir, "tls.crt", second.cert, "tls.key", second.key)
		time.Sleep(reloadWithin)
		synctest.Wait()
		if !bytes.Equal(served(second), leafOf(second.cert)) {
			t.Error("not the second certificate")
		}
	})
}

// Slip #3343: the client CA is read once.
func TestClientCAIsReloaded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		one, two, serving := newKeyPair(t), newKeyPair(t), newKeyPair(t)
		write(t, dir, "tls.crt", serving.cert, "tls.key", serving.key, "ca.crt", one.cert)
		s := NewServer(Options{CertDir: dir, ClientCAName: "ca.crt"}).(*DefaultServer)
		s.Register("/x", say("x"))
		m := newMemory()
		defer m.run(t, s)()
		sessions := tls.NewLRUClientSessionCache(4)
		may := func(client *keyPair) bool {
			c := m.client(t, serving.cert, func(c *tls.Config) {
				c.ClientSessionCache = sessions
				if client != nil {
					c.Certificates = []tls.Certificate{client.pair}
				}
			})
			resp, err := c.Get("https://localhost/x")
			if err != nil {
				return false
			}
			resp.Body.Close()
			return true
		}
		steps := []struct {
			name             string
			change           func()
			nobody, one, two bool
		}{
			{"one is trusted", func() {}, false, true, false},
			{"both are trusted", func() { write(t, dir, "ca.crt", joined(one.cert, two.cert)) }, false, true, true},
			{"no certificate in the file", func() { write(t, dir, "ca.crt", []byte("x")) }, false, true, true},
			{"two is trusted", func() { write(t, dir, "ca.crt", two.cert) }, false, false, true},
			{"the file is gone", func() { os.Remove(filepath.Join(dir, "ca.crt")) }, false, false, true},
			{"it is back", func() { write(t, dir, "ca.crt", one.cert) }, false, true, false},
		}
		for _, step := range steps {
			step.change()
			time.Sleep(reloadWithin)
			synctest.Wait()
			if a, b, c := may(nil), may(one), may(two); a != step.nobody || b != step.one || c != step.two {
				t.Errorf("%s: nobody may %v, one may %v, two may %v", step.name, a, b, c)
			}
		}
	})
}

func TestTLSOptsChooseSettings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		ca, serving, other := newKeyPair(t), newKeyPair(t), newKeyPair(t)
		write(t, dir, "ca.crt", ca.cert)
		choose := func(c *tls.Config) {
			c.Certificates = []tls.Certificate{serving.pair}
			c.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
				if hello.ServerName == "other" {
					return &tls.Config{Certificates: []tls.Certificate{other.pair}}, nil
				}
				return nil, nil
			}
		}
		s := NewServer(Options{CertDir: dir, ClientCAName: "ca.crt", TLSOpts: []func(*tls.Config){choose}}).(*DefaultServer)
		s.Register("/x", say("x"))
		m := newMemory()
		defer m.run(t, s)()
		with := func(name string) *http.Client {
			return m.client(t, serving.cert, func(c *tls.Config) { c.ServerName, c.InsecureSkipVerify = name, true })
		}
		if resp, err := with("other").Get("https://localhost/x"); err != nil {
			t.Error(err)
		} else if resp.Body.Close(); !bytes.Equal(resp.TLS.PeerCertificates[0].Raw, leafOf(other.cert)) {
			t.Error("the settings of TLSOpts are not taken")
		}
		if _, err := with("localhost").Get("https://localhost/x"); err == nil {
			t.Error("where TLSOpts choose nothing, the client CA holds")
		}
	})
}

func TestOldTLSIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, ca := devServer(t)
		m := newMemory()
		defer m.run(t, s)()
		_, err := m.client(t, ca, func(c *tls.Config) { c.MinVersion, c.MaxVersion = tls.VersionTLS10, tls.VersionTLS11 }).Get("https://localhost/x")
		if err == nil || !strings.Contains(err.Error(), "protocol version") {
			t.Errorf("got %v", err)
		}
	})
}

func TestCertificateChecker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pair := newKeyPair(t) // for a day
		s := NewServer(Options{TLSOpts: []func(*tls.Config){func(c *tls.Config) { c.Certificates = []tls.Certificate{pair.pair} }}}).(*DefaultServer)
		check := s.CertificateChecker(6 * time.Hour)
		if err := check(nil); err == nil || !strings.Contains(err.Error(), "not been started") {
			t.Errorf("before the start: %v", err)
		}
		m := newMemory()
		defer m.run(t, s)()
		if err := check(nil); err != nil {
			t.Error(err)
		}
		time.Sleep(18*time.Hour + time.Second)
		if err := check(nil); err == nil || !strings.Contains(err.Error(), "webhook server: certificate: ") || !strings.Contains(err.Error(), "expires") {
			t.Errorf("within six hours of its end: %v", err)
		}
		time.Sleep(6 * time.Hour)
		if err := check(nil); err == nil || !strings.Contains(err.Error(), "expired") {
			t.Errorf("after its end: %v", err)
		}
	})
	off := NewServer(Options{Port: -1}).(*DefaultServer)
	if err := off.CertificateChecker(time.Hour)(nil); err != nil {
		t.Errorf("a server that is off has no certificate to fail: %v", err)
	}
}

func TestCertificateCheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pair := newKeyPair(t) // of "test", for a day
		var served *tls.Certificate
		var broken error
		check := CertificateCheck(func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return served, broken }, 10*time.Minute)
		expect := func(want string) {
			t.Helper()
			if err := check(nil); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %q", err, want)
			}
		}
		expect("there is none")
		served = &tls.Certificate{Certificate: [][]byte{[]byte("junk")}}
		expect("certificate: x509")
		served = &tls.Certificate{Certificate: pair.pair.Certificate}
		expect("")
		time.Sleep(24*time.Hour - 10*time.Minute - time.Second)
		expect("")
		time.Sleep(time.Second)
		expect(`that of "test" expires at 2000-01-02T00:00:00Z, in less than 10m0s`)
		time.Sleep(time.Hour)
		expect(`that of "test" expired at 2000-01-02T00:00:00Z`)
		broken = errors.New("file is gone")
		expect("certificate: file is gone")
	})
}
