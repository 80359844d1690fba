// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package envtest

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/wherry-dev/wherry/test/envtest/program"
)

// process is a running API server. It holds the write end of the server's
// standard input, so that the server ends when this process does.
type process struct {
	cmd   *exec.Cmd
	stdin io.Closer
	ready ready
	said  *tail
	// exited is closed once the process has ended; err is set before.
	exited chan struct{}
	err    error
}

// ready is what the program prints when it serves.
type ready struct {
	URL        string `json:"url"`
	Kubeconfig string `json:"kubeconfig"`
}

// startProcess starts the program and waits for its ready line.
func startProcess(e *Environment) (*process, error) {
	path, err := program.Find(context.Background(), os.Stderr)
	if err != nil {
		return nil, fmt.Errorf("envtest: %w", err)
	}
	p := &process{said: &tail{}, exited: make(chan struct{})}
	p.cmd = exec.Command(path, arguments(e)...)
	p.cmd.Stderr = p.said
	if e.AttachControlPlaneOutput {
		p.cmd.Stderr = io.MultiWriter(p.said, os.Stderr)
	}
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	// A pipe of our own: the one of StdoutPipe must not be waited on while it is
	// still read from.
	stdout, printed, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer stdout.Close()
	p.cmd.Stdout = printed
	err = p.cmd.Start()
	printed.Close()
	if err != nil {
		return nil, fmt.Errorf("envtest: start the API server: %w", err)
	}
	go func() { // ends with the process; stop waits for exited
		p.err = p.cmd.Wait()
		close(p.exited)
	}()
	if err := p.awaitReady(stdout, e.startTimeout()); err != nil {
		return nil, errors.Join(err, p.stop(e.stopTimeout()))
	}
	return p, nil
}

// arguments are the program's flags as the environment's settings ask.
func arguments(e *Environment) []string {
	args := []string{"--exit-on-stdin-eof", "--ready-json"}
	if etcd := e.ControlPlane.Etcd; etcd != nil && etcd.DataDir != "" {
		args = append(args, "--storage", "relaxed", "--data-dir", etcd.DataDir)
	} else {
		args = append(args, "--storage", "memory")
	}
	if s := e.ControlPlane.APIServer; s != nil && s.SecurePort != 0 {
		args = append(args, "--port", strconv.Itoa(s.SecurePort))
	}
	return args
}

// awaitReady reads the ready line from stdout.
func (p *process) awaitReady(stdout *os.File, limit time.Duration) error {
	if err := stdout.SetReadDeadline(time.Now().Add(limit)); err != nil {
		return err
	}
	line, err := bufio.NewReader(stdout).ReadBytes('\n')
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("envtest: the API server was not ready within %v; it said:\n%s", limit, p.said)
	case err != nil:
		<-p.exited // it closed its output: it is ending
		return fmt.Errorf("envtest: the API server ended before it was ready (%w); it said:\n%s", p.err, p.said)
	}
	if err := json.Unmarshal(line, &p.ready); err != nil || p.ready.Kubeconfig == "" {
		return fmt.Errorf("envtest: the API server's ready line is not understood, is %s of another version? It printed: %s", p.cmd.Path, strings.TrimSpace(string(line)))
	}
	return nil
}

func (p *process) config() (*rest.Config, error) {
	cfg, err := clientcmd.RESTConfigFromKubeConfig([]byte(p.ready.Kubeconfig))
	if err != nil {
		return nil, fmt.Errorf("envtest: the API server's kubeconfig: %w", err)
	}
	return cfg, nil
}

// stop asks the server to end by closing its standard input, waits for it, and
// kills it when limit has passed.
func (p *process) stop(limit time.Duration) error {
	p.stdin.Close()
	select {
	case <-p.exited:
	case <-time.After(limit):
		_ = p.cmd.Process.Kill() // it may have ended meanwhile
		<-p.exited
		return fmt.Errorf("envtest: the API server did not stop within %v and was killed; it said:\n%s", limit, p.said)
	}
	if p.err != nil {
		return fmt.Errorf("envtest: the API server stopped with %w; it said:\n%s", p.err, p.said)
	}
	return nil
}

// tailBytes is how much of the server's log an error repeats.
const tailBytes = 16 << 10

// tail keeps the last bytes written to it.
type tail struct {
	mu   sync.Mutex
	last []byte
}

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.last = append(t.last, b...); len(t.last) > tailBytes {
		t.last = t.last[len(t.last)-tailBytes:]
	}
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.last)
}
