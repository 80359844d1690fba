// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package program_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/wherry-dev/wherry/test/apiserver/program"
	"github.com/wherry-dev/wherry/test/apiserver/server"
)

// All tests that need a server are in this package: linking one takes gigabytes, so there is one test binary that
// does. It is the program too: with this variable set it runs program.Main.
const asProgram = "WHERRY_TEST_AS_PROGRAM"

const (
	// startLimit is how long a program may take until it is ready, on a machine that is busy with other things.
	startLimit = 2 * time.Minute
	// stopLimit is what is promised.
	stopLimit = 5 * time.Second
	// busy is what every limit is stretched by for the load that tests themselves make, and other tests beside them.
	busy = 5
)

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		os.Exit(program.Main(os.Args[1:]))
	}
	server.Quiet()
	os.Exit(m.Run())
}

// command returns the program with these arguments.
func command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, args...)
	cmd.Env = append(os.Environ(), asProgram+"=1")
	return cmd
}

// process is a program that serves.
type process struct {
	cmd    *exec.Cmd
	stdin  io.Closer
	stderr *bytes.Buffer
	ended  chan struct{}
	once   sync.Once

	URL            string
	Kubeconfig     string
	KubeconfigFile string
}

// start runs the program, waits until it is ready, and stops it when the test ends.
func start(t *testing.T, args ...string) *process {
	t.Helper()
	p := &process{cmd: command(t, append([]string{"--ready-json", "--exit-on-stdin-eof"}, args...)...),
		stderr: &bytes.Buffer{}, ended: make(chan struct{})}
	p.cmd.Stderr = p.stderr
	stdin, err := p.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.stdin = stdin
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line := make(chan error, 1)
	go func() {
		line <- json.NewDecoder(stdout).Decode(p)
		_, _ = io.Copy(io.Discard, stdout)
		_ = p.cmd.Wait()
		close(p.ended)
	}()
	t.Cleanup(func() { p.stop(t) })
	select {
	case err := <-line:
		if err != nil {
			t.Fatalf("no ready line: %v; standard error: %s", err, p.stderr)
		}
	case <-time.After(startLimit):
		_ = p.cmd.Process.Kill()
		t.Fatalf("not ready after %v; standard error: %s", startLimit, p.stderr)
	}
	return p
}

// stop closes the program's standard input and returns its exit status.
func (p *process) stop(t *testing.T) int {
	t.Helper()
	p.once.Do(func() { _ = p.stdin.Close() })
	return p.wait(t)
}

// wait returns the exit status once the program has ended, which it must in time.
func (p *process) wait(t *testing.T) int {
	t.Helper()
	begun := time.Now()
	select {
	case <-p.ended:
	case <-time.After(busy * stopLimit):
		_ = p.cmd.Process.Kill()
		t.Errorf("the program runs on %v after it was told to stop", busy*stopLimit)
		<-p.ended
	}
	t.Logf("stopped after %v", time.Since(begun).Round(time.Millisecond))
	return p.cmd.ProcessState.ExitCode()
}

func (p *process) config(t *testing.T) *rest.Config {
	t.Helper()
	config, err := clientcmd.RESTConfigFromKubeConfig([]byte(p.Kubeconfig))
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	return config
}

func (p *process) client(t *testing.T) *kubernetes.Clientset {
	t.Helper()
	return clientFor(t, p.config(t))
}

func clientFor(t *testing.T, config *rest.Config) *kubernetes.Clientset {
	t.Helper()
	c, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// refused runs the program, which must end by itself with this status and one line on standard error that has all of
// want in it.
func refused(t *testing.T, status int, args []string, want ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), startLimit)
	defer cancel()
	self := command(t, args...)
	cmd := exec.CommandContext(ctx, self.Path, args...)
	cmd.Env = self.Env
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	_ = cmd.Run()
	if got := cmd.ProcessState.ExitCode(); got != status {
		t.Errorf("exit status %d; want %d", got, status)
	}
	text := stderr.String()
	if strings.Count(text, "\n") != 1 || !strings.HasSuffix(text, "\n") {
		t.Errorf("standard error is not one line:\n%s", text)
	}
	for _, w := range want {
		if !strings.Contains(text, w) {
			t.Errorf("standard error does not say %q: %s", w, text)
		}
	}
	if stdout.Len() > 0 {
		t.Errorf("standard output: %s", &stdout)
	}
}

// eventually waits until check returns "" and fails with what it returned last if that takes busy times as long as limit,
// which is what it may take on a machine that does nothing else.
func eventually(t *testing.T, limit time.Duration, check func() string) time.Duration {
	t.Helper()
	limit *= busy
	begun := time.Now()
	for {
		why := check()
		if why == "" {
			return time.Since(begun)
		}
		if time.Since(begun) > limit {
			t.Fatalf("not within %v: %s", limit, why)
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-t.Context().Done():
			t.Fatal(why)
		}
	}
}
