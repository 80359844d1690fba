// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

// Package authentication answers the API server's questions whose token it was shown.
package authentication
