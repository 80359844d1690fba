// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package envtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"k8s.io/client-go/rest"

	"github.com/wherry-dev/wherry/test/envtest/program"
)

const loopback = "127.0.0.1"

// ListenAddr is where a server listens.
type ListenAddr struct {
	// Address is the host.
	Address string
	// Port is the port's number.
	Port string
}

// HostPort returns host:port.
func (l *ListenAddr) HostPort() string { return net.JoinHostPort(l.Address, l.Port) }

// URL returns a URL of the server.
func (l *ListenAddr) URL(scheme, path string) *url.URL {
	return &url.URL{Scheme: scheme, Host: l.HostPort(), Path: path}
}

// SecureServing is how the server is reached, and by whom.
type SecureServing struct {
	// ListenAddr is where the server listens. What is empty Start sets, and a
	// later Start uses again. The embedded server listens on loopback only.
	ListenAddr
	// CA is what a client needs to trust the server, PEM. Start sets it.
	CA []byte
	// Authn makes users. Nil before Start means client certificates.
	Authn
}

// APIServer holds the settings of the server.
type APIServer struct {
	// URL is where the server is reached; Start sets it.
	//
	// Deprecated: SecureServing has it. To set it asked for a port without
	// encryption, which Kubernetes has no more, and is an error.
	URL *url.URL

	// SecurePort is the port to listen on; zero means that of SecureServing, and
	// if that is empty too a free one. Start sets it.
	//
	// Deprecated: SecureServing has it.
	SecurePort int

	// SecureServing is how the server is reached.
	SecureServing

	// InsecureServing asked for a port without encryption.
	//
	// Deprecated: Kubernetes has none since 1.24; to set it is an error.
	InsecureServing *ListenAddr

	// Path is the program of a real kube-apiserver; empty means that the
	// environment variables TEST_ASSET_KUBE_APISERVER and KUBEBUILDER_ASSETS may
	// name it. Without one that is there the embedded server runs.
	Path string

	// Args are arguments of kube-apiserver, each a template over this struct. With
	// any of them only authorization-mode and service-cluster-ip-range have a
	// default.
	//
	// Deprecated: use Configure.
	Args []string

	// CertDir is the working folder: certificates, and the kubeconfigs of
	// AuthenticatedUser.Kubectl. If it is empty one is made when it is needed, and
	// removed by Stop.
	CertDir string

	// EtcdURL is where the etcd of a real kube-apiserver listens.
	// ControlPlane.Start sets it; the embedded server needs none.
	EtcdURL *url.URL

	// StartTimeout bounds the time until the server is ready, StopTimeout a
	// graceful stop, after which it is killed; zero means 20 s. To build the
	// embedded server's program does not count.
	StartTimeout, StopTimeout time.Duration

	// Out and Err get what the server prints; nil drops it. The embedded server
	// prints to Err only.
	Out, Err io.Writer

	args   *Arguments
	assets string // folder to look for the program in
	data   string // folder of the embedded server's data, or empty
	made   string // working folder to remove again, or empty
	chosen string // port that Start chose, or empty
	// ownURL and ownAuthn say that URL and Authn were made here.
	ownURL, ownAuthn bool
	admin            *rest.Config
	run              *process
}

// Configure returns the flags of kube-apiserver, to be changed before Start. One
// that was never mentioned keeps its default. The embedded server takes all of
// them but those for its storage, certificates and addresses, which it passes
// over with a line to the log, and some it refuses. A flag that kube-apiserver
// does not have makes Start fail.
func (s *APIServer) Configure() *Arguments {
	if s.args == nil {
		s.args = EmptyArguments()
	}
	return s.args
}

// Start starts the server and waits until it is ready: the embedded one, or a
// real kube-apiserver if one was named and is there. If it fails nothing is left
// running. ControlPlane.Start takes care of the storage too.
func (s *APIServer) Start() error {
	if s.run != nil {
		return errors.New("envtest: this API server runs already; call Stop before Start")
	}
	if s.InsecureServing != nil || s.URL != nil && !s.ownURL {
		return errors.New("envtest: APIServer.URL and InsecureServing ask for a port without encryption, which kube-apiserver has no more: leave them out and use SecureServing")
	}
	path, err := findBinary(apiServerName, s.Path, s.assets)
	if err != nil {
		return err
	}
	start := s.startEmbedded
	if path != "" {
		start = func() error { return s.startBinary(path) }
	}
	if err := start(); err != nil {
		stopped := s.Stop() // only then it has said all it has to say
		return errors.Join(fmt.Errorf("envtest: %w", err), stopped)
	}
	s.URL, s.ownURL = s.SecureServing.URL("https", ""), true
	return nil
}

