// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/wherry-dev/wherry/client/log"
)

// noThrottling as a QPS value switches the client's own rate limit off: the server's priority and fairness does better,
// because it knows what the server can bear.
const noThrottling = -1

// exitFailed is GetConfigOrDie's exit status.
const exitFailed = 1

// source is one place a configuration can come from.
type source struct {
	// applies tells whether this source is to be used; the first that applies decides.
	applies func() bool
	load    func(context string) (*rest.Config, error)
}

// place is the outside world as far as the search looks at it; tests put another one in its place.
type place struct {
	flag      string
	env       string
	home      string
	inCluster func() (*rest.Config, error)
}

func here() place {
	return place{
		flag:      flagPath(),
		env:       os.Getenv(clientcmd.RecommendedConfigPathEnvVar),
		home:      homeFile(),
		inCluster: rest.InClusterConfig,
	}
}

// GetConfig finds the configuration as the package comment tells and returns it. If it sets no limit on queries per
// second, the limit is switched off (QPS is set to -1).
func GetConfig() (*rest.Config, error) {
	return GetConfigWithContext("")
}

// GetConfigWithContext is GetConfig with the named context of the kubeconfig instead of its current one. In a pod, the
// name is not looked at.
func GetConfigWithContext(context string) (*rest.Config, error) {
	return here().config(context)
}

// GetConfigOrDie is GetConfig for main functions: it logs the error and ends the process with status 1.
func GetConfigOrDie() *rest.Config {
	cfg, err := GetConfig()
	if err != nil {
		log.Log.WithName("config").Error(err, "no configuration for the API server")
		// The logger may not be set yet, and a program must not end without a word.
		fmt.Fprintln(os.Stderr, err)
		os.Exit(exitFailed)
	}
	return cfg
}

func (p place) config(context string) (*rest.Config, error) {
	var inCluster *rest.Config
	inClusterErr := errors.New("not looked at")
	sources := []source{
		{func() bool { return p.flag != "" }, p.fromFlag},
		{func() bool { return p.env != "" }, p.fromEnv},
		{func() bool { inCluster, inClusterErr = p.inCluster(); return inClusterErr == nil },
			func(string) (*rest.Config, error) { return inCluster, nil }},
		{func() bool { return exists(p.home) }, p.fromHome},
	}
	for _, s := range sources {
		if !s.applies() {
			continue
		}
		cfg, err := s.load(context)
		if err != nil {
			return nil, err
		}
		if cfg.QPS == 0 {
			cfg.QPS = noThrottling
		}
		return cfg, nil
	}
	return nil, fmt.Errorf("no configuration for the API server: --%s is not given, %s is not set, this is no pod (%w) and "+
		"there is no %s; name a kubeconfig file with the flag or the variable",
		KubeconfigFlagName, clientcmd.RecommendedConfigPathEnvVar, inClusterErr, p.home)
}

func (p place) fromFlag(context string) (*rest.Config, error) {
	named := "--" + KubeconfigFlagName
	if !exists(p.flag) {
		return nil, missing(p.flag, named)
	}
	return load(&clientcmd.ClientConfigLoadingRules{ExplicitPath: p.flag}, context, p.flag, named)
}

func (p place) fromEnv(context string) (*rest.Config, error) {
	rules := &clientcmd.ClientConfigLoadingRules{}
	for _, f := range filepath.SplitList(p.env) {
		if f != "" {
			rules.Precedence = append(rules.Precedence, f)
		}
	}
	found := false
	for _, f := range rules.Precedence {
		found = found || exists(f)
	}
	if !found {
		return nil, missing(p.env, clientcmd.RecommendedConfigPathEnvVar)
	}
	return load(rules, context, p.env, clientcmd.RecommendedConfigPathEnvVar)
}

func (p place) fromHome(context string) (*rest.Config, error) {
	return load(&clientcmd.ClientConfigLoadingRules{ExplicitPath: p.home}, context, p.home, "the home folder")
}

// load reads what rules point at. The error says what the user called it.
func load(rules *clientcmd.ClientConfigLoadingRules, context, path, named string) (*rest.Config, error) {
	overrides := &clientcmd.ConfigOverrides{CurrentContext: context}
	cfg, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides).ClientConfig()
	if err == nil {
		return cfg, nil
	}
	text := strings.Join(strings.Fields(err.Error()), " ") // clientcmd's own texts can have several lines
	if clientcmd.IsEmptyConfig(err) {
		text = "it names no cluster; is it empty, or does its current-context point nowhere?"
	}
	return nil, &loadError{path: path, named: named, text: text, cause: err}
}

func missing(path, named string) error {
	return &loadError{path: path, named: named, cause: fs.ErrNotExist,
		text: "no such file; correct the path, or leave it out to use the next of --kubeconfig, KUBECONFIG, the pod's service account, ~/.kube/config"}
}

// loadError is a kubeconfig that cannot be used, in one line.
type loadError struct {
	path, named, text string
	cause             error
}

func (e *loadError) Error() string {
	return fmt.Sprintf("kubeconfig %q (from %s): %s", e.path, e.named, e.text)
}

func (e *loadError) Unwrap() error { return e.cause }

func exists(path string) bool {
	if path == "" {
		return false
	}
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist) // one that may not be read exists, and the loader says why it fails
}

// homeFile gives the path of the kubeconfig in the home folder, whether or not there is one.
func homeFile() string {
	home, err := os.UserHomeDir()
	if err != nil {
		u, err := user.Current() // the variable is not set in some containers
		if err != nil {
			return ""
		}
		home = u.HomeDir
	}
	return filepath.Join(home, clientcmd.RecommendedHomeDir, clientcmd.RecommendedFileName)
}
