// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

// Package envtest gives a test a real Kubernetes API server of its own:
//
//	env := &envtest.Environment{}
//	cfg, err := env.Start()
//	…
//	defer env.Stop()
//
// The server is the embedded one of this project: one process, started in about
// a second, with nothing to download but Go modules. It keeps its data in
// memory unless ControlPlane.Etcd.DataDir names a folder, listens on loopback
// only, and ends with the test process, however that ends. Package program
// tells how the server's program is found or built.
package envtest