// startEmbedded starts the embedded server.
func (s *APIServer) startEmbedded() error {
	if s.Address != "" && s.Address != loopback && s.Address != "localhost" {
		return fmt.Errorf("the embedded API server listens on %s only, and SecureServing.Address is %s: leave it out, or name a real kube-apiserver and etcd", loopback, s.Address)
	}
	if err := s.prepare(func() (Authn, error) { return &issued{}, nil }); err != nil {
		return err
	}
	args, err := s.embeddedLine()
	if err != nil {
		return err
	}
	path, err := program.Find(context.Background(), os.Stderr)
	if err != nil {
		return err
	}
	if s.run, s.admin, err = startEmbedded(path, args, s.Err, orDefault(s.StartTimeout, defaultTimeout)); err != nil {
		return err
	}
	at, err := url.Parse(s.admin.Host)
	if err != nil {
		return fmt.Errorf("the API server's address: %w", err)
	}
	if s.Address, s.CA = at.Hostname(), s.admin.CAData; s.Port != at.Port() {
		s.Port, s.chosen = at.Port(), at.Port()
	}
	s.SecurePort, _ = strconv.Atoi(s.Port)
	if i, ok := s.Authn.(*issued); ok {
		i.admin = s.admin
	}
	return nil
}

// embeddedLine is the command line of the embedded server's program.
func (s *APIServer) embeddedLine() ([]string, error) {
	out := []string{"--exit-on-stdin-eof", "--ready-json", "--storage", "memory"}
	if s.data != "" {
		out = []string{"--exit-on-stdin-eof", "--ready-json", "--storage", "relaxed", "--data-dir", s.data}
	}
	flags, words, err := s.flags(defaultFlags)
	if err != nil {
		return nil, err
	}
	if len(words) > 0 {
		return nil, fmt.Errorf("the embedded API server takes arguments of the form --name=value only, and APIServer.Args has %q", words)
	}
	port, address := s.Port, loopback
	for _, f := range flags {
		if len(f.values) == 0 {
			continue
		}
		switch last := f.values[len(f.values)-1]; f.name {
		case "secure-port":
			if last != "" {
				port = last
			}
		case "bind-address":
			address = last
		}
	}
	if address != loopback && address != "localhost" && address != "" {
		return nil, fmt.Errorf("the embedded API server listens on %s only, and its flag bind-address is %s: leave it out, or name a real kube-apiserver and etcd", loopback, address)
	}
	if port != "" {
		out = append(out, "--port", port)
	}
	args, passedOver := embedded(flags, "secure-port", "bind-address")
	if s.Path != "" {
		passedOver = append(passedOver, "APIServer.Path")
	}
	if s.EtcdURL != nil && !slices.Contains(passedOver, "etcd-servers") {
		passedOver = append(passedOver, "APIServer.EtcdURL")
	}
	if s.Err != nil && !slices.Contains(args, "--v") {
		args = append(args, "--v", "0") // somebody listens
	}
	if len(passedOver) > 0 {
		logger.Info("settings that say nothing to the embedded API server are passed over", "settings", passedOver)
	}
	return append(out, args...), nil
}

// flags returns the flags of kube-apiserver and the arguments that are none.
func (s *APIServer) flags(defaults map[string][]string) ([]flagValues, []string, error) {
	if len(s.Args) == 0 {
		return s.Configure().values(defaults), nil, nil
	}
	words, err := render(s.Args, s)
	if err != nil {
		return nil, nil, err
	}
	flags, rest := s.Configure().take(words)
	return flags.values(minimalFlags), rest, nil
}

// prepare settles port and Authn before the command line is written.
func (s *APIServer) prepare(authn func() (Authn, error)) error {
	if s.SecurePort != 0 {
		if port := strconv.Itoa(s.SecurePort); port != s.chosen {
			s.Port = port
		}
	}
	if s.chosen != "" && s.Port == s.chosen && tryPort(loopback, s.Port) != nil {
		s.Port, s.SecurePort, s.chosen = "", 0, "" // somebody took it meanwhile
	}
	if s.Authn == nil {
		made, err := authn()
		if err != nil {
			return err
		}
		s.Authn, s.ownAuthn = made, true
	}
	if _, own := s.Authn.(*issued); !own {
		dir, err := s.workDir()
		if err != nil {
			return err
		}
		if err := s.Authn.Configure(dir, s.Configure()); err != nil {
			return fmt.Errorf("authentication: %w", err)
		}
	}
	if err := s.Authn.Start(); err != nil {
		return fmt.Errorf("authentication: %w", err)
	}
	return nil
}

