// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package envtest

import (
	"errors"
	"fmt"
	"slices"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
)

const (
	// defaultStartTimeout bounds the time from the start of the server's process
	// to its ready line. Building the program comes before and does not count.
	defaultStartTimeout = 20 * time.Second
	// defaultStopTimeout bounds a graceful stop; after it the process is killed.
	defaultStopTimeout = 20 * time.Second
)

// Client limits of the configuration Start returns: high enough that a test is
// never throttled by its own client.
const (
	testQPS   = 1000
	testBurst = 2000
)

// Environment is an API server for tests. The zero value is ready for Start.
type Environment struct {
	// ControlPlane is the server itself; its fields set before Start tell how it
	// runs.
	ControlPlane ControlPlane

	// Config is the configuration of a client with every right. Start sets it.
	Config *rest.Config

	// Scheme is the default of CRDInstallOptions.Scheme.
	Scheme *runtime.Scheme

	// CRDs are custom resource definitions to install, beside those found in
	// CRDDirectoryPaths. Start puts all it installed here.
	CRDs []*apiextensionsv1.CustomResourceDefinition

	// CRDDirectoryPaths are files and folders with CRDs to install.
	CRDDirectoryPaths []string

	// ErrorIfCRDPathMissing makes a path that does not exist an error.
	ErrorIfCRDPathMissing bool

	// CRDInstallOptions say more about CRDs. Its Paths and CRDs count beside the
	// ones above.
	CRDInstallOptions CRDInstallOptions

	// ControlPlaneStartTimeout bounds how long Start waits for the server to be
	// ready; zero means 20 s.
	ControlPlaneStartTimeout time.Duration

	// ControlPlaneStopTimeout bounds a graceful stop, after which the server is
	// killed; zero means 20 s.
	ControlPlaneStopTimeout time.Duration

	// AttachControlPlaneOutput copies the server's log to this process's
	// standard error.
	AttachControlPlaneOutput bool
}

// ControlPlane is the API server and its storage.
type ControlPlane struct {
	// APIServer holds the settings of the server; nil means the defaults.
	APIServer *APIServer
	// Etcd holds the settings of the storage, under the name that tests know it
	// by; no etcd runs. Nil means storage in memory.
	Etcd *Etcd

	server *process
}

// APIServer holds the settings of the server.
type APIServer struct {
	// SecurePort is the loopback port to listen on; zero means a free one.
	SecurePort int
}

// Etcd holds the settings of the storage.
type Etcd struct {
	// DataDir is the folder that keeps the server's data over a Stop and the
	// next Start; empty means that it is kept in memory and lost at Stop.
	DataDir string
}

// Start finds or builds the server's program, starts it, waits until it is
// ready, and returns the configuration of a client with every right, which is
// also put into Config. A program that is still to be built takes minutes, once;
// a start takes about a second. It may be called again after Stop.
func (e *Environment) Start() (*rest.Config, error) {
	if e.ControlPlane.server != nil {
		return nil, errors.New("envtest: this Environment runs already; call Stop before Start")
	}
	server, err := startProcess(e)
	if err != nil {
		return nil, err
	}
	cfg, err := server.config()
	if err != nil {
		return nil, errors.Join(err, server.stop(e.stopTimeout()))
	}
	cfg.QPS, cfg.Burst = testQPS, testBurst
	e.ControlPlane.server, e.Config = server, cfg
	if err := e.installCRDs(cfg); err != nil {
		return nil, errors.Join(fmt.Errorf("envtest: %w", err), e.Stop())
	}
	return cfg, nil
}

// installCRDs installs the CRDs that the environment names, if any.
func (e *Environment) installCRDs(cfg *rest.Config) error {
	options := e.CRDInstallOptions
	options.CRDs = slices.Concat(options.CRDs, e.CRDs)
	options.Paths = slices.Concat(options.Paths, e.CRDDirectoryPaths)
	options.ErrorIfPathMissing = options.ErrorIfPathMissing || e.ErrorIfCRDPathMissing
	if options.Scheme == nil {
		options.Scheme = e.Scheme
	}
	var err error
	e.CRDs, err = InstallCRDs(cfg, options)
	return err
}

// Stop ends the server and waits for its end. It does nothing if no server
// runs.
func (e *Environment) Stop() error {
	server := e.ControlPlane.server
	if server == nil {
		return nil
	}
	e.ControlPlane.server = nil
	var err error
	if e.CRDInstallOptions.CleanUpAfterUse {
		err = UninstallCRDs(e.Config, CRDInstallOptions{CRDs: e.CRDs})
	}
	return errors.Join(err, server.stop(e.stopTimeout()))
}

func (e *Environment) startTimeout() time.Duration {
	return orDefault(e.ControlPlaneStartTimeout, defaultStartTimeout)
}

func (e *Environment) stopTimeout() time.Duration {
	return orDefault(e.ControlPlaneStopTimeout, defaultStopTimeout)
}

func orDefault(d, otherwise time.Duration) time.Duration {
	if d == 0 {
		return otherwise
	}
	return d
}
