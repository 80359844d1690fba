// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package program

// Version is the released version of the module with the program's source that
// goes with this package. No go.mod requires that module: its requirements on
// Kubernetes' unpublished modules would break every importer.
const Version = "v0.1.0"
