// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/wherry-dev/wherry/client/config"
)

// twoClusters is a kubeconfig with two contexts.
const twoClusters = `apiVersion: v1
kind: Config
current-context: staging
clusters:
- {name: staging, cluster: {server: "https://staging.example.com:6443"}}
- {name: production, cluster: {server: "https://production.example.com:6443"}}
contexts:
- {name: staging, context: {cluster: staging, user: me}}
- {name: production, context: {cluster: production, user: me}}
users:
- {name: me, user: {token: secret}}
`

// kubeconfig lets KUBECONFIG name a file with twoClusters until restore is called.
func kubeconfig() (restore func()) {
	folder, err := os.MkdirTemp("", "kubeconfig")
	if err != nil {
		panic(err)
	}
	path := filepath.Join(folder, "config")
	if err := os.WriteFile(path, []byte(twoClusters), 0o600); err != nil {
		panic(err)
	}
	before, wasSet := os.LookupEnv("KUBECONFIG")
	if err := os.Setenv("KUBECONFIG", path); err != nil {
		panic(err)
	}
	return func() {
		err := os.Unsetenv("KUBECONFIG")
		if wasSet {
			err = os.Setenv("KUBECONFIG", before)
		}
		if err := errors.Join(err, os.RemoveAll(folder)); err != nil {
			panic(err)
		}
	}
}

// A program finds its API server as kubectl does.
func ExampleGetConfig() {
	defer kubeconfig()()
	cfg, err := config.GetConfig()
	if err != nil {
		fmt.Println(err)
		return
	}
	// No limit in the file means none: the server's priority and fairness knows better.
	fmt.Println(cfg.Host, cfg.QPS)
	// Output: https://staging.example.com:6443 -1
}

func ExampleGetConfigWithContext() {
	defer kubeconfig()()
	cfg, err := config.GetConfigWithContext("production")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(cfg.Host)
	_, err = config.GetConfigWithContext("nowhere")
	fmt.Println(err != nil)
	// Output:
	// https://production.example.com:6443
	// true
}

// For main functions, which have nobody to hand an error to.
func ExampleGetConfigOrDie() {
	defer kubeconfig()()
	cfg := config.GetConfigOrDie()
	fmt.Println(cfg.Host)
	// Output: https://staging.example.com:6443
}

// A program with a flag set of its own says so; GetConfig then looks there.
func ExampleRegisterFlags() {
	defer config.RegisterFlags(nil) // the other examples ask flag.CommandLine again
	fs := flag.NewFlagSet("operator", flag.ContinueOnError)
	config.RegisterFlags(fs)
	if err := fs.Parse([]string{"--kubeconfig", "no/such/file"}); err != nil {
		fmt.Println(err)
		return
	}
	_, err := config.GetConfig()
	fmt.Println(err)
	// Output: kubeconfig "no/such/file" (from --kubeconfig): no such file; correct the path, or leave it out to use the next of --kubeconfig, KUBECONFIG, the pod's service account, ~/.kube/config
}
