// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
)

// clientCAInterval is half of the 10 s within which a change is to hold, as with certificates.
const clientCAInterval = 5 * time.Second

// clientCA follows the file of the CA certificates that clients must be signed by. Each content of the file has TLS settings
// of its own, made once, so that a handshake costs nothing extra.
type clientCA struct {
	file    string
	base    *tls.Config
	log     logr.Logger
	current atomic.Pointer[tls.Config]

	pem     []byte // what the file held; only the one who reads uses it
	trouble string // the last failure, so that the log tells it once
}

// newClientCA reads the file. base are the settings of the server without the CA; they are not changed.
func newClientCA(file string, base *tls.Config, log logr.Logger) (*clientCA, error) {
	c := &clientCA{file: file, base: base, log: log.WithValues("clientCA", file)}
	return c, c.read()
}

// front returns settings for a server that asks c for each connection's. A GetConfigForClient that base has is asked first,
// and what it returns is taken as it is.
func (c *clientCA) front(base *tls.Config) *tls.Config {
	config := c.current.Load().Clone()
	config.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		if base.GetConfigForClient != nil {
			if chosen, err := base.GetConfigForClient(hello); chosen != nil || err != nil {
				return chosen, err
			}
		}
		return c.current.Load(), nil
	}
	return config
}

// read takes the file over if it changed. An error leaves the settings as they are.
func (c *clientCA) read() error {
	pem, err := os.ReadFile(c.file)
	if err != nil {
		return fmt.Errorf("read client CA: %w", err)
	}
	if bytes.Equal(pem, c.pem) {
		return nil
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return fmt.Errorf("client CA %s: no certificate in it", c.file)
	}
	config := c.base.Clone()
	config.GetConfigForClient = nil
	config.ClientCAs = pool
	config.ClientAuth = tls.RequireAndVerifyClientCert
	// A resumed session would be a client that nobody verified against the CA of today.
	config.SessionTicketsDisabled = true
	c.pem = pem
	c.current.Store(config)
	return nil
}

func (c *clientCA) poll(ctx context.Context) {
	ticker := time.NewTicker(clientCAInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		err := c.read()
		if err != nil && err.Error() != c.trouble {
			c.trouble = err.Error()
			c.log.Error(err, "cannot read the client CA again, keeping the one there is")
		} else if err == nil {
			c.trouble = ""
		}
	}
}
