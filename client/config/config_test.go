// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
)

const kubeconfig = `apiVersion: v1
kind: Config
current-context: one
clusters:
- {name: one, cluster: {server: "https://one:6443"}}
- {name: two, cluster: {server: "https://two:6443"}}
contexts:
- {name: one, context: {cluster: one, user: u}}
- {name: two, context: {cluster: two, user: u}}
users:
- {name: u, user: {token: t}}
`

func write(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func noPod() (*rest.Config, error) { return nil, rest.ErrNotInCluster }
func pod() (*rest.Config, error)   { return &rest.Config{Host: "https://pod"}, nil }
func limitedPod() (*rest.Config, error) {
	return &rest.Config{Host: "https://pod", QPS: 7, Burst: 9}, nil
}

func TestOrder(t *testing.T) {
	file := write(t, "a", kubeconfig)
	other := write(t, "b", strings.ReplaceAll(kubeconfig, "https://one", "https://other"))
	gone := filepath.Join(t.TempDir(), "gone")
	for name, c := range map[string]struct {
		place   place
		context string
		host    string
	}{
		"flag wins":                  {place{flag: file, env: other, home: other, inCluster: pod}, "", "https://one:6443"},
		"variable before pod":        {place{env: other, home: file, inCluster: pod}, "", "https://other:6443"},
		"variable lists several":     {place{env: gone + string(filepath.ListSeparator) + other, inCluster: pod}, "", "https://other:6443"},
		"pod before home":            {place{home: file, inCluster: pod}, "", "https://pod"},
		"home last":                  {place{home: file, inCluster: noPod}, "", "https://one:6443"},
		"context by name":            {place{flag: file, inCluster: noPod}, "two", "https://two:6443"},
		"context by name, variable":  {place{env: file, inCluster: noPod}, "two", "https://two:6443"},
		"context by name, home":      {place{home: file, inCluster: noPod}, "two", "https://two:6443"},
		"context means nothing here": {place{inCluster: pod}, "two", "https://pod"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg, err := c.place.config(c.context)
			if err != nil {
				t.Fatal(err)
			}
			if cfg.Host != c.host {
				t.Errorf("host %s, want %s", cfg.Host, c.host)
			}
			if cfg.QPS != noThrottling {
				t.Errorf("QPS %v, want %v", cfg.QPS, noThrottling)
			}
		})
	}
}

func TestLimitThatIsSetStays(t *testing.T) {
	cfg, err := place{inCluster: limitedPod}.config("")
	if err != nil {
		t.Fatal(err)
	}
	if cfg.QPS != 7 || cfg.Burst != 9 {
		t.Errorf("QPS %v burst %v, want 7 and 9", cfg.QPS, cfg.Burst)
	}
}

func TestErrorsAreOneClearLine(t *testing.T) {
	gone := filepath.Join(t.TempDir(), "gone")
	file := write(t, "a", kubeconfig)
	empty := write(t, "empty", "")
	garbage := write(t, "garbage", "a: [")
	for name, c := range map[string]struct {
		place    place
		context  string
		says     []string
		notExist bool
	}{
		"flag names no file":      {place{flag: gone, home: file, inCluster: pod}, "", []string{gone, "--kubeconfig", "no such file", "correct the path"}, true},
		"variable names no file":  {place{env: gone, home: file, inCluster: pod}, "", []string{gone, "KUBECONFIG", "no such file"}, true},
		"variable of separators":  {place{env: string(filepath.ListSeparator), home: file, inCluster: pod}, "", []string{"KUBECONFIG", "no such file"}, true},
		"empty file":              {place{flag: empty, inCluster: noPod}, "", []string{empty, "names no cluster"}, false},
		"no YAML":                 {place{flag: garbage, inCluster: noPod}, "", []string{garbage}, false},
		"context is not there":    {place{flag: file, inCluster: noPod}, "three", []string{file, "three"}, false},
		"nothing anywhere":        {place{home: gone, inCluster: noPod}, "", []string{gone, "--kubeconfig", "KUBECONFIG", "pod"}, false},
		"no home, nothing at all": {place{inCluster: noPod}, "", []string{"--kubeconfig"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := c.place.config(c.context)
			if err == nil {
				t.Fatal("no error")
			}
			for _, s := range c.says {
				if !strings.Contains(err.Error(), s) {
					t.Errorf("%q does not say %q", err, s)
				}
			}
			if strings.ContainsAny(err.Error(), "\n") {
				t.Errorf("more than one line: %q", err)
			}
			if got := errors.Is(err, fs.ErrNotExist); got != c.notExist {
				t.Errorf("errors.Is(fs.ErrNotExist) is %v", got)
			}
		})
	}
}

func TestFlagIsRegisteredOnImport(t *testing.T) {
	if flag.CommandLine.Lookup(KubeconfigFlagName) == nil {
		t.Error("programs written for controller-runtime are started with --kubeconfig and do not register it")
	}
}

// A flag that somebody else made counts with the value it has later, not with the one it had when it was found.
func TestRegisterFlags(t *testing.T) {
	t.Cleanup(func() { RegisterFlags(nil) })
	theirs := flag.NewFlagSet("", flag.ContinueOnError)
	path := theirs.String(KubeconfigFlagName, "", "theirs")
	RegisterFlags(theirs)
	ours := flag.NewFlagSet("", flag.ContinueOnError)
	for _, fs := range []*flag.FlagSet{theirs, ours} {
		RegisterFlags(fs)
		RegisterFlags(fs) // twice does no harm
		if err := fs.Parse([]string{"--kubeconfig", "/somewhere"}); err != nil {
			t.Fatal(err)
		}
		if flagPath() != "/somewhere" {
			t.Errorf("flag is %q", flagPath())
		}
	}
	if *path != "/somewhere" {
		t.Errorf("the other owner sees %q", *path)
	}
}
