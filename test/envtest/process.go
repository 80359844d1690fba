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
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	// defaultTimeout bounds the time from the start of a process to its being
	// ready, and a graceful stop, after which it is killed.
	defaultTimeout = 20 * time.Second
	// probeEvery is how often a real etcd or kube-apiserver is asked whether it is
	// ready, probeLimit how long it may take to answer.
	probeEvery, probeLimit = 50 * time.Millisecond, 5 * time.Second
	// explainLimit is how long a process that does not stop may take to tell where
	// it is.
	explainLimit = 10 * time.Second
)

// process is a program that runs: the embedded API server, a real etcd or a real
// kube-apiserver.
type process struct {
	cmd  *exec.Cmd
	name string
	said *tail
	// end asks it to stop.
	end func() error
	// exited is closed once it has ended; err is set before.
	exited chan struct{}
	err    error
	// killed says that stop had to kill it.
	killed bool
}

// startEmbedded starts the embedded server's program and waits for its ready
// line. It holds the write end of the program's standard input, so that the
// server ends when this process does.
func startEmbedded(path string, args []string, stderr io.Writer, limit time.Duration) (*process, *rest.Config, error) {
	p := newProcess("the API server", path, args)
	p.cmd.Stderr = tee(p.said, stderr)
	stdin, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, nil, err
	}
	p.end = stdin.Close
	// A pipe of our own: the one of StdoutPipe must not be waited on while it is
	// still read from.
	stdout, printed, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	defer stdout.Close()
	p.cmd.Stdout = printed
	err = p.start()
	printed.Close()
	if err != nil {
		return nil, nil, err
	}
	admin, err := p.awaitReadyLine(stdout, limit)
	return p, admin, err // with an error too it is the caller's to stop
}

// startBinary starts a real etcd or kube-apiserver.
func startBinary(path string, args []string, stdout, stderr io.Writer) (*process, error) {
	p := newProcess(filepath.Base(path), path, args)
	p.cmd.Stdout, p.cmd.Stderr = tee(p.said, stdout), tee(p.said, stderr)
	p.end = p.interrupt
	endWithParent(p.cmd)
	if err := p.start(); err != nil {
		return nil, err
	}
	return p, nil
}

func newProcess(name, path string, args []string) *process {
	return &process{cmd: exec.Command(path, args...), name: name, said: &tail{}, exited: make(chan struct{})}
}

// tee writes to the tail and, if there is one, to w.
func tee(t *tail, w io.Writer) io.Writer {
	if w == nil {
		return t
	}
	return io.MultiWriter(t, w)
}

// start starts the process and a goroutine that ends with it; stop waits for it.
func (p *process) start() error {
	started := make(chan error)
	go func() {
		// The system ends a process with the thread that started it, where it was
		// asked to end it with this one (endWithParent).
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			p.err = p.cmd.Wait()
			close(p.exited)
		}
	}()
	if err := <-started; err != nil {
		return fmt.Errorf("start %s: %w", p.name, err)
	}
	return nil
}

// awaitReadyLine reads the line by which the embedded server says that it
// serves, and how it is reached by its administrator.
func (p *process) awaitReadyLine(stdout *os.File, limit time.Duration) (*rest.Config, error) {
	if err := stdout.SetReadDeadline(time.Now().Add(limit)); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(stdout).ReadBytes('\n')
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, p.late(limit)
	case err != nil:
		<-p.exited // it closed its output: it is ending
		return nil, p.early()
	}
	var ready struct {
		Kubeconfig string `json:"kubeconfig"`
	}
	if err := json.Unmarshal(line, &ready); err != nil || ready.Kubeconfig == "" {
		return nil, fmt.Errorf("the API server's ready line is not understood, is %s of another version? It printed: %s", p.cmd.Path, strings.TrimSpace(string(line)))
	}
	cfg, err := clientcmd.RESTConfigFromKubeConfig([]byte(ready.Kubeconfig))
	if err != nil {
		return nil, fmt.Errorf("the API server's kubeconfig: %w", err)
	}
	return cfg, nil
}

// await asks healthy until it has no complaint.
func (p *process) await(healthy func(context.Context) error, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	go func() {
		select {
		case <-p.exited:
			cancel()
		case <-ctx.Done():
		}
	}()
	err := poll(ctx, probeEvery, func() error { return healthy(ctx) })
	select {
	case <-p.exited:
		return p.early()
	default:
	}
	if err != nil {
		return errors.Join(p.late(limit), err)
	}
	return nil
}

func (p *process) late(limit time.Duration) error { return &lateError{p, limit} }

// lateError says that a process was not ready in time. It is read once the
// process was stopped: by then that has said what it waited for.
type lateError struct {
	process *process
	limit   time.Duration
}

func (e *lateError) Error() string {
	text := fmt.Sprintf("%s was not ready within %v%s", e.process.name, e.limit, e.process.used())
	if e.process.killed {
		return text // what it said is in the error of stop, goroutines and all
	}
	return fmt.Sprintf("%s; it said:\n%s", text, e.process.said)
}

// used tells, of a process that has ended, for how long it was on a processor:
// one that had a second of a minute did not stall, it had to wait for others.
func (p *process) used() string {
	select {
	case <-p.exited:
		state := p.cmd.ProcessState
		return fmt.Sprintf(" and had a processor for %v", (state.UserTime() + state.SystemTime()).Round(time.Millisecond))
	default:
		return ""
	}
}

func (p *process) early() error {
	return fmt.Errorf("%s ended before it was ready (%w); it said:\n%s", p.name, p.err, p.said)
}

// probe asks a health endpoint once.
func probe(ctx context.Context, c *http.Client, u *url.URL) error {
	ctx, cancel := context.WithTimeout(ctx, probeLimit)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return err
	}
	answer, err := c.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(io.LimitReader(answer.Body, tailBytes)) // it only adds to the error
		return fmt.Errorf("%s answers %s: %s", u, answer.Status, body)
	}
	return nil
}

// stop asks the process to end, waits for it, and when limit has passed asks it
// where it is and kills it.
func (p *process) stop(limit time.Duration) error {
	_ = p.end() // it may have ended meanwhile
	select {
	case <-p.exited:
	case <-time.After(limit):
		p.killed = true
		p.explain()
		_ = p.cmd.Process.Kill() // it may have ended meanwhile
		<-p.exited
		return fmt.Errorf("%s did not stop within %v, was killed%s; it said:\n%s", p.name, limit, p.used(), p.said)
	}
	if p.err != nil && !stoppedBySignal(p.err) {
		return fmt.Errorf("%s stopped with %w; it said:\n%s", p.name, p.err, p.said)
	}
	return nil
}

// tailBytes is how much of a process's output an error repeats.
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
