// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

// Package certwatcher serves a TLS certificate from files, and its renewal without a restart.
//
// The files are read again every few seconds: nothing of the operating system is asked to tell of changes, because what
// mounts, editors and certificate managers do to files (rename, delete and create, swap a symbolic link) tells differently
// everywhere, and reading two small files does not.
package certwatcher
