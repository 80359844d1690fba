// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/wherry-dev/wherry/cache"
	"github.com/wherry-dev/wherry/cache/cacheapi"
	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/manager/healthz"
)

// CacheSyncedCheck returns a check that passes when c is filled with the kind of object. Its error says why it is not, by the
// API server's own words: no permission, no such kind. Asking starts an informer for the kind if there is none.
//
// Leave out a kind whose conversion webhook this process serves: the API server cannot list it before the process is ready,
// and the process would not be ready before the kind is listed.
func CacheSyncedCheck(c cache.Cache, object client.Object) healthz.Checker {
	return func(req *http.Request) error {
		informer, err := c.GetInformer(req.Context(), object, cache.BlockUntilSynced(false))
		if err != nil {
			return fmt.Errorf("cache of %T: %w", object, err)
		}
		if informer.HasSynced() {
			return nil
		}
		if r, ok := informer.(cacheapi.ErrorReporter); ok {
			if err := r.LastError(); err != nil {
				return fmt.Errorf("cache of %T is not filled: %w", object, err)
			}
		}
		return fmt.Errorf("cache of %T is not filled yet", object)
	}
}

// CertificateCheck returns a check that fails when the certificate that get serves expires within margin, or has expired, or
// cannot be had. get is what tls.Config.GetCertificate takes; it is asked without a client's hello.
func CertificateCheck(get func(*tls.ClientHelloInfo) (*tls.Certificate, error), margin time.Duration) healthz.Checker {
	return func(*http.Request) error {
		c, err := get(&tls.ClientHelloInfo{})
		if err != nil {
			return fmt.Errorf("no certificate: %w", err)
		}
		if c == nil || len(c.Certificate) == 0 {
			return errors.New("no certificate")
		}
		leaf := c.Leaf
		if leaf == nil {
			if leaf, err = x509.ParseCertificate(c.Certificate[0]); err != nil {
				return fmt.Errorf("certificate: %w", err)
			}
		}
		if left := time.Until(leaf.NotAfter); left <= margin {
			return fmt.Errorf("certificate of %s expires in %s, at %s", leaf.Subject.CommonName, left.Round(time.Second), leaf.NotAfter.Format(time.RFC3339))
		}
		return nil
	}
}
