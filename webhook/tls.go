// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"crypto/tls"
	"path/filepath"
	"sync"

	"github.com/wherry-dev/wherry/webhook/certwatcher"
)

// secured is the TLS side of a server: its settings, and what follows files to keep them right.
type secured struct {
	config   *tls.Config
	watchers []func(context.Context)
}

// secure reads the files that the options name.
func (s *DefaultServer) secure() (*secured, error) {
	o := s.Options
	config := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}}
	for _, change := range o.TLSOpts {
		change(config)
	}
	made := &secured{config: config}
	if !bringsCertificate(config) {
		pair, err := certwatcher.New(filepath.Join(o.CertDir, o.CertName), filepath.Join(o.CertDir, o.KeyName))
		if err != nil {
			return nil, err
		}
		config.GetCertificate = pair.GetCertificate
		made.watchers = append(made.watchers, func(ctx context.Context) { _ = pair.Start(ctx) }) // it has no error to give
	}
	if o.ClientCAName != "" {
		ca, err := newClientCA(filepath.Join(o.CertDir, o.ClientCAName), config, s.log)
		if err != nil {
			return nil, err
		}
		made.config = ca.front(config)
		made.watchers = append(made.watchers, ca.poll)
	}
	return made, nil
}

func bringsCertificate(config *tls.Config) bool {
	return config.GetCertificate != nil || len(config.Certificates) > 0 || config.GetConfigForClient != nil
}

// watch starts the watchers. The returned function stops them and waits for them.
func (s *secured) watch(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	for _, w := range s.watchers {
		running.Go(func() { w(ctx) })
	}
	return func() {
		cancel()
		running.Wait()
	}
}
