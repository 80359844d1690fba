// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package envtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"time"
)

// Etcd holds the settings of the storage. The embedded server has storage of its
// own and needs of these fields only DataDir; the others are for a real etcd,
// which runs if its program was named and is there.
type Etcd struct {
	// URL is where a real etcd listens for clients; Start sets it if it is nil.
	// The embedded server leaves it nil.
	URL *url.URL

	// Path is the program of a real etcd; empty means that the environment
	// variables TEST_ASSET_ETCD and KUBEBUILDER_ASSETS may name it.
	Path string

	// Args are arguments for a real etcd, each a template over this struct, such
	// as --data-dir={{ .DataDir }}. With any of them no flag has a default.
	//
	// Deprecated: use Configure.
	Args []string

	// DataDir is the folder that keeps the server's data over a Stop and the
	// next Start. Empty means that the data is lost at Stop: the embedded server
	// keeps it in memory, a real etcd in a temporary folder.
	DataDir string

	// StartTimeout bounds the time until a real etcd is ready, StopTimeout a
	// graceful stop, after which it is killed; zero means 20 s.
	StartTimeout, StopTimeout time.Duration

	// Out and Err get what a real etcd prints; nil drops it.
	Out, Err io.Writer

	args   *Arguments
	assets string // folder to look for the program in
	made   string // data folder to remove again, or empty
	own    bool   // URL was made here
	run    *process
}

// Configure returns the flags of a real etcd, to be changed before Start. With
// the embedded server they say nothing, and Start writes a line to the log.
func (e *Etcd) Configure() *Arguments {
	if e.args == nil {
		e.args = EmptyArguments()
	}
	return e.args
}

// Start starts a real etcd, if there is one, and waits until it is ready.
// Without one it does nothing, because the embedded server keeps the data.
func (e *Etcd) Start() error {
	if e.run != nil {
		return errors.New("envtest: this etcd runs already; call Stop before Start")
	}
	path, err := findBinary(etcdName, e.Path, e.assets)
	if err != nil {
		return err
	}
	if path == "" {
		if e.Path != "" || len(e.Args) > 0 || len(e.Configure().values(nil)) > 0 {
			logger.Info("settings of etcd say nothing to the embedded API server, which keeps its data itself")
		}
		return nil
	}
	if err := e.start(path); err != nil {
		stopped := e.Stop() // only then it has said all it has to say
		return errors.Join(fmt.Errorf("envtest: %w", err), stopped)
	}
	return nil
}

func (e *Etcd) start(path string) error {
	if e.DataDir == "" {
		dir, err := os.MkdirTemp("", "envtest-etcd-")
		if err != nil {
			return fmt.Errorf("make a folder for etcd's data: %w", err)
		}
		e.DataDir, e.made = dir, dir
	}
	if e.URL == nil {
		port, err := freePort(loopback)
		if err != nil {
			return err
		}
		e.URL, e.own = &url.URL{Scheme: "http", Host: net.JoinHostPort(loopback, strconv.Itoa(port))}, true
	}
	peer, err := freePort(loopback)
	if err != nil {
		return err
	}
	args, err := e.line("http://" + net.JoinHostPort(loopback, strconv.Itoa(peer)))
	if err != nil {
		return err
	}
	if e.run, err = startBinary(path, args, e.Out, e.Err); err != nil {
		return err
	}
	healthy := func(ctx context.Context) error { return probe(ctx, http.DefaultClient, e.URL.JoinPath("health")) }
	return e.run.await(healthy, orDefault(e.StartTimeout, defaultTimeout))
}

// line is etcd's command line.
func (e *Etcd) line(peer string) ([]string, error) {
	if len(e.Args) > 0 {
		words, err := render(e.Args, e)
		if err != nil {
			return nil, err
		}
		flags, rest := e.Configure().take(words)
		return append(flags.AsStrings(nil), rest...), nil
	}
	return e.Configure().AsStrings(map[string][]string{
		"advertise-client-urls": {e.URL.String()},
		"data-dir":              {e.DataDir},
		"listen-client-urls":    {e.URL.String()},
		"listen-peer-urls":      {peer},
		"unsafe-no-fsync":       {"true"},
	}), nil
}

// Stop ends a real etcd, waits for its end, and removes its data if Start had to
// make a folder for it. It does nothing if none runs.
func (e *Etcd) Stop() error {
	var errs []error
	if e.run != nil {
		errs = append(errs, e.run.stop(orDefault(e.StopTimeout, defaultTimeout)))
		e.run = nil
	}
	if e.made != "" {
		errs = append(errs, os.RemoveAll(e.made))
		e.DataDir, e.made = "", ""
	}
	if e.own {
		e.URL, e.own = nil, false
	}
	return errors.Join(errs...)
}
