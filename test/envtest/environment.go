// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package envtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/client/apiutil"
	"github.com/wherry-dev/wherry/client/config"
)

// Environment variables that settle what an Environment leaves open.
const (
	envExisting     = "USE_EXISTING_CLUSTER"
	envStartTimeout = "KUBEBUILDER_CONTROLPLANE_START_TIMEOUT"
	envStopTimeout  = "KUBEBUILDER_CONTROLPLANE_STOP_TIMEOUT"
	envAttach       = "KUBEBUILDER_ATTACH_CONTROL_PLANE_OUTPUT"
)

// StartTimeout and StopTimeout are seconds a test suite may give itself to start
// and stop an Environment, under the names that suites know. Nothing here waits
// by them.
const (
	StartTimeout = 60
	StopTimeout  = 60
)

// Client limits of the configuration Start returns: high enough that a test is
// never throttled by its own client.
const (
	testQPS   = 1000
	testBurst = 2000
)

// namespaceWait bounds the wait for the namespace default, without which most
// tests cannot begin.
const namespaceWait = 5 * time.Second

// Environment is an API server for tests. The zero value is ready for Start. Its
// methods are not for several goroutines at once.
type Environment struct {
	// ControlPlane is the server itself; its fields set before Start tell how it
	// runs.
	ControlPlane ControlPlane

	// Scheme is the default of CRDInstallOptions.Scheme; nil means
	// apiutil.DefaultScheme, which Start puts here.
	Scheme *runtime.Scheme

	// Config is the configuration of a client with every right. Start sets it. With
	// an existing cluster one that is set before is used.
	Config *rest.Config

	// KubeConfig is Config as a kubeconfig. Start sets it.
	KubeConfig []byte

	// CRDInstallOptions say more about CRDs. Start completes them from the fields
	// here, so that they can be handed to InstallCRDs and UninstallCRDs.
	CRDInstallOptions CRDInstallOptions

	// WebhookInstallOptions say which webhooks to install. Start completes them:
	// they tell the manager under test where to serve, also where there are none.
	WebhookInstallOptions WebhookInstallOptions

	// ErrorIfCRDPathMissing makes a path that does not exist an error.
	ErrorIfCRDPathMissing bool

	// CRDs are custom resource definitions to install, beside those of
	// CRDInstallOptions and those found in CRDDirectoryPaths. Start puts all it
	// installed here; the objects given stay as they are.
	CRDs []*apiextensionsv1.CustomResourceDefinition

	// CRDDirectoryPaths are files and folders with CRDs to install, beside those
	// of CRDInstallOptions.
	CRDDirectoryPaths []string

	// DownloadBinaryAssets asked for a download of etcd and kube-apiserver. Nothing
	// is downloaded: the embedded server needs neither. Start says so in the log,
	// and uses such programs only where they were named and are there.
	DownloadBinaryAssets bool

	// DownloadBinaryAssetsVersion asked for the version of Kubernetes to download.
	// Start says in the log that the embedded server's version is what it is.
	DownloadBinaryAssetsVersion string

	// DownloadBinaryAssetsIndexURL asked for a list of downloads. It says nothing.
	DownloadBinaryAssetsIndexURL string

	// BinaryAssetsDirectory is a folder with a real etcd and kube-apiserver, which
	// run if both are there, and kubectl. The environment variables
	// KUBEBUILDER_ASSETS and TEST_ASSET_KUBE_APISERVER, TEST_ASSET_ETCD and
	// TEST_ASSET_KUBECTL count before it, and the fields for single paths before
	// those. WHERRY_APISERVER asks for the embedded server whatever they say.
	BinaryAssetsDirectory string

	// UseExistingCluster starts no server: the cluster is the one of Config, or
	// else of package client/config. Nil means that the environment variable
	// USE_EXISTING_CLUSTER decides, and if it is not set that a server is started.
	UseExistingCluster *bool

	// ControlPlaneStartTimeout bounds how long Start waits for the server to be
	// ready. Zero means KUBEBUILDER_CONTROLPLANE_START_TIMEOUT, or else 20 s.
	ControlPlaneStartTimeout time.Duration

	// ControlPlaneStopTimeout bounds a graceful stop, after which the server is
	// killed. Zero means KUBEBUILDER_CONTROLPLANE_STOP_TIMEOUT, or else 20 s.
	ControlPlaneStopTimeout time.Duration

	// AttachControlPlaneOutput copies what the server prints to this process's
	// output, where ControlPlane names no other place. It is also switched on by
	// KUBEBUILDER_ATTACH_CONTROL_PLANE_OUTPUT=true.
	AttachControlPlaneOutput bool

	started bool
}

