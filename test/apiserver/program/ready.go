// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package program

import (
	"encoding/json"
	"fmt"
	"os"
)

// ready is the line a program reads.
type ready struct {
	URL            string `json:"url"`
	Kubeconfig     string `json:"kubeconfig"`
	KubeconfigFile string `json:"kubeconfigFile"`
}

// announce prints the one line that says the server is there.
func announce(asJSON bool, url string, kubeconfig []byte, written *kubeconfigFile) error {
	line := ready{URL: url, Kubeconfig: string(kubeconfig)}
	if written != nil {
		line.KubeconfigFile = written.path
	}
	var err error
	if asJSON {
		err = json.NewEncoder(os.Stdout).Encode(line)
	} else {
		_, err = fmt.Printf("ready %s kubeconfig %s\n", line.URL, line.KubeconfigFile)
	}
	if err != nil {
		return fmt.Errorf("cannot tell on standard output that the server is ready: %w", err)
	}
	return nil
}
