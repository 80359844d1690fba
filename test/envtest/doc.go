// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

// Package envtest gives a test a real Kubernetes API server of its own:
//
//	env := &envtest.Environment{CRDDirectoryPaths: []string{"config/crd"}}
//	cfg, err := env.Start()
//	…
//	defer env.Stop()
//
// # The server
//
// It is the embedded one of this project: a kube-apiserver in one process, started
// in about a second, with nothing to download but Go modules. It keeps its data in
// memory unless ControlPlane.Etcd.DataDir names a folder, listens on loopback
// only, deletes namespaces, collects garbage, and ends with the test process,
// however that ends. Package program tells how the server's program is found or
// built; the first build takes minutes, and `go run …/test/envtest/build` does it
// ahead.
//
// ControlPlane.GetAPIServer().Configure() changes the flags of kube-apiserver,
// whose defaults are those of controller-runtime's envtest: RBAC decides, pods
// need no service account.
//
// # Real programs
//
// A real etcd and kube-apiserver run instead if they are named and are there: by
// the fields Path, the variables TEST_ASSET_ETCD and TEST_ASSET_KUBE_APISERVER, a
// folder in KUBEBUILDER_ASSETS or in BinaryAssetsDirectory, in this order. If they
// are named and not there, the embedded server runs and the log says so. Nothing is
// downloaded. The variable WHERRY_APISERVER, which names the embedded server's
// program, settles it the other way. etcd must be 3.5 or later. On systems other
// than Linux real programs outlive a test process that is killed.
//
// # Between tests
//
// One environment serves a whole suite: Environment.Snapshot after Start and
// Environment.Restore after each test bring back what was there, which takes
// milliseconds, where a new server takes a second.
//
// # Variables
//
//   - USE_EXISTING_CLUSTER=true: start nothing, use the cluster of the kubeconfig
//   - KUBEBUILDER_CONTROLPLANE_START_TIMEOUT, KUBEBUILDER_CONTROLPLANE_STOP_TIMEOUT:
//     20 s each by default
//   - KUBEBUILDER_ATTACH_CONTROL_PLANE_OUTPUT=true: show what the server logs
//   - KUBEBUILDER_ASSETS, TEST_ASSET_…, WHERRY_APISERVER: see above
package envtest
