// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

// Package healthz answers probes: one page that sums all checks up, and one page for each check.
package healthz
