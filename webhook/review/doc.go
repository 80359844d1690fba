// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

// Package review has what the endpoints that an API server posts reviews to have in common: how a request is read within
// limits, how an answer is written, and how both are counted.
package review
