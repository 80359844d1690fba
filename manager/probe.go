// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/pprof"
	"sync"

	"github.com/wherry-dev/wherry/manager/healthz"
)

// probe is one probe's checks. They are settled when the manager starts.
type probe struct {
	name string

	mu     sync.Mutex
	checks map[string]healthz.Checker
	closed bool // guarded by mu
}

func (p *probe) add(name string, check healthz.Checker) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.closed:
		return fmt.Errorf("%s check %q comes after the start of the manager", p.name, name)
	case check == nil:
		return errors.New(p.name + " check " + name + " is nil")
	}
	if p.checks == nil {
		p.checks = map[string]healthz.Checker{}
	}
	p.checks[name] = check
	return nil
}

// close lets no more checks in, and returns them.
func (p *probe) close() map[string]healthz.Checker {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	return p.checks
}

// probeHandler serves each probe at its path and below.
func probeHandler(probes map[string]*probe) http.Handler {
	mux := http.NewServeMux()
	for path, p := range probes {
		var once sync.Once
		var checks http.Handler
		h := http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			once.Do(func() { checks = http.StripPrefix(path, &healthz.Handler{Checks: p.close()}) })
			checks.ServeHTTP(w, req)
		})
		mux.Handle(path, h)
		mux.Handle(path+"/", h)
	}
	return mux
}

// profileHandler serves Go's profiles. Answers take as long as the caller wants, so their server has no write timeout.
func profileHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	return mux
}
