// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package program

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"

	"k8s.io/component-base/version"
	"k8s.io/klog/v2"

	"github.com/wherry-dev/wherry/test/apiserver/server"
)

const (
	exitError = 1
	exitUsage = 2
)

// Main runs the program with these arguments and returns its exit status.
func Main(args []string) int {
	c, err := parse(args)
	switch {
	case errors.Is(err, errHelp):
		c.help(os.Stdout)
		return 0
	case err != nil:
		return complain(exitUsage, fmt.Errorf("%w (apiserver --help tells what it takes)", err))
	}
	logging(c.verbosity)
	switch c.command {
	case "version":
		fmt.Println(version.Get().GitVersion)
		return 0
	case "check":
		return check(c)
	case "repair":
		return repair(c)
	case "controllers":
		return runControllers(c)
	}
	return serve(c)
}

// complain prints an error as one line and returns the status.
func complain(status int, err error) int {
	line := strings.Join(strings.Fields(err.Error()), " ")
	fmt.Fprintln(os.Stderr, "apiserver: "+line)
	return status
}

// logging lets through what Kubernetes' code logs, or nothing.
func logging(level int) {
	if level < 0 {
		server.Quiet()
		return
	}
	set := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(set)
	_ = set.Set("v", strconv.Itoa(level)) // a number always is one
}

// serve runs the server, and COMMAND if there is one, until either ends or this program is told to stop.
func serve(c *commandLine) int {
	o, err := c.options()
	if err != nil {
		return complain(exitUsage, err)
	}
	ctx, stop := newStopper(c)
	defer stop.release()

	path := c.kubeconfigPath(o)
	if path != "" {
		if err := place(path); err != nil {
			return complain(exitError, err)
		}
	}
	s, err := server.Start(ctx, o)
	if err != nil {
		if ctx.Err() != nil {
			return complain(0, err) // it was told to stop before it was ready, and says what it waited for
		}
		return complain(exitError, err)
	}
	for _, note := range s.Notes() {
		fmt.Fprintln(os.Stderr, "apiserver: note:", note)
	}
	status := attend(ctx, stop, c, s, path)
	if err := s.Stop(); err != nil {
		return complain(exitError, err)
	}
	return status
}

// kubeconfigPath returns where the kubeconfig goes; "" means a temporary file or, for a program, none.
func (c *commandLine) kubeconfigPath(o server.Options) string {
	switch {
	case c.kubeconfig != "":
		return c.kubeconfig
	case o.DataDir != "":
		return o.DataDir + string(os.PathSeparator) + "kubeconfig"
	}
	return ""
}

// attend does what is to be done while the server runs, and returns the exit status.
func attend(ctx context.Context, stop *stopper, c *commandLine, s *server.Server, path string) int {
	config := s.Config()
	data := kubeconfig(s.URL(), config.CAData, config.BearerToken)
	var written *kubeconfigFile
	if path != "" || !c.readyJSON {
		var err error
		if written, err = write(path, data); err != nil {
			return complain(exitError, err)
		}
		defer written.remove()
	}
	if c.command == "exec" {
		return execute(ctx, stop, c.args, written.path)
	}
	if err := announce(c.readyJSON, s.URL(), data, written); err != nil {
		return complain(exitError, err)
	}
	select {
	case <-ctx.Done():
		return 0
	case <-s.Done():
		return exitError // Stop tells why
	}
}
