// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

// Package private keeps files and folders that only their owner may read: mode 0600 in folders of mode 0700.
// No function follows a symbolic link in the last element of a path, and a file appears whole or not at all.
package private
