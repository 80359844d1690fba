// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

// Package server runs the real kube-apiserver in this process, over the storage of package storage/file. There is no
// etcd, no second process and no port but its own, on loopback.
//
//	s, err := server.Start(ctx, server.Options{Storage: file.Memory})
//	if err != nil { ... }
//	defer s.Stop()
//	client, err := kubernetes.NewForConfig(s.Config())
//
// Everything Kubernetes' own server does is there: admission, RBAC, custom resources, server-side apply, aggregation.
// Anonymous access is off. Three of Kubernetes' controllers run beside it unless switched off: the deleter of
// terminating namespaces, the garbage collector and the maker of default service accounts.
//
// # Version
//
// The version the server reports is stamped when a program is linked; the flags are in the file LDFLAGS of this
// module's folder, one line, and `make apiserver` and test/envtest both read it from there:
//
//	go build -ldflags "$(cat LDFLAGS)" -o apiserver .
//
// Without them the server works, but `kubectl version` cannot read what it reports.
package server
