// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"math/big"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/wherry-dev/wherry/cache"
	"github.com/wherry-dev/wherry/client"
)

// oneInformer is a cache and its only informer.
type oneInformer struct {
	cache.Cache
	cache.Informer
	synced bool
	why    error
	get    error
}

func (o *oneInformer) GetInformer(_ context.Context, _ client.Object, opts ...cache.InformerGetOption) (cache.Informer, error) {
	if len(opts) != 1 {
		return nil, errors.New("asked to block")
	}
	return o, o.get
}
func (o *oneInformer) HasSynced() bool  { return o.synced }
func (o *oneInformer) LastError() error { return o.why }

func TestCacheSyncedCheck(t *testing.T) {
	for _, c := range []struct {
		name string
		c    oneInformer
		err  string
	}{
		{"synced", oneInformer{synced: true}, ""},
		{"on its way", oneInformer{}, "cache of *v1.ConfigMap is not filled yet"},
		{"forbidden", oneInformer{why: errors.New("configmaps is forbidden")}, "cache of *v1.ConfigMap is not filled: configmaps is forbidden"},
		{"synced, with trouble since", oneInformer{synced: true, why: errors.New("watch broken")}, ""},
		{"no informer", oneInformer{get: errors.New("no such kind")}, "cache of *v1.ConfigMap: no such kind"},
	} {
		err := CacheSyncedCheck(&c.c, &corev1.ConfigMap{})(httptest.NewRequest("GET", "/", nil))
		if got := text(err); got != c.err {
			t.Errorf("%s: %q, want %q", c.name, got, c.err)
		}
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestCertificateCheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "op"}, NotAfter: time.Now().Add(time.Hour)}
		der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
		if err != nil {
			t.Fatal(err)
		}
		var served *tls.Certificate
		var broken error
		check := CertificateCheck(func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return served, broken }, 10*time.Minute)
		expect := func(want string) {
			t.Helper()
			if got := text(check(nil)); (got == "") != (want == "") || !strings.Contains(got, want) {
				t.Errorf("%q, want %q", got, want)
			}
		}
		expect("no certificate")
		served = &tls.Certificate{Certificate: [][]byte{[]byte("junk")}}
		expect("certificate: x509")
		served = &tls.Certificate{Certificate: [][]byte{der}}
		expect("")
		time.Sleep(50*time.Minute - time.Second)
		expect("")
		time.Sleep(time.Second)
		expect("certificate of op expires in 10m0s")
		time.Sleep(time.Hour)
		expect("expires in -50m0s")
		broken = errors.New("file is gone")
		expect("no certificate: file is gone")
	})
}
