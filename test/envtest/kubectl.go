// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package envtest

import (
	"bytes"
	"fmt"
	"io"
	"net/url"
	"os/exec"
	"slices"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// KubeCtl runs kubectl.
type KubeCtl struct {
	// Path is the program; empty means the one TEST_ASSET_KUBECTL or
	// KUBEBUILDER_ASSETS names, or else the first in PATH. Run sets it.
	Path string
	// Opts go before the arguments of each Run.
	Opts []string

	assets string // folder to look for the program in
	err    error  // why there is none
}

// Run runs kubectl with these arguments, waits for its end, and returns what it
// printed. The error is an *exec.ExitError if kubectl itself failed, and then
// stderr says why.
func (k *KubeCtl) Run(args ...string) (stdout, stderr io.Reader, err error) {
	var out, complaint bytes.Buffer
	if k.err != nil {
		return &out, &complaint, k.err
	}
	if k.Path == "" {
		if k.Path, err = findKubectl("", k.assets); err != nil {
			return &out, &complaint, err
		}
	}
	cmd := exec.Command(k.Path, slices.Concat(k.Opts, args)...)
	cmd.Stdout, cmd.Stderr = &out, &complaint
	err = cmd.Run()
	return &out, &complaint, err
}

// kubeconfigName is what cluster, user and context of a kubeconfig are called.
const kubeconfigName = "envtest"

// kubeconfig writes a configuration as a kubeconfig. What only a program can
// hold, such as a transport of its own, is left out.
func kubeconfig(cfg *rest.Config) ([]byte, error) {
	host, _, err := rest.DefaultServerUrlFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("envtest: write a kubeconfig for %q: %w", cfg.Host, err)
	}
	server := url.URL{Scheme: host.Scheme, Host: host.Host, Path: host.Path}
	content, err := clientcmd.Write(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{kubeconfigName: {
			Server:                   server.String(),
			CertificateAuthority:     cfg.CAFile,
			CertificateAuthorityData: cfg.CAData,
			InsecureSkipTLSVerify:    cfg.Insecure,
			TLSServerName:            cfg.ServerName,
		}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{kubeconfigName: {
			ClientCertificate:     cfg.CertFile,
			ClientCertificateData: cfg.CertData,
			ClientKey:             cfg.KeyFile,
			ClientKeyData:         cfg.KeyData,
			Token:                 cfg.BearerToken,
			TokenFile:             cfg.BearerTokenFile,
			Username:              cfg.Username,
			Password:              cfg.Password,
			Impersonate:           cfg.Impersonate.UserName,
			ImpersonateUID:        cfg.Impersonate.UID,
			ImpersonateGroups:     cfg.Impersonate.Groups,
			ImpersonateUserExtra:  cfg.Impersonate.Extra,
			Exec:                  cfg.ExecProvider,
			AuthProvider:          cfg.AuthProvider,
		}},
		Contexts:       map[string]*clientcmdapi.Context{kubeconfigName: {Cluster: kubeconfigName, AuthInfo: kubeconfigName}},
		CurrentContext: kubeconfigName,
	})
	if err != nil {
		return nil, fmt.Errorf("envtest: write a kubeconfig for %q: %w", cfg.Host, err)
	}
	return content, nil
}
