// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

//go:build etcd

// Command storagebench measures the file store against etcd3 on an embedded etcd, in one process and one run, and
// prints a table of ratios:
//
//	go run -tags etcd ./storage/storagebench [-json FILE] [-quick] [-kubernetes=false]
//
// Ours runs with shared objects and without a watch cache, as the API server uses it; etcd3 without a watch cache. etcd
// runs without fsync except for the durable rows. CPU is that of the whole process, which for etcd includes its server,
// as both run where an embedded API server would run them.
package main
