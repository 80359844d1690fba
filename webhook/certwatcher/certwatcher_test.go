// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package certwatcher_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wherry-dev/wherry/manager/metrics"
	"github.com/wherry-dev/wherry/webhook/certwatcher"
)

// within is the promise: a change is served that much later at most.
const within = 10 * time.Second

func leaf(t *testing.T, cw *certwatcher.CertWatcher) []byte {
	t.Helper()
	cert, err := cw.GetCertificate(nil)
	if err != nil || cert == nil {
		t.Fatalf("got %v, %v", cert, err)
	}
	return cert.Certificate[0]
}

// start runs cw; the result stops it.
func start(t *testing.T, cw *certwatcher.CertWatcher) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- cw.Start(ctx) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// Slips #3020 and #2893: however the files come to hold a new certificate, it is served.
func TestReload(t *testing.T) {
	replace := map[string]func(f *files, cert, key []byte){
		"written over": func(f *files, cert, key []byte) { f.write(key, cert) },
		"renamed": func(f *files, cert, key []byte) {
			next := &files{t: f.t, cert: f.cert + ".new", key: f.key + ".new"}
			next.write(key, cert)
			must(f.t, os.Rename(next.cert, f.cert), os.Rename(next.key, f.key))
		},
		"deleted, then created": func(f *files, cert, key []byte) {
			must(f.t, os.Remove(f.cert), os.Remove(f.key))
			time.Sleep(time.Minute) // of the bubble's time: long enough to be noticed
			f.write(key, cert)
		},
		"certificate first, key much later": func(f *files, cert, key []byte) {
			must(f.t, os.WriteFile(f.cert, cert, 0o600))
			time.Sleep(time.Minute)
			must(f.t, os.WriteFile(f.key, key, 0o600))
		},
	}
	for name, do := range replace {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFiles(t)
				old := f.renew()
				cw, err := certwatcher.New(f.cert, f.key)
				if err != nil {
					t.Fatal(err)
				}
				defer start(t, cw)()
				cert, key, _ := sign(t, nil, &x509.Certificate{}, time.Hour)
				if !bytes.Equal(leaf(t, cw), old) {
					t.Error("not the first certificate")
				}
				do(f, cert, key)
				time.Sleep(within)
				synctest.Wait()
				if !bytes.Equal(leaf(t, cw), leafOf(cert)) {
					t.Error("not the new certificate")
				}
			})
		})
	}
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// A Secret's volume is swapped by a symbolic link.
func TestReloadOfASwappedLink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		renewIn := func(version string) []byte {
			must(t, os.Mkdir(filepath.Join(dir, version), 0o700))
			f := &files{t: t, cert: filepath.Join(dir, version, "tls.crt"), key: filepath.Join(dir, version, "tls.key")}
			made := f.renew()
			must(t, os.Symlink(version, filepath.Join(dir, "..next")), os.Rename(filepath.Join(dir, "..next"), filepath.Join(dir, "..data")))
			return made
		}
		first := renewIn("1")
		cw, err := certwatcher.New(filepath.Join(dir, "..data", "tls.crt"), filepath.Join(dir, "..data", "tls.key"))
		if err != nil {
			t.Fatal(err)
		}
		defer start(t, cw)()
		if !bytes.Equal(leaf(t, cw), first) {
			t.Error("not the first certificate")
		}
		second := renewIn("2")
		time.Sleep(within)
		synctest.Wait()
		if !bytes.Equal(leaf(t, cw), second) {
			t.Error("not the second certificate")
		}
	})
}

// Slip: a new intermediate with the old leaf and key was ignored.
func TestReloadOfAnIntermediate(t *testing.T) {
	root := newAuthority(t)
	middle := func() []byte {
		cert, _, _ := sign(t, root, &x509.Certificate{IsCA: true, BasicConstraintsValid: true}, time.Hour)
		return cert
	}
	leafPEM, key, _ := sign(t, root, &x509.Certificate{}, time.Hour)
	f := newFiles(t)
	f.write(key, leafPEM, middle())
	cw, err := certwatcher.New(f.cert, f.key)
	if err != nil {
		t.Fatal(err)
	}
	renewed := middle()
	f.write(key, leafPEM, renewed)
	if err := cw.ReadCertificate(); err != nil {
		t.Fatal(err)
	}
	cert, _ := cw.GetCertificate(nil)
	if len(cert.Certificate) != 2 || !bytes.Equal(cert.Certificate[1], leafOf(renewed)) {
		t.Error("the old intermediate is still served")
	}
}

