// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

// Package local lets an API server call the webhooks of a process that runs outside its cluster, as it does while it is developed:
// no Service, no certificate set-up, and nothing left behind when the process ends.
package local
