// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package private

import "syscall"

const noFollow = syscall.O_NOFOLLOW | syscall.O_CLOEXEC
