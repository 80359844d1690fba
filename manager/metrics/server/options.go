// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"crypto/tls"
	"net"
	"net/http"
	"os"
	"path/filepath"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
)

// DefaultBindAddress is where metrics are served if nothing else is said.
var DefaultBindAddress = ":8080"

// Filter wraps a handler, for instance to ask who calls. It is called once per path, when the server starts.
type Filter func(log logr.Logger, handler http.Handler) (http.Handler, error)

// Options shape a server.
type Options struct {
	// SecureServing serves HTTPS. Without certificate files and without a certificate from TLSOpts, the server signs one
	// itself: it encrypts, but proves nothing.
	SecureServing bool

	// BindAddress is the TCP address to listen on, "host:port". "" means DefaultBindAddress, "0" no server at all.
	BindAddress string

	// ExtraHandlers are served beside /metrics, by path.
	ExtraHandlers map[string]http.Handler

	// FilterProvider makes the filter that stands in front of every path. Nil means none: everybody who reaches the port may
	// read. It is given NewServer's arguments, once.
	FilterProvider func(c *rest.Config, httpClient *http.Client) (Filter, error)

	// CertDir is the folder of certificate and key. "" means k8s-metrics-server/serving-certs in the folder for temporary
	// files. A renewed certificate is served within 10 s, without a restart.
	CertDir string

	// CertName is the file of the certificate chain. "" means tls.crt.
	CertName string

	// KeyName is the file of the private key. "" means tls.key.
	KeyName string

	// TLSOpts change the TLS settings, in their order, before serving begins. HTTP/2 is off unless one of them names "h2" in
	// NextProtos; the least version is TLS 1.2 unless one says otherwise. A GetCertificate set here comes before the files.
	TLSOpts []func(*tls.Config)

	// ListenConfig opens the listener.
	ListenConfig net.ListenConfig
}

func (o *Options) setDefaults() {
	if o.BindAddress == "" {
		o.BindAddress = DefaultBindAddress
	}
	if o.CertDir == "" {
		o.CertDir = filepath.Join(os.TempDir(), "k8s-metrics-server", "serving-certs")
	}
	if o.CertName == "" {
		o.CertName = "tls.crt"
	}
	if o.KeyName == "" {
		o.KeyName = "tls.key"
	}
}
