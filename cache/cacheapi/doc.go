// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

// Package cacheapi holds what others need to know of a cache: informers and how to ask for them. It makes no
// cache and links none, so that a package can take informers without depending on how they are filled.
package cacheapi
