// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"cmp"
	"crypto/tls"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
)

// DefaultPort is the port of a server whose options name none.
var DefaultPort = 9443

// noPort is the port of a server that is switched off.
const noPort = -1

// Options shape a server.
type Options struct {
	// Host is the address to listen on. "" means all addresses.
	Host string

	// Port is the port to listen on. 0 means DefaultPort. -1 switches the server off: webhooks can be registered, nothing is
	// served, and StartedChecker is content.
	Port int

	// CertDir is the folder of certificate, key and client CA. "" means k8s-webhook-server/serving-certs in the folder for
	// temporary files.
	CertDir string

	// CertName is the file of the certificate chain, leaf first, PEM. "" means tls.crt. It and the key are looked at every 5 s, so
	// that a renewal is served without a restart. Neither is read if TLSOpts bring a certificate.
	CertName string

	// KeyName is the file of the private key. "" means tls.key.
	KeyName string

	// ClientCAName is the file of the CA certificates that clients must be signed by, PEM. "" means that anybody may call. It is
	// looked at every 5 s. A change holds for new connections; sessions are never resumed, so each is verified.
	ClientCAName string

	// TLSOpts change the TLS settings, in their order, when Start is called. HTTP/2 is off unless one of them names "h2" in
	// NextProtos; the least version is TLS 1.2 unless one says otherwise. A certificate set here comes before the files.
	TLSOpts []func(*tls.Config)

	// WebhookMux is what webhooks are registered on. Nil means a new one. It can carry other handlers as well.
	WebhookMux *http.ServeMux
}

func (o *Options) setDefaults() {
	o.Port = cmp.Or(o.Port, DefaultPort)
	o.CertDir = cmp.Or(o.CertDir, filepath.Join(os.TempDir(), "k8s-webhook-server", "serving-certs"))
	o.CertName = cmp.Or(o.CertName, "tls.crt")
	o.KeyName = cmp.Or(o.KeyName, "tls.key")
	if o.WebhookMux == nil {
		o.WebhookMux = http.NewServeMux()
	}
}

func (o *Options) address() string { return net.JoinHostPort(o.Host, strconv.Itoa(o.Port)) }