// Start starts the server, waits until it is ready, installs CRDs and webhooks,
// and returns the configuration of a client with every right, which is also put
// into Config. If the embedded server's program is still to be built that takes
// minutes, once; a start takes about a second. If Start fails nothing is left
// running. It may be called again after Stop.
func (e *Environment) Start() (*rest.Config, error) {
	if e.started {
		return nil, errors.New("envtest: this Environment runs already; call Stop before Start")
	}
	existing, err := e.usesExisting()
	if err != nil {
		return nil, err
	}
	start := e.startControlPlane
	if existing {
		start = e.findCluster
	}
	if err := start(); err != nil {
		return nil, errors.Join(err, e.ControlPlane.Stop())
	}
	e.started = true
	if err := e.install(); err != nil {
		return nil, errors.Join(fmt.Errorf("envtest: %w", err), e.Stop())
	}
	return e.Config, nil
}

func (e *Environment) usesExisting() (bool, error) {
	if e.UseExistingCluster != nil {
		return *e.UseExistingCluster, nil
	}
	return boolean(envExisting)
}

// boolean reads an environment variable that is true or false.
func boolean(name string) (bool, error) {
	text := os.Getenv(name)
	if text == "" {
		return false, nil
	}
	value, err := strconv.ParseBool(text)
	if err != nil {
		return false, fmt.Errorf("envtest: %s=%s is neither true nor false", name, text)
	}
	return value, nil
}

// timeout returns the first of the field, the environment variable and 20 s that
// is set.
func timeout(field time.Duration, name string) (time.Duration, error) {
	text := os.Getenv(name)
	if field != 0 || text == "" {
		return orDefault(field, defaultTimeout), nil
	}
	value, err := time.ParseDuration(text)
	if err != nil || value <= 0 {
		return 0, fmt.Errorf("envtest: %s=%s is not a time such as 90s", name, text)
	}
	return value, nil
}

// findCluster takes the cluster that exists, and finds out whether it does.
func (e *Environment) findCluster() error {
	if e.Config == nil {
		found, err := config.GetConfig()
		if err != nil {
			return fmt.Errorf("envtest: use the existing cluster: %w", err)
		}
		e.Config = found
	}
	if len(e.KubeConfig) == 0 {
		var err error
		if e.KubeConfig, err = kubeconfig(e.Config); err != nil {
			return err
		}
	}
	if err := defaultNamespace(e.Config); err != nil {
		return fmt.Errorf("envtest: the existing cluster at %s does not let its namespace default be read: %w; is the kubeconfig stale? Correct it, or leave out UseExistingCluster and %s to have a server started", e.Config.Host, err, envExisting)
	}
	return nil
}

// defaultNamespace waits for the namespace default.
func defaultNamespace(cfg *rest.Config) error {
	cfg = rest.CopyConfig(cfg)
	cfg.Timeout = namespaceWait
	c, err := ownClient(cfg)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), namespaceWait)
	defer cancel()
	return poll(ctx, probeEvery, func() error {
		return c.Get(ctx, client.ObjectKey{Name: metav1.NamespaceDefault}, &corev1.Namespace{})
	})
}

