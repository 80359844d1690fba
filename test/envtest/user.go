// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package envtest

import (
	"fmt"
	"os"

	"k8s.io/client-go/rest"
)

// mastersGroup is the group whose members may do everything.
const mastersGroup = "system:masters"

// User is somebody as the API server sees them.
type User struct {
	// Name is the user's name, such as system:serviceaccount:NAMESPACE:NAME for
	// the account an operator runs under.
	Name string
	// Groups are the groups the user is in. To be in system:authenticated needs
	// no mention.
	Groups []string
}

// Authn makes users and has the API server recognise them. Its methods are
// called in this order, AddUser as often as wanted.
type Authn interface {
	// Configure gets a folder to write to and the flags of the API server, among
	// which it sets those the server needs to recognise its users.
	Configure(workDir string, args *Arguments) error
	// Start is called just before the API server starts.
	Start() error
	// AddUser makes a user and returns a copy of baseCfg that authenticates as
	// that user.
	AddUser(user User, baseCfg *rest.Config) (*rest.Config, error)
	// Stop is called when the API server has stopped.
	Stop() error
}

// AuthenticatedUser is a user whom the API server knows. Its methods may be
// called once the server was started, and panic before.
type AuthenticatedUser struct {
	plane    *ControlPlane
	cfg      *rest.Config
	complete bool
	kubectl  *KubeCtl
}

// Config returns the configuration of a client that is this user: always the
// same one, which is the caller's to change. It stays as it is when the server
// is stopped and started again.
func (u *AuthenticatedUser) Config() *rest.Config {
	if !u.complete {
		serving := &u.plane.GetAPIServer().SecureServing
		if len(serving.CA) == 0 {
			panic("envtest: a user's Config was asked for before the API server was started")
		}
		u.cfg.CAData = serving.CA
		u.cfg.Host = serving.URL("https", "/").String()
		u.complete = true
	}
	return u.cfg
}

// KubeConfig returns a kubeconfig with the cluster and the user, and that as its
// current context.
func (u AuthenticatedUser) KubeConfig() ([]byte, error) { return kubeconfig(u.Config()) }

// Kubectl returns a kubectl that is this user, always the same one. Its
// kubeconfig lies in the server's working folder and goes with it at Stop.
func (u *AuthenticatedUser) Kubectl() (*KubeCtl, error) {
	if u.kubectl != nil {
		return u.kubectl, nil
	}
	content, err := u.KubeConfig()
	if err != nil {
		return nil, err
	}
	dir, err := u.plane.GetAPIServer().workDir()
	if err != nil {
		return nil, err
	}
	file, err := os.CreateTemp(dir, "*.kubeconfig") // readable by this user only
	if err != nil {
		return nil, fmt.Errorf("envtest: write a kubeconfig: %w", err)
	}
	defer file.Close()
	if _, err := file.Write(content); err != nil {
		return nil, fmt.Errorf("envtest: write a kubeconfig: %w", err)
	}
	u.kubectl = &KubeCtl{Path: u.plane.KubectlPath, Opts: []string{"--kubeconfig=" + file.Name()}, assets: u.plane.assets}
	return u.kubectl, nil
}
