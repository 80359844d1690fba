// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

// Package examples_test builds the example programs and drives them on a real API server, as a user would.
package examples_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/client/log"
	"github.com/wherry-dev/wherry/test/envtest"
)

const (
	// settle is how long a program or the cluster may take to reach a state.
	settle = time.Minute
	// look is how often a test asks whether it has.
	look = 50 * time.Millisecond
)

// startLimit is how long a server may take to be ready: it shares the machine with whatever else is being built.
const startLimit = 2 * time.Minute

var (
	config     *rest.Config // reaches the API server with every right
	live       client.Client
	heard      = &warnings{} // what the API server warned of
	kubeconfig string
	binaries   string // folder of the programs
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	os.Exit(run(m))
}

func run(m *testing.M) int {
	fail := func(err error) int {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	folder, err := os.MkdirTemp("", "wherry-examples-")
	if err != nil {
		return fail(err)
	}
	defer os.RemoveAll(folder)
	binaries, kubeconfig = folder, filepath.Join(folder, "kubeconfig")
	for _, p := range []string{"github.com/wherry-dev/wherry/examples/replicaset", "github.com/wherry-dev/wherry/examples/herald"} {
		build := exec.Command("go", "build", "-o", filepath.Join(folder, path.Base(p)), p)
		build.Stderr = os.Stderr
		if err := build.Run(); err != nil {
			return fail(fmt.Errorf("build %s: %w", p, err))
		}
	}
	env := &envtest.Environment{ControlPlaneStartTimeout: startLimit}
	if config, err = env.Start(); err != nil {
		return fail(err)
	}
	defer func() {
		if err := env.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}()
	if err := errors.Join(writeKubeconfig(), makeClient()); err != nil {
		return fail(err)
	}
	return m.Run()
}

func writeKubeconfig() error {
	k := clientcmdapi.NewConfig()
	k.Clusters["x"] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
	k.AuthInfos["x"] = &clientcmdapi.AuthInfo{Token: config.BearerToken, ClientCertificateData: config.CertData, ClientKeyData: config.KeyData}
	k.Contexts["x"] = &clientcmdapi.Context{Cluster: "x", AuthInfo: "x"}
	k.CurrentContext = "x"
	return clientcmd.WriteToFile(*k, kubeconfig)
}

func makeClient() (err error) {
	hears := rest.CopyConfig(config)
	hears.WarningHandler = heard
	live, err = client.New(hears, client.Options{})
	return err
}

// warnings collects what the API server warns of.
type warnings struct {
	mu  sync.Mutex
	all []string
}

func (w *warnings) HandleWarningHeader(_ int, _ string, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(w.all, text)
}

func (w *warnings) taken() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	defer func() { w.all = nil }()
	return w.all
}

// program is one of the examples under way.
type program struct {
	*testing.T
	cmd    *exec.Cmd
	said   *safeBuffer
	exited chan struct{} // closed when it has ended
}

// safeBuffer is written by a process and read by the test.
type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// start runs an example until it is stopped or killed, at the test's end at the latest.
func start(t *testing.T, name string, args ...string) *program {
	t.Helper()
	p := &program{T: t, cmd: exec.Command(filepath.Join(binaries, name), args...), said: &safeBuffer{}, exited: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	p.cmd.Stdout, p.cmd.Stderr = p.said, p.said
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { // ends with the process; kill waits for it
		_ = p.cmd.Wait()
		close(p.exited)
	}()
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("%s said:\n%s", name, p.said)
		}
	})
	return p
}

// interrupt asks the program to end, as Ctrl-C does, and waits: it must end well.
func (p *program) interrupt() {
	p.Helper()
	if err := p.cmd.Process.Signal(os.Interrupt); err != nil {
		p.Fatal(err)
	}
	select {
	case <-p.exited:
		if code := p.cmd.ProcessState.ExitCode(); code != 0 {
			p.Errorf("it ended with %d; it said:\n%s", code, p.said)
		}
	case <-time.After(settle):
		p.Fatalf("it did not end within %v; it said:\n%s", settle, p.said)
	}
}

// kill ends the program the hard way, if it has not ended.
func (p *program) kill() {
	_ = p.cmd.Process.Kill() // it may have ended
	<-p.exited
}

// eventually waits until check passes, which may not take longer than settle.
func (p *program) eventually(what string, check func() error) {
	p.Helper()
	tick := time.NewTicker(look)
	defer tick.Stop()
	for end := time.Now().Add(settle); ; <-tick.C {
		err := check()
		if err == nil {
			return
		}
		select {
		case <-p.exited:
			p.Fatalf("%s: the program ended; it said:\n%s", what, p.said)
		default:
		}
		if time.Now().After(end) {
			p.Fatalf("not within %v: %s: %v", settle, what, err)
		}
	}
}

// awaitReady waits until the readiness probe at address passes, and returns its page.
func (p *program) awaitReady(address string) (page string) {
	p.Helper()
	p.eventually("ready", func() error {
		code, body, err := get("http://"+address+"/readyz?verbose", "")
		if err == nil && code != http.StatusOK {
			err = fmt.Errorf("%d: %s", code, body)
		}
		page = body
		return err
	})
	return page
}

// get asks for a page with a bearer token, if it is not "". Whoever has the certificate is trusted.
func get(url, token string) (code int, body string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), settle)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, "", err
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}
	resp, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b), err
}

// freeAddress is a loopback address that is free, and stays so for a while: its port is none of those that systems hand out
// to connections and listeners by themselves.
func freeAddress(t *testing.T) string {
	t.Helper()
	var err error
	for range 20 {
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(20000+rand.IntN(10000)))
		var free net.Listener
		if free, err = net.Listen("tcp", address); err == nil {
			_ = free.Close()
			return address
		}
	}
	t.Fatal(err)
	return ""
}