func TestBadFilesKeepTheOldCertificate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFiles(t)
		old := f.renew()
		cw, err := certwatcher.New(f.cert, f.key)
		if err != nil {
			t.Fatal(err)
		}
		defer start(t, cw)()
		readsBefore, errorsBefore := reads(t)
		must(t, os.WriteFile(f.cert, []byte("no certificate"), 0o600))
		time.Sleep(time.Minute)
		synctest.Wait()
		if !bytes.Equal(leaf(t, cw), old) {
			t.Error("the old certificate is gone")
		}
		n, failed := reads(t)
		if n -= readsBefore; n < 6 || failed-errorsBefore != n {
			t.Errorf("%v reads, %v errors", n, failed-errorsBefore)
		}
		if told := logged.with("keeping the one there is", f.cert); told != 1 {
			t.Errorf("told %d times, want once", told)
		}
	})
}

func reads(t *testing.T) (all, failed float64) {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		switch f.GetName() {
		case "certwatcher_read_certificate_total":
			all = f.GetMetric()[0].GetCounter().GetValue()
		case "certwatcher_read_certificate_errors_total":
			failed = f.GetMetric()[0].GetCounter().GetValue()
		}
	}
	return all, failed
}

func TestExpiredCertificateIsServedAndTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFiles(t)
		old := f.renew() // for an hour
		cw, err := certwatcher.New(f.cert, f.key)
		if err != nil {
			t.Fatal(err)
		}
		defer start(t, cw)()
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		if told := logged.with("expired", f.cert); told != 1 || !bytes.Equal(leaf(t, cw), old) {
			t.Errorf("told %d times, want once, and the certificate served: no other is there", told)
		}
	})
}

func TestNewFails(t *testing.T) {
	f := newFiles(t)
	if _, err := certwatcher.New(f.cert, f.key); err == nil || !strings.Contains(err.Error(), f.cert) {
		t.Errorf("no certificate: %v", err)
	}
	f.renew()
	must(t, os.Remove(f.key))
	if cw, err := certwatcher.New(f.cert, f.key); cw != nil || err == nil || !strings.Contains(err.Error(), f.key) {
		t.Errorf("no key: %v", err)
	}
	_, other, _ := sign(t, nil, &x509.Certificate{}, time.Hour)
	must(t, os.WriteFile(f.key, other, 0o600))
	if _, err := certwatcher.New(f.cert, f.key); err == nil || !strings.Contains(err.Error(), f.key) || !strings.Contains(err.Error(), f.cert) {
		t.Errorf("a key of another certificate: %v", err)
	}
}

func TestCallback(t *testing.T) {
	f := newFiles(t)
	first := f.renew()
	cw, err := certwatcher.New(f.cert, f.key)
	if err != nil {
		t.Fatal(err)
	}
	var told [][]byte
	cw.RegisterCallback(func(c tls.Certificate) {
		if !bytes.Equal(leaf(t, cw), c.Certificate[0]) {
			t.Error("told of a certificate that is not held yet")
		}
		told = append(told, c.Certificate[0])
	})
	must(t, cw.ReadCertificate())
	second := f.renew()
	must(t, cw.ReadCertificate(), cw.ReadCertificate())
	if len(told) != 2 || !bytes.Equal(told[0], first) || !bytes.Equal(told[1], second) {
		t.Errorf("told %d times", len(told))
	}
}

func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFiles(t)
		f.renew()
		cw, err := certwatcher.New(f.cert, f.key)
		if err != nil {
			t.Fatal(err)
		}
		cw.WithWatchInterval(time.Second).WithWatchInterval(0)
		ended := make(chan struct{})
		go func() {
			cw.Watch()
			close(ended)
		}()
		second := f.renew()
		time.Sleep(time.Second)
		synctest.Wait()
		if !bytes.Equal(leaf(t, cw), second) {
			t.Error("not the new certificate after a second")
		}
		start(t, cw)()
		<-ended
		if cw.NeedLeaderElection() {
			t.Error("every replica serves")
		}
	})
}

func ExampleNew() {
	_, err := certwatcher.New("nowhere/tls.crt", "nowhere/tls.key")
	fmt.Println(err)
	// Output: read certificate: open nowhere/tls.crt: no such file or directory
}
