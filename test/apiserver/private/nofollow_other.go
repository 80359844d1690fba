// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package private

// NB: there is no such flag here; making a file with O_EXCL does not follow a link either way.
const noFollow = 0
