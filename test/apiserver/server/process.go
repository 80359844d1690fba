// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
)

// Kubernetes keeps some of its state per process, not per server. This file holds all we do to it: it is done once,
// before the first server starts, and never undone.

var process struct {
	once    sync.Once
	err     error
	mu      sync.Mutex // guards what follows
	servers []*Server
	last    string // the newest line logged, see sink
}

// prepareProcess sets the feature gates and takes over klog's exit.
func prepareProcess() error {
	process.once.Do(func() {
		set := map[string]bool{}
		for name, on := range gates {
			set[string(name)] = on
		}
		if err := feature.DefaultMutableFeatureGate.SetFromMap(set); err != nil {
			process.err = fmt.Errorf("set Kubernetes' feature gates: %w", err)
			return
		}
		rest.SetDefaultWarningHandler(rest.NoWarnings{})
		klog.OsExit = fatal
	})
	return process.err
}

// fatal stands in for os.Exit where Kubernetes' code gives up on the whole process: a library must not end the
// program it lives in. It fails the servers there are and ends the calling goroutine only.
func fatal(int) {
	process.mu.Lock()
	servers := slices.Clone(process.servers)
	process.mu.Unlock()
	err := gaveUp()
	for _, s := range servers {
		s.fail(err)
	}
	runtime.Goexit()
}

// gaveUp is the error of a server whose code gave up.
func gaveUp() error {
	process.mu.Lock()
	defer process.mu.Unlock()
	return fmt.Errorf("kube-apiserver gave up: %s", strings.TrimSpace(process.last))
}

// sheltered runs f and returns its error. Where Kubernetes' code gives up in f, the goroutine that ends is not the
// caller's, which would never hear of it: of a program it is the first one, and the process stays without it.
func sheltered(f func() error) (err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		returned := false
		defer func() {
			if !returned {
				err = gaveUp()
			}
		}()
		err = f()
		returned = true
	}()
	<-done
	return err
}

func (s *Server) enlist() {
	process.mu.Lock()
	defer process.mu.Unlock()
	process.servers = append(process.servers, s)
}

func (s *Server) leave() {
	process.mu.Lock()
	defer process.mu.Unlock()
	process.servers = slices.DeleteFunc(process.servers, func(o *Server) bool { return o == s })
}

// Quiet drops what Kubernetes' code logs in this process; programs call it once, first thing. It keeps the newest line
// only, which is the reason if Kubernetes' code gives up.
func Quiet() { klog.SetLogger(logr.New(sink{})) }

// sink is a logr.LogSink that remembers one line.
type sink struct{}

func (sink) Init(logr.RuntimeInfo) {}

// Enabled lets level 0 through: what ends a process is logged there, and nothing below it is even formatted.
func (sink) Enabled(level int) bool { return level == 0 }

func (sink) Info(_ int, msg string, _ ...any) { remember(msg) }

func (sink) Error(err error, msg string, _ ...any) {
	if err != nil {
		msg += ": " + err.Error()
	}
	remember(msg)
}

func (s sink) WithValues(...any) logr.LogSink { return s }
func (s sink) WithName(string) logr.LogSink   { return s }

func remember(line string) {
	process.mu.Lock()
	defer process.mu.Unlock()
	process.last = line
}
