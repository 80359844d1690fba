// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"crypto/tls"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/wherry-dev/wherry/webhook"
	"github.com/wherry-dev/wherry/webhook/certwatcher"
)

// certify gives config the server's certificate: that of a watcher of its files, which the caller runs, or, if there are none,
// one that we sign ourselves; then the watcher is nil.
func (s *server) certify(config *tls.Config) (*certwatcher.CertWatcher, error) {
	certFile, keyFile := filepath.Join(s.options.CertDir, s.options.CertName), filepath.Join(s.options.CertDir, s.options.KeyName)
	if exists(certFile) && exists(keyFile) {
		watcher, err := certwatcher.New(certFile, keyFile)
		if err != nil {
			return nil, err
		}
		config.GetCertificate = watcher.GetCertificate
		return watcher, nil
	}
	s.log.Info("no certificate files, signing a certificate for this server", "certificate", certFile, "key", keyFile)
	own, err := webhook.NewSelfSigned()
	if err != nil {
		return nil, err
	}
	own.TLS(config)
	return nil, nil
}

// exists says whether there is a file, also one that cannot be read: that is an error to be told, not to be passed over.
func exists(file string) bool {
	_, err := os.Stat(file)
	return !errors.Is(err, fs.ErrNotExist)
}
