// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package program

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"

	"github.com/wherry-dev/wherry/test/apiserver/private"
)

// mark is the first line of every kubeconfig of ours. A file without it is somebody else's and stays as it is.
const mark = "# Written by wherry's apiserver; it is removed when the server stops."

// kubeconfig returns the text of one that reaches the server as its administrator.
func kubeconfig(url string, ca []byte, token string) []byte {
	return fmt.Appendf(nil, `%s
apiVersion: v1
kind: Config
current-context: wherry
clusters:
- name: wherry
  cluster:
    server: %s
    certificate-authority-data: %s
contexts:
- name: wherry
  context:
    cluster: wherry
    user: wherry-admin
users:
- name: wherry-admin
  user:
    token: %s
`, mark, url, base64.StdEncoding.EncodeToString(ca), token)
}

// kubeconfigFile is a kubeconfig on disk that is taken away again.
type kubeconfigFile struct {
	path   string
	data   []byte
	folder string // to remove as well, or ""
}

// place finds out whether a kubeconfig may be written to path: a file that is not ours must not be there.
func place(path string) error {
	old, err := os.ReadFile(path)
	if err == nil && !bytes.HasPrefix(old, []byte(mark)) {
		return fmt.Errorf("the file %s was not written by this program and is left alone: name another with --kubeconfig, "+
			"or move it away", path)
	}
	// Whatever else is wrong with the path, writing will tell.
	return nil
}

// write puts the kubeconfig at path. An empty path means a folder of its own among the temporary files.
func write(path string, data []byte) (*kubeconfigFile, error) {
	k := &kubeconfigFile{path: path, data: data}
	if path == "" {
		dir, err := os.MkdirTemp("", "wherry-apiserver-")
		if err != nil {
			return nil, fmt.Errorf("cannot make a folder for the kubeconfig: %w", err)
		}
		k.folder, k.path = dir, filepath.Join(dir, "kubeconfig")
	}
	if err := private.WriteFile(k.path, data); err != nil {
		k.remove()
		return nil, err
	}
	return k, nil
}

// remove takes the kubeconfig away, unless somebody put another in its place.
func (k *kubeconfigFile) remove() {
	if k == nil {
		return
	}
	if now, err := os.ReadFile(k.path); err == nil && bytes.Equal(now, k.data) {
		_ = os.Remove(k.path)
	}
	if k.folder != "" {
		_ = os.Remove(k.folder)
	}
}
