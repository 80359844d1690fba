// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package certwatcher

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"github.com/wherry-dev/wherry/client/log"
	"github.com/wherry-dev/wherry/webhook/certwatcher/metrics"
)

// defaultWatchInterval is half of the 10 s within which a renewal is to be served: whoever renews writes two files, and a
// look between the two writes finds a pair that does not fit.
const defaultWatchInterval = 5 * time.Second

// CertWatcher holds the certificate that its two files held when they were last good. Safe for concurrent use. Make one with
// New.
type CertWatcher struct {
	// RWMutex guards the fields below. It is part of the type's face for compatibility only: leave it alone.
	sync.RWMutex

	current  *tls.Certificate
	callback func(tls.Certificate)

	certPath, keyPath string
	interval          time.Duration
	log               logr.Logger

	// reading is held while files are read and their news is told, so that an older reading never follows a newer one.
	reading  sync.Mutex
	sum      [sha256.Size]byte // of the files that made current
	trouble  string            // the last failure, so that the log tells it once
	toldDead bool              // whether the log has told that current is expired

	ended   chan struct{} // closed when Start ends
	endOnce sync.Once
}

// New reads both files, PEM with the leaf first and the rest of the chain behind it. It fails if they give no certificate.
// It starts nothing: until Start or Watch runs, only ReadCertificate looks at the files again.
func New(certPath, keyPath string) (*CertWatcher, error) {
	cw := &CertWatcher{
		certPath: certPath,
		keyPath:  keyPath,
		interval: defaultWatchInterval,
		log:      log.Log.WithName("controller-runtime").WithName("certwatcher").WithValues("cert", certPath, "key", keyPath),
		ended:    make(chan struct{}),
	}
	if err := cw.ReadCertificate(); err != nil {
		return nil, err
	}
	return cw, nil
}

// WithWatchInterval sets the time from one look at the files to the next; it is 5 s unless set. It returns cw. Call it before
// Start and Watch. An interval of 0 or less is ignored.
func (cw *CertWatcher) WithWatchInterval(interval time.Duration) *CertWatcher {
	if interval > 0 {
		cw.interval = interval
	}
	return cw
}

// RegisterCallback has callback called with the certificate held now, before RegisterCallback returns, and with each new one.
// There is one callback: a later one takes its place. It is called by whoever reads the files, so while it runs no change is
// noticed; it must not call RegisterCallback or ReadCertificate.
func (cw *CertWatcher) RegisterCallback(callback func(tls.Certificate)) {
	cw.reading.Lock()
	defer cw.reading.Unlock()
	cw.Lock()
	cw.callback = callback
	current := cw.current
	cw.Unlock()
	if callback != nil && current != nil {
		callback(*current)
	}
}

// GetCertificate gives the certificate held now. It is made for tls.Config.
func (cw *CertWatcher) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	cw.RLock()
	defer cw.RUnlock()
	return cw.current, nil
}

// Start looks at the files again and again until ctx ends. Files that are missing, unreadable or do not fit leave the
// certificate as it is and are told to the log. It always returns nil. It can be called once.
func (cw *CertWatcher) Start(ctx context.Context) error {
	defer cw.endOnce.Do(func() { close(cw.ended) })
	cw.log.Info("Starting certificate watcher", "interval", cw.interval)
	cw.poll(ctx.Done())
	return nil
}

// Watch does what Start does until a Start ends, and blocks as long. Start needs no Watch beside it: it is for callers that
// want a second, independent look.
func (cw *CertWatcher) Watch() { cw.poll(cw.ended) }

// NeedLeaderElection is false: every replica serves.
func (*CertWatcher) NeedLeaderElection() bool { return false }

// String names the watcher in a manager's errors.
func (cw *CertWatcher) String() string { return "certificate watcher of " + cw.certPath }

func (cw *CertWatcher) poll(done <-chan struct{}) {
	ticker := time.NewTicker(cw.interval)
	defer ticker.Stop()
	for {
		select {
		case <-done:
			return
		case <-ticker.C:
		}
		if err := cw.ReadCertificate(); err != nil {
			cw.tellTrouble(err)
		}
		cw.tellExpiry()
	}
}

// ReadCertificate looks at the files now. If any byte of them changed, the certificate they make is held from now on and the
// callback hears of it before ReadCertificate returns. An error names the files; the old certificate stays then.
func (cw *CertWatcher) ReadCertificate() error {
	cw.reading.Lock()
	defer cw.reading.Unlock()
	metrics.ReadCertificateTotal.Inc()
	changed, err := cw.read()
	if err != nil {
		metrics.ReadCertificateErrors.Inc()
		return err
	}
	cw.trouble = ""
	if changed == nil {
		return nil
	}
	cw.Lock()
	cw.current = changed
	callback := cw.callback
	cw.Unlock()
	cw.toldDead = false
	cw.log.Info("Updated current TLS certificate", "notAfter", changed.Leaf.NotAfter)
	if callback != nil {
		callback(*changed)
	}
	return nil
}

// read gives the files' certificate, or nil if they are what they were. All of the files counts, not the leaf alone: a
// renewal may change an intermediate only.
func (cw *CertWatcher) read() (*tls.Certificate, error) {
	certPEM, err := os.ReadFile(cw.certPath)
	if err != nil {
		return nil, fmt.Errorf("read certificate: %w", err)
	}
	keyPEM, err := os.ReadFile(cw.keyPath)
	if err != nil {
		return nil, fmt.Errorf("read private key: %w", err)
	}
	certSum, keySum := sha256.Sum256(certPEM), sha256.Sum256(keyPEM)
	sum := sha256.Sum256(append(certSum[:], keySum[:]...))
	if sum == cw.sum {
		return nil, nil
	}
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return nil, fmt.Errorf("certificate %s with key %s: %w", cw.certPath, cw.keyPath, err)
	}
	cw.sum = sum
	return &pair, nil
}

func (cw *CertWatcher) tellTrouble(err error) {
	cw.reading.Lock()
	defer cw.reading.Unlock()
	if text := err.Error(); text != cw.trouble {
		cw.trouble = text
		cw.log.Error(err, "cannot read the certificate again, keeping the one there is")
	}
}

func (cw *CertWatcher) tellExpiry() {
	cw.reading.Lock()
	defer cw.reading.Unlock()
	if cw.current == nil || cw.toldDead || time.Now().Before(cw.current.Leaf.NotAfter) {
		return
	}
	cw.toldDead = true
	cw.log.Info("the certificate is expired and its files hold no newer one", "notAfter", cw.current.Leaf.NotAfter)
}
