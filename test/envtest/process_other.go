// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package envtest

import "os/exec"

// endWithParent does nothing here: a real etcd or kube-apiserver outlives a test
// process that is killed. The embedded server does not.
func endWithParent(*exec.Cmd) {}
