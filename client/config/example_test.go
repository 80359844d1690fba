// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"flag"
	"fmt"

	"github.com/wherry-dev/wherry/client/config"
)

// A program with a flag set of its own says so; GetConfig then looks there.
func ExampleRegisterFlags() {
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
