// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

// Package conversion names the two roles that the versions of one API kind play when they are converted into each
// other.
//
// One version is the hub: the version all others can be turned into and made from. With n versions that takes n-1
// pairs of functions instead of n(n-1)/2. Which version is the hub is free to choose; it is a good thing to take the
// stored one. The webhook floor calls the functions that these interfaces ask for.
package conversion
