// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

// Package signals turns the signals that ask a process to end into a cancelled context.
package signals
