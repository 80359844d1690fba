// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package envtest

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/wherry-dev/wherry/test/envtest/program"
)

// The programs of a real control plane, by the names they have in a folder.
const (
	apiServerName = "kube-apiserver"
	etcdName      = "etcd"
	kubectlName   = "kubectl"
)

const (
	// envAssets names the folder with the programs of a real control plane.
	envAssets = "KUBEBUILDER_ASSETS"
	// envAsset begins the name of the variable that names one of them, such as
	// TEST_ASSET_KUBE_APISERVER.
	envAsset = "TEST_ASSET_"
	// systemAssets is where such programs are by tradition. Only kubectl is looked
	// for there: being installed is not being asked for.
	systemAssets = "/usr/local/kubebuilder/bin"
)

// DefaultBinaryAssetsIndexURL is the default of
// Environment.DownloadBinaryAssetsIndexURL. Nothing here downloads from it.
var DefaultBinaryAssetsIndexURL = "https://raw.githubusercontent.com/kubernetes-sigs/controller-tools/HEAD/envtest-releases.yaml"

// place is where a program is looked for, and who named it.
type place struct{ path, by string }

// named returns where the first of those who may name a program says that it is;
// the path is empty if nobody does.
func named(name, path, folder string) place {
	single := envAsset + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
	switch {
	case path != "":
		return place{path, "the field for its path"}
	case os.Getenv(single) != "":
		return place{os.Getenv(single), single}
	case os.Getenv(envAssets) != "":
		return place{filepath.Join(os.Getenv(envAssets), name), envAssets}
	case folder != "":
		return place{filepath.Join(folder, name), "BinaryAssetsDirectory"}
	}
	return place{}
}

// exists reports whether a file is there.
func (p place) exists() (bool, error) {
	if p.path == "" {
		return false, nil
	}
	info, err := os.Stat(p.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("envtest: %s, named by %s: %w", filepath.Base(p.path), p.by, err)
	case info.IsDir():
		return false, fmt.Errorf("envtest: %s, named by %s, is a folder; name the program itself", p.path, p.by)
	}
	return true, nil
}

// findBinary returns the path of a program of a real control plane that was
// named and is there, or else nothing: the embedded server then takes its part.
// That is also asked for by naming its own program.
func findBinary(name, path, folder string) (string, error) {
	if os.Getenv(program.Env) != "" {
		return "", nil
	}
	p := named(name, path, folder)
	there, err := p.exists()
	if err != nil || !there {
		return "", err
	}
	return p.path, nil
}

// checkBinaries fails if only one of etcd and kube-apiserver is there, and says
// so in the log if they were named and neither is.
func (p *ControlPlane) checkBinaries() error {
	if os.Getenv(program.Env) != "" {
		return nil
	}
	server, etcd := named(apiServerName, p.APIServer.Path, p.assets), named(etcdName, p.Etcd.Path, p.assets)
	haveServer, err := server.exists()
	if err != nil {
		return err
	}
	haveEtcd, err := etcd.exists()
	switch {
	case err != nil:
		return err
	case haveServer && haveEtcd:
		return nil
	case haveServer || haveEtcd:
		have, lack := server, etcd
		name := etcdName
		if haveEtcd {
			have, lack, name = etcd, server, apiServerName
		}
		where := "nobody says where that is"
		if lack.path != "" {
			where = fmt.Sprintf("there is no %s, which %s names", lack.path, lack.by)
		}
		return fmt.Errorf("envtest: %s, named by %s, runs with %s only, and %s: add it, or name neither and have the embedded API server", have.path, have.by, name, where)
	case server.path != "" || etcd.path != "":
		logger.Info("no kube-apiserver and etcd where they were said to be: the embedded API server runs", "namedBy", cmp.Or(server.by, etcd.by), "path", cmp.Or(server.path, etcd.path))
	}
	return nil
}

// findKubectl finds a kubectl: the one that was named, or any there is.
func findKubectl(path, folder string) (string, error) {
	p := named(kubectlName, path, folder)
	tried := []string{systemAssets, "PATH"}
	if p.path != "" {
		there, err := p.exists()
		if err != nil || there {
			return p.path, err
		}
		tried = append([]string{p.path}, tried...)
	}
	system := place{filepath.Join(systemAssets, kubectlName), systemAssets}
	if there, err := system.exists(); err == nil && there {
		return system.path, nil
	}
	if found, err := exec.LookPath(kubectlName); err == nil {
		return found, nil
	}
	return "", fmt.Errorf("envtest: there is no kubectl (tried %s): install one, or name it with ControlPlane.KubectlPath or %sKUBECTL", strings.Join(tried, ", "), envAsset)
}

// SetupEnvtestDefaultBinaryAssetsDirectory returns the folder in which the
// command setup-envtest keeps what it downloaded, by default:
//
//   - on Windows: %LocalAppData%\kubebuilder-envtest
//   - on macOS: ~/Library/Application Support/io.kubebuilder.envtest
//   - elsewhere: $XDG_DATA_HOME/kubebuilder-envtest, or ~/.local/share/kubebuilder-envtest
//
// It is an error if the variable or the home folder it starts from is not set.
func SetupEnvtestDefaultBinaryAssetsDirectory() (string, error) {
	variable, below := "HOME", filepath.Join(".local", "share", "kubebuilder-envtest")
	switch {
	case runtime.GOOS == "windows":
		variable, below = "LocalAppData", "kubebuilder-envtest"
	case runtime.GOOS == "darwin":
		below = filepath.Join("Library", "Application Support", "io.kubebuilder.envtest")
	case os.Getenv("XDG_DATA_HOME") != "":
		variable, below = "XDG_DATA_HOME", "kubebuilder-envtest"
	}
	base := os.Getenv(variable)
	if base == "" {
		return "", fmt.Errorf("envtest: no folder for programs to test with: the environment variable %s is not set", variable)
	}
	return filepath.Join(base, below), nil
}
