// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package envtest

import (
	"errors"
	"fmt"
	"net/url"

	"k8s.io/client-go/rest"

	"github.com/wherry-dev/wherry/client/log"
)

var logger = log.Log.WithName("test-env")

// ControlPlane is an API server and its storage. The zero value is the embedded
// server with its data in memory. Its methods are not for several goroutines at
// once.
type ControlPlane struct {
	// APIServer holds the settings of the server; Start makes it if it is nil.
	APIServer *APIServer
	// Etcd holds the settings of the storage; Start makes it if it is nil. No etcd
	// runs beside the embedded server.
	Etcd *Etcd

	// KubectlPath is the kubectl that KubeCtl and AuthenticatedUser.Kubectl run.
	// Empty means the one TEST_ASSET_KUBECTL or KUBEBUILDER_ASSETS names, or else
	// the first in PATH.
	KubectlPath string

	assets string // folder to look for programs in
	ownURL bool   // APIServer.EtcdURL was set here

	// Of the user whom the deprecated methods stand for.
	legacy *AuthenticatedUser
}

// GetAPIServer returns APIServer, which it makes if it is nil.
func (p *ControlPlane) GetAPIServer() *APIServer {
	if p.APIServer == nil {
		p.APIServer = &APIServer{}
	}
	return p.APIServer
}

// etcd returns Etcd, which it makes if it is nil.
func (p *ControlPlane) etcd() *Etcd {
	if p.Etcd == nil {
		p.Etcd = &Etcd{}
	}
	return p.Etcd
}

// Start starts storage and server and waits until they are ready. If it fails
// nothing is left running. It may be called again after Stop.
func (p *ControlPlane) Start() error {
	server, etcd := p.GetAPIServer(), p.etcd()
	server.assets, etcd.assets = p.assets, p.assets
	if err := p.checkBinaries(); err != nil {
		return err
	}
	if err := etcd.Start(); err != nil {
		return err
	}
	if etcd.run != nil {
		server.EtcdURL, p.ownURL = etcd.URL, true
	}
	server.data = etcd.DataDir
	if err := server.Start(); err != nil {
		return errors.Join(err, p.Stop())
	}
	return nil
}

// Stop ends the server, then its storage, and waits for both. It does nothing if
// they do not run.
func (p *ControlPlane) Stop() error {
	p.legacy = nil
	if p.ownURL {
		p.APIServer.EtcdURL, p.ownURL = nil, false
	}
	var errs []error
	if p.APIServer != nil {
		errs = append(errs, p.APIServer.Stop())
	}
	if p.Etcd != nil {
		errs = append(errs, p.Etcd.Stop())
	}
	return errors.Join(errs...)
}

// AddUser makes a user whom the server knows by name and groups; what it may do
// is for RBAC to say. The user's Config is a copy of base, which may be nil, with
// all that is needed to connect as that user. The server must have been started,
// unless APIServer.SecureServing.Authn was set by the caller.
func (p *ControlPlane) AddUser(user User, base *rest.Config) (*AuthenticatedUser, error) {
	server := p.GetAPIServer()
	if server.Authn == nil {
		return nil, fmt.Errorf("envtest: add user %q: the API server was not started; call Start first, or set SecureServing.Authn", user.Name)
	}
	if base == nil {
		base = &rest.Config{}
	}
	cfg, err := server.SecureServing.AddUser(user, base)
	if err != nil {
		return nil, fmt.Errorf("envtest: add user %q: %w", user.Name, err)
	}
	return &AuthenticatedUser{plane: p, cfg: cfg}, nil
}

// APIURL returns where the server is reached, nil before Start.
//
// Deprecated: AuthenticatedUser.Config has it.
func (p *ControlPlane) APIURL() *url.URL { return p.GetAPIServer().URL }

// RESTClientConfig returns the configuration of a client with every right.
//
// Deprecated: use AddUser.
func (p *ControlPlane) RESTClientConfig() (*rest.Config, error) {
	user, err := p.legacyUser()
	if err != nil {
		return nil, err
	}
	return user.Config(), nil
}

// KubeCtl returns a kubectl with every right. If that cannot be had, the error
// is what its Run returns.
//
// Deprecated: use AddUser and AuthenticatedUser.Kubectl.
func (p *ControlPlane) KubeCtl() *KubeCtl {
	user, err := p.legacyUser()
	if err != nil {
		return &KubeCtl{err: err}
	}
	kubectl, err := user.Kubectl()
	if err != nil {
		return &KubeCtl{err: err}
	}
	return kubectl
}

func (p *ControlPlane) legacyUser() (*AuthenticatedUser, error) {
	if p.legacy == nil {
		user, err := p.AddUser(User{Name: "default", Groups: []string{mastersGroup}}, nil)
		if err != nil {
			return nil, err
		}
		p.legacy = user
	}
	return p.legacy, nil
}
