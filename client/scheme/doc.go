// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

// Package scheme registers the Go types of one API group version with a runtime.Scheme.
//
// A package that defines API types keeps one [Builder] in a variable, lets each file register its types with it, and
// exports the builder's AddToScheme.
package scheme