// startControlPlane starts a server.
func (e *Environment) startControlPlane() error {
	start, err := timeout(e.ControlPlaneStartTimeout, envStartTimeout)
	if err != nil {
		return err
	}
	stop, err := timeout(e.ControlPlaneStopTimeout, envStopTimeout)
	if err != nil {
		return err
	}
	attach, err := boolean(envAttach)
	if err != nil {
		return err
	}
	plane := &e.ControlPlane
	server, etcd := plane.GetAPIServer(), plane.etcd()
	server.StartTimeout, server.StopTimeout = start, stop
	etcd.StartTimeout, etcd.StopTimeout = start, stop
	if e.AttachControlPlaneOutput || attach {
		server.Out, server.Err = orWriter(server.Out, os.Stdout), orWriter(server.Err, os.Stderr)
		etcd.Out, etcd.Err = orWriter(etcd.Out, os.Stdout), orWriter(etcd.Err, os.Stderr)
	}
	if e.DownloadBinaryAssets {
		logger.Info("nothing is downloaded: without a real kube-apiserver and etcd the embedded API server runs, in its own version", "wanted", e.DownloadBinaryAssetsVersion)
	}
	plane.assets = e.BinaryAssetsDirectory
	if err := plane.Start(); err != nil {
		return err
	}
	admin, err := plane.AddUser(User{Name: "admin", Groups: []string{mastersGroup}}, &rest.Config{QPS: testQPS, Burst: testBurst})
	if err != nil {
		return err
	}
	e.Config = admin.Config()
	if e.KubeConfig, err = admin.KubeConfig(); err != nil {
		return err
	}
	if server.admin != nil {
		return nil // the embedded server is ready when its namespaces are there
	}
	return defaultNamespace(e.Config)
}

func orWriter(w, otherwise io.Writer) io.Writer {
	if w == nil {
		return otherwise
	}
	return w
}

// install installs the CRDs and webhooks that the environment names. The
// webhooks are prepared first, because CRDs may call them.
func (e *Environment) install() error {
	if err := e.WebhookInstallOptions.PrepWithoutInstalling(); err != nil {
		return err
	}
	if e.Scheme == nil {
		e.Scheme = apiutil.DefaultScheme()
	}
	o := &e.CRDInstallOptions
	if o.Scheme == nil {
		o.Scheme = e.Scheme
	}
	o.CRDs = slices.Concat(o.CRDs, e.CRDs)
	for _, path := range e.CRDDirectoryPaths {
		if !slices.Contains(o.Paths, path) {
			o.Paths = append(slices.Clip(o.Paths), path)
		}
	}
	o.ErrorIfPathMissing = o.ErrorIfPathMissing || e.ErrorIfCRDPathMissing
	o.WebhookOptions = e.WebhookInstallOptions
	var err error
	if e.CRDs, err = InstallCRDs(e.Config, *o); err != nil {
		return err
	}
	o.CRDs = e.CRDs
	return e.WebhookInstallOptions.Install(e.Config)
}

// AddUser makes a user whom the server knows by name and groups; what it may do
// is for RBAC to say. See ControlPlane.AddUser.
func (e *Environment) AddUser(user User, base *rest.Config) (*AuthenticatedUser, error) {
	return e.ControlPlane.AddUser(user, base)
}

// Stop ends the server and waits for its end. With CRDInstallOptions.
// CleanUpAfterUse it first deletes the CRDs and webhook configurations that Start
// installed, which matters in an existing cluster. It does nothing if the
// Environment does not run.
func (e *Environment) Stop() error {
	var errs []error
	if e.started && e.CRDInstallOptions.CleanUpAfterUse {
		errs = append(errs, UninstallCRDs(e.Config, CRDInstallOptions{CRDs: e.CRDs}), e.WebhookInstallOptions.uninstall(e.Config))
	}
	e.started = false
	errs = append(errs, e.WebhookInstallOptions.Cleanup(), e.ControlPlane.Stop())
	return errors.Join(errs...)
}

func orDefault(d, otherwise time.Duration) time.Duration {
	if d == 0 {
		return otherwise
	}
	return d
}
