// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package envtest_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"

	"github.com/wherry-dev/wherry/test/envtest"
	"github.com/wherry-dev/wherry/test/envtest/program"
)

// What stands for a real control plane here: this test binary under the names
// etcd and kube-apiserver. The first only says that it is well. The second is the
// embedded server behind a door of its own, which takes kube-apiserver's flags for
// address, certificates and users. Both write down how they were called.
const (
	notesEnv  = "WHERRY_TEST_NOTES"  // folder for what they write down
	serverEnv = "WHERRY_TEST_SERVER" // the embedded server's program
)

// flagOf returns the last value of a flag of this process.
func flagOf(name string) string {
	value := ""
	for _, arg := range os.Args[1:] {
		if v, ok := strings.CutPrefix(arg, "--"+name+"="); ok {
			value = v
		}
	}
	return value
}

func init() { asBinary = pretendBinary }

func pretendBinary() {
	name := strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe")
	note := filepath.Join(os.Getenv(notesEnv), name)
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	err := errors.Join(os.WriteFile(note, []byte(strings.Join(os.Args[1:], "\n")), 0o600),
		os.WriteFile(note+".pid", []byte(strconv.Itoa(os.Getpid())), 0o600))
	if err == nil && name == "etcd" {
		err = pretendEtcd(stop)
	} else if err == nil {
		err = pretendServer(stop)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func pretendEtcd(stop chan os.Signal) error {
	at, err := url.Parse(flagOf("listen-client-urls"))
	if err != nil {
		return err
	}
	failed := make(chan error, 1)
	go func() {
		failed <- http.ListenAndServe(at.Host, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"health":"true"}`) }))
	}()
	select {
	case err := <-failed:
		return err
	case <-stop:
	}
	signal.Reset(syscall.SIGTERM) // a real etcd ends by the signal
	if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
		return err
	}
	select {}
}

func pretendServer(stop chan os.Signal) error {
	if answer, err := http.Get(flagOf("etcd-servers") + "/health"); err != nil || answer.StatusCode != http.StatusOK {
		return fmt.Errorf("no etcd: %w", err)
	}
	if err := errors.Join(os.Unsetenv(pretend), os.Setenv(program.Env, os.Getenv(serverEnv))); err != nil {
		return err
	}
	env := &envtest.Environment{}
	cfg, err := env.Start()
	if err != nil {
		return err
	}
	behind, err := rest.TransportFor(cfg)
	if err != nil {
		return err
	}
	inner, err := url.Parse(cfg.Host)
	if err != nil {
		return err
	}
	ca, err := os.ReadFile(flagOf("client-ca-file"))
	if err != nil {
		return err
	}
	users := x509.NewCertPool()
	users.AppendCertsFromPEM(ca)
	proxy := &httputil.ReverseProxy{Transport: behind, FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(inner)
		if certs := r.In.TLS.PeerCertificates; len(certs) > 0 {
			r.Out.Header.Set(transport.ImpersonateUserHeader, certs[0].Subject.CommonName)
			r.Out.Header[transport.ImpersonateGroupHeader] = append(slices.Clone(certs[0].Subject.Organization), "system:authenticated")
		}
	}}
	door := &http.Server{
		Addr: flagOf("bind-address") + ":" + flagOf("secure-port"),
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/healthz" && len(r.TLS.PeerCertificates) == 0 {
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			proxy.ServeHTTP(w, r)
		}),
		TLSConfig: &tls.Config{ClientAuth: tls.VerifyClientCertIfGiven, ClientCAs: users, MinVersion: tls.VersionTLS12},
	}
	failed := make(chan error, 1)
	dir := flagOf("cert-dir")
	go func() {
		failed <- door.ListenAndServeTLS(filepath.Join(dir, "apiserver.crt"), filepath.Join(dir, "apiserver.key"))
	}()
	select {
	case err := <-failed:
		return err
	case <-stop:
	}
	return env.Stop()
}

// binaries makes a folder with what stands for etcd and kube-apiserver, or for
// those of them that are named, and has no embedded server asked for.
func binaries(t *testing.T, names ...string) (folder, notes string) {
	t.Helper()
	server, err := program.Find(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(serverEnv, server)
	t.Setenv(program.Env, "")
	t.Setenv(pretend, "binary")
	folder, notes = t.TempDir(), t.TempDir()
	t.Setenv(notesEnv, notes)
	for _, name := range names {
		if err := os.Symlink(self(t), filepath.Join(folder, name)); err != nil {
			t.Fatal(err)
		}
	}
	return folder, notes
}

// calledWith returns the arguments of one of them.
func calledWith(t *testing.T, notes, name string) []string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(notes, name))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(string(content), "\n")
}

// alivePID reports whether one of them runs. One that has ended and that nobody has waited for yet, as where the first
// process of a container does not, runs no more.
func alivePID(t *testing.T, notes, name string) bool {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(notes, name+".pid"))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(string(content))
	if err != nil {
		t.Fatal(err)
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if _, state, found := strings.Cut(string(stat), ") "); err == nil && found && state[0] == 'Z' {
		return false
	}
	return syscall.Kill(pid, 0) == nil
}

// TestBinaries runs etcd and kube-apiserver because they are there, and sees them
// have the flags they need and those that were set.
func TestBinaries(t *testing.T) {
	folder, notes := binaries(t, "etcd", "kube-apiserver")
	for name, set := range map[string]func(t *testing.T, env *envtest.Environment){
		"by the environment's folder": func(_ *testing.T, env *envtest.Environment) { env.BinaryAssetsDirectory = folder },
		"by KUBEBUILDER_ASSETS": func(t *testing.T, env *envtest.Environment) {
			t.Setenv("KUBEBUILDER_ASSETS", folder)
			env.BinaryAssetsDirectory = "/none"
		},
		"by TEST_ASSET": func(t *testing.T, _ *envtest.Environment) {
			t.Setenv("KUBEBUILDER_ASSETS", "/none")
			t.Setenv("TEST_ASSET_ETCD", filepath.Join(folder, "etcd"))
			t.Setenv("TEST_ASSET_KUBE_APISERVER", filepath.Join(folder, "kube-apiserver"))
		},
		"by field": func(t *testing.T, env *envtest.Environment) {
			t.Setenv("KUBEBUILDER_ASSETS", "/none")
			env.ControlPlane.Etcd = &envtest.Etcd{Path: filepath.Join(folder, "etcd")}
			env.ControlPlane.GetAPIServer().Path = filepath.Join(folder, "kube-apiserver")
		},
	} {
		t.Run(name, func(t *testing.T) {
			env := &envtest.Environment{CRDDirectoryPaths: []string{filepath.Join("testdata", "none")}}
			set(t, env)
			if env.ControlPlane.Etcd == nil {
				env.ControlPlane.Etcd = &envtest.Etcd{}
			}
			env.ControlPlane.Etcd.Configure().Set("quota-backend-bytes", "12345")
			env.ControlPlane.GetAPIServer().Configure().Append("disable-admission-plugins", "LimitRanger")
			cfg := start(t, env)
			nobody, err := env.AddUser(envtest.User{Name: "nobody"}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := clientset(t, nobody.Config()).CoreV1().Secrets("").List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "nobody") {
				t.Errorf("a user without rights lists: %v", err)
			}
			if _, err := clientset(t, cfg).CoreV1().Secrets("").List(t.Context(), metav1.ListOptions{}); err != nil {
				t.Error(err)
			}
			_, err = env.Snapshot(t.Context())
			says(t, err, "embedded")
			flagsAndEnd(t, env, notes)
		})
	}
}

// flagsAndEnd checks how etcd and kube-apiserver were called, and that Stop takes
// everything back.
func flagsAndEnd(t *testing.T, env *envtest.Environment, notes string) {
	t.Helper()
	plane := &env.ControlPlane
	data, certs := plane.Etcd.DataDir, plane.APIServer.CertDir
	etcd, server := calledWith(t, notes, "etcd"), calledWith(t, notes, "kube-apiserver")
	for _, want := range []string{"--quota-backend-bytes=12345", "--data-dir=" + data, "--listen-client-urls=" + plane.Etcd.URL.String(), "--unsafe-no-fsync=true"} {
		if !slices.Contains(etcd, want) {
			t.Errorf("etcd has not %s: %q", want, etcd)
		}
	}
	for _, want := range []string{
		"--disable-admission-plugins=ServiceAccount", "--disable-admission-plugins=LimitRanger", "--authorization-mode=RBAC",
		"--etcd-servers=" + plane.Etcd.URL.String(), "--secure-port=" + plane.APIServer.Port, "--cert-dir=" + certs,
	} {
		if !slices.Contains(server, want) {
			t.Errorf("kube-apiserver has not %s: %q", want, server)
		}
	}
	if err := env.Stop(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"etcd", "kube-apiserver"} {
		if alivePID(t, notes, name) {
			t.Errorf("%s runs after Stop", name)
		}
	}
	for _, dir := range []string{data, certs} {
		if _, err := os.Stat(dir); dir == "" || err == nil {
			t.Errorf("the folder %q is left", dir)
		}
	}
	if plane.APIServer.EtcdURL != nil || plane.Etcd.URL != nil {
		t.Errorf("after Stop: EtcdURL %v, URL %v", plane.APIServer.EtcdURL, plane.Etcd.URL)
	}
}

// TestBinariesThatFail stops whatever was started before.
func TestBinariesThatFail(t *testing.T) {
	for _, c := range []struct {
		name    string
		etcd    string // what it pretends to be
		names   []string
		set     func(*envtest.Environment)
		want    []string
		running string // what ran, and must not any more
	}{
		{"half of them", "binary", []string{"kube-apiserver"}, nil, []string{"kube-apiserver", "BinaryAssetsDirectory", "etcd", "neither"}, ""},
		{"the other half", "binary", []string{"etcd"}, nil, []string{"etcd", "BinaryAssetsDirectory", "kube-apiserver", "neither"}, ""},
		{"both dead", "dead", []string{"etcd", "kube-apiserver"}, nil, []string{"etcd ended before it was ready", "exit status 3", "no room on this disk"}, ""},
		{"both deaf", "deaf", []string{"etcd", "kube-apiserver"}, nil, []string{"etcd was not ready within LIMIT", "never mind"}, ""},
		{"a server that fails", "binary", []string{"etcd", "kube-apiserver"}, func(env *envtest.Environment) {
			env.ControlPlane.GetAPIServer().Configure().Set("bind-address", "no.such.host.invalid")
		}, []string{"kube-apiserver ended before it was ready", "no.such.host.invalid"}, "etcd"},
	} {
		t.Run(c.name, func(t *testing.T) {
			folder, notes := binaries(t, c.names...)
			t.Setenv(pretend, c.etcd)
			limit := patience
			if c.etcd == "deaf" { // the one that takes all the time it is given
				limit = 300 * time.Millisecond
			}
			saysWithin(t, limit, func(limit time.Duration) error {
				env := &envtest.Environment{BinaryAssetsDirectory: folder, ControlPlaneStartTimeout: limit}
				if c.set != nil {
					c.set(env)
				}
				_, err := env.Start()
				return err
			}, c.want...)
			if c.running != "" && alivePID(t, notes, c.running) {
				t.Errorf("%s was left running", c.running)
			}
		})
	}
}

// TestDeafServerTellsWhereItIs has a server that does not stop: the error holds
// what its goroutines did.
func TestDeafServerTellsWhereItIs(t *testing.T) {
	t.Setenv(program.Env, self(t))
	t.Setenv(pretend, "deaf")
	saysWithin(t, time.Second, func(limit time.Duration) error {
		_, err := (&envtest.Environment{ControlPlaneStartTimeout: limit, ControlPlaneStopTimeout: 100 * time.Millisecond}).Start()
		return err
	}, "not stop within 100ms", "killed", "select (no cases)", "envtest_test.TestMain")
}

// TestEmbeddedServerAskedFor has both there and the embedded server named: that
// is the clearer wish.
func TestEmbeddedServerAskedFor(t *testing.T) {
	folder, notes := binaries(t, "etcd", "kube-apiserver")
	t.Setenv(program.Env, os.Getenv(serverEnv))
	start(t, &envtest.Environment{BinaryAssetsDirectory: folder, DownloadBinaryAssets: true})
	if left, _ := os.ReadDir(notes); len(left) > 0 {
		t.Errorf("%v ran", left)
	}
}

// TestBinariesEndWithTheirTest kills a test process that has etcd and
// kube-apiserver running.
func TestBinariesEndWithTheirTest(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux ends a process with its parent; package envtest says so")
	}
	folder, notes := binaries(t, "etcd", "kube-apiserver")
	t.Setenv("KUBEBUILDER_ASSETS", folder)
	t.Setenv(pretend, "orphan")
	kill(t)
	for _, name := range []string{"etcd", "kube-apiserver"} {
		eventually(t, name+" ends", func() error {
			if alivePID(t, notes, name) {
				return errors.New("it outlived the test process")
			}
			return nil
		})
	}
}
