// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

// Package config finds out how to reach the API server.
//
// The first of these that applies is used, in this order:
//
//  1. the file named by the flag --kubeconfig,
//  2. the files listed in the environment variable KUBECONFIG, merged,
//  3. the service account of the pod the program runs in,
//  4. the file .kube/config in the user's home folder.
//
// A file that was asked for (1, 2) and does not exist is an error; the search does not go on past it, because a program
// that quietly talks to another cluster than the one it was told to is worse than one that stops.
//
// Importing the package registers the flag --kubeconfig with flag.CommandLine. That is an effect no import should have,
// and it stays: programs written for controller-runtime never register the flag themselves and are started with it all
// the same, so without it they would end with "flag provided but not defined". A program with a flag set of its own
// calls [RegisterFlags].
package config
