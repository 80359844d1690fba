// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package envtest_test

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/wherry-dev/wherry/client/log"
	"github.com/wherry-dev/wherry/test/envtest"
)

// pretend makes this test binary act as a broken API server, as kubectl, as etcd
// or kube-apiserver, or as a test that dies with a server running.
const pretend = "WHERRY_TEST_PRETEND"

// asBinary is what this binary does as etcd or kube-apiserver, where a test can
// send signals.
var asBinary func()

func TestMain(m *testing.M) {
	log.SetLogger(funcr.New(logged.add, funcr.Options{}))
	switch os.Getenv(pretend) {
	case "":
		// A machine that does other things takes longer to start a server.
		_ = os.Setenv("KUBEBUILDER_CONTROLPLANE_START_TIMEOUT", "2m")
		os.Exit(m.Run())
	case "garbage":
		fmt.Println("hello")
		_, _ = io.Copy(io.Discard, os.Stdin)
	case "mute":
		_, _ = io.Copy(io.Discard, os.Stdin)
	case "godot":
		_, _ = io.Copy(io.Discard, os.Stdin)
		fmt.Fprintln(os.Stderr, "waited for Godot")
	case "deaf":
		fmt.Fprintln(os.Stderr, "never mind")
		select {}
	case "dead":
		fmt.Fprintln(os.Stderr, "no room on this disk")
		os.Exit(3)
	case "orphan":
		_ = os.Unsetenv(pretend)
		if os.Getenv("KUBEBUILDER_ASSETS") != "" {
			_ = os.Setenv(pretend, "binary")
		}
		env := &envtest.Environment{}
		cfg, err := env.Start()
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Println(cfg.Host)
		select {} // until killed
	case "binary":
		asBinary()
	case "kubectl":
		fmt.Print(strings.Join(os.Args[1:], " "))
		if len(os.Args) > 2 && os.Args[2] == "fail" {
			fmt.Fprint(os.Stderr, "as told")
			os.Exit(7)
		}
	}
}

// self is the path of this test binary.
func self(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// lines collects what is logged.
type lines struct {
	mu  sync.Mutex
	all []string
}

var logged lines

func (l *lines) add(prefix, args string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, prefix+" "+args)
}

// since returns the lines with a text that were logged after the first n.
func (l *lines) since(n int, text string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []string
	for _, line := range l.all[n:] {
		if strings.Contains(line, text) {
			out = append(out, line)
		}
	}
	return out
}

func (l *lines) len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.all)
}

// start starts an environment that stops with the test.
func start(t *testing.T, env *envtest.Environment) *rest.Config {
	t.Helper()
	cfg, err := env.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := env.Stop(); err != nil {
			t.Error(err)
		}
	})
	return cfg
}

func clientset(t *testing.T, cfg *rest.Config) *kubernetes.Clientset {
	t.Helper()
	c, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// patience is how long anything may take that must happen, on a machine that does other things.
const patience = time.Minute

// eventually waits until check passes.
func eventually(t *testing.T, what string, check func() error) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(patience); ; <-tick.C {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("not after %s: %s: %v", patience, what, err)
		}
	}
}

// says fails the test unless an error says all of want.
func says(t *testing.T, err error, want ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error; want one with %q", want)
	}
	for _, w := range want {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("error %q does not say %q", err, w)
		}
	}
}

// saysWithin fails the test unless fail gives an error that says all of want, in which LIMIT stands for the time that fail
// was given. It begins with limit and goes on with more: a machine that does other things takes long to start a process,
// and one that has not come to say anything yet is not what is tested.
func saysWithin(t *testing.T, limit time.Duration, fail func(limit time.Duration) error, want ...string) {
	t.Helper()
	for ; ; limit *= 4 {
		err := fail(limit)
		told := make([]string, len(want))
		for i, w := range want {
			told[i] = strings.ReplaceAll(w, "LIMIT", limit.String())
		}
		silent := func(w string) bool { return err == nil || !strings.Contains(err.Error(), w) }
		if limit > patience/4 || !slices.ContainsFunc(told, silent) {
			says(t, err, told...)
			return
		}
		t.Logf("within %s it says %v", limit, err)
	}
}
