// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"flag"
	"sync"
)

// KubeconfigFlagName is the name of the flag that takes the path of a kubeconfig file.
const KubeconfigFlagName = "kubeconfig"

// given is the flag that was registered, or found registered, last.
var given struct {
	sync.Mutex
	flag *flag.Flag
}

// init is what drop-in use demands: see the package comment.
func init() {
	RegisterFlags(flag.CommandLine)
}

// RegisterFlags registers the flag --kubeconfig with fs, which from then on is the flag set that counts. If fs has a flag
// of that name already, that one is used, whoever made it, with the value it has when the configuration is loaded. A nil
// fs is flag.CommandLine.
func RegisterFlags(fs *flag.FlagSet) {
	if fs == nil {
		fs = flag.CommandLine
	}
	if fs.Lookup(KubeconfigFlagName) == nil {
		fs.String(KubeconfigFlagName, "", "Path of a kubeconfig file. Only needed outside of a cluster.")
	}
	given.Lock()
	defer given.Unlock()
	given.flag = fs.Lookup(KubeconfigFlagName)
}

// flagPath gives the flag's present value.
func flagPath() string {
	given.Lock()
	defer given.Unlock()
	return given.flag.Value.String()
}
