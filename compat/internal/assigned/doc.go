// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

// Package assigned hands on what a program assigns to a variable of this
// module. A type can be an alias and a function can forward, but a variable is
// a copy: the package behind would never hear of the assignment.
package assigned