// workDir returns CertDir, which it makes if it is empty.
func (s *APIServer) workDir() (string, error) {
	if s.CertDir == "" {
		dir, err := os.MkdirTemp("", "envtest-apiserver-")
		if err != nil {
			return "", fmt.Errorf("make a working folder: %w", err)
		}
		s.CertDir, s.made = dir, dir
	}
	return s.CertDir, nil
}

// Files of a real kube-apiserver in its working folder.
const (
	servingCert = "apiserver.crt" // the name kube-apiserver itself looks for
	servingKey  = "apiserver.key"
	servingCA   = "apiserver-ca.crt"
	accountKey  = "sa-signer.key"
	accountCert = "sa-signer.crt"
)

// startBinary starts a real kube-apiserver.
func (s *APIServer) startBinary(path string) error {
	if s.EtcdURL == nil {
		return fmt.Errorf("%s needs an etcd: set APIServer.EtcdURL, or start it by ControlPlane.Start", path)
	}
	if err := s.prepare(func() (Authn, error) { return newCertificates() }); err != nil {
		return err
	}
	dir, err := s.workDir()
	if err != nil {
		return err
	}
	if s.Address == "" {
		s.Address = loopback
	}
	if s.Port == "" {
		port, err := freePort(s.Address)
		if err != nil {
			return err
		}
		s.Port = strconv.Itoa(port)
		s.chosen = s.Port
	}
	s.SecurePort, _ = strconv.Atoi(s.Port)
	if err := s.certify(dir); err != nil {
		return fmt.Errorf("write certificates: %w", err)
	}
	flags, words, err := s.flags(s.binaryFlags())
	if err != nil {
		return err
	}
	if s.run, err = startBinary(path, append(line(flags), words...), s.Out, s.Err); err != nil {
		return err
	}
	trusting, err := rest.HTTPClientFor(&rest.Config{TLSClientConfig: rest.TLSClientConfig{CAData: s.CA}})
	if err != nil {
		return err
	}
	healthy := func(ctx context.Context) error { return probe(ctx, trusting, s.SecureServing.URL("https", "/healthz")) }
	return s.run.await(healthy, orDefault(s.StartTimeout, defaultTimeout))
}

// binaryFlags are the flags of a real kube-apiserver.
func (s *APIServer) binaryFlags() map[string][]string {
	flags := maps.Clone(defaultFlags)
	for name, value := range map[string]string{
		"bind-address":                     s.Address,
		"cert-dir":                         s.CertDir,
		"etcd-servers":                     s.EtcdURL.String(),
		"secure-port":                      s.Port,
		"service-account-issuer":           s.SecureServing.URL("https", "/").String(),
		"service-account-key-file":         filepath.Join(s.CertDir, accountCert),
		"service-account-signing-key-file": filepath.Join(s.CertDir, accountKey),
	} {
		flags[name] = []string{value}
	}
	return flags
}

// certify writes what a real kube-apiserver serves and signs with to the working
// folder, and learns the authority. A folder that has a serving certificate
// already is used as it is.
func (s *APIServer) certify(dir string) error {
	have, err := os.ReadFile(filepath.Join(dir, servingCert))
	switch {
	case err == nil:
		s.CA = have
		if ca, err := os.ReadFile(filepath.Join(dir, servingCA)); err == nil {
			s.CA = ca
		}
		return nil
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	ca, err := newAuthority()
	if err != nil {
		return err
	}
	cert, key, err := ca.serving("localhost", loopback, s.Address)
	if err != nil {
		return err
	}
	// Tokens of service accounts are signed by the authority's own key: one test,
	// one secret.
	signer, err := keyPEM(ca.key)
	if err != nil {
		return err
	}
	s.CA = ca.bundle()
	for name, content := range map[string][]byte{
		servingCert: cert, servingKey: key, servingCA: s.CA, accountCert: s.CA, accountKey: signer,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// Stop ends the server, waits for its end, and removes the working folder if
// Start had to make one. It does nothing if no server runs.
func (s *APIServer) Stop() error {
	var errs []error
	if s.run != nil {
		if err := s.run.stop(orDefault(s.StopTimeout, defaultTimeout)); err != nil {
			errs = append(errs, fmt.Errorf("envtest: %w", err))
		}
		if s.Authn != nil {
			errs = append(errs, s.Authn.Stop())
		}
		s.run, s.admin = nil, nil
	}
	if s.ownAuthn {
		s.Authn, s.ownAuthn = nil, false
	}
	if s.ownURL {
		s.URL, s.ownURL = nil, false
	}
	if s.made != "" {
		errs = append(errs, os.RemoveAll(s.made))
		s.CertDir, s.made = "", ""
	}
	return errors.Join(errs...)
}
