// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

// Package program finds the API server program that tests run against, and
// builds it where there is none yet. It needs Go and a module proxy, nothing else:
// no download of binaries, no etcd.
//
// The program is the one that the environment variable WHERRY_APISERVER names, or
// one in the user's cache folder, under wherry/VERSION for a released version and
// under a folder of its own for each working tree: several versions lie side by
// side. Whatever is missing, half built or out of date is built under a lock, while
// other processes wait. A module of a released version is downloaded as the user's
// environment says (GOPROXY, GOPRIVATE, GONOSUMDB, GOFLAGS and so on); the build
// itself has no flags of the user's.
package program
