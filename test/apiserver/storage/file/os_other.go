// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package file

import "os"

func localDisk(string) error { return nil }

func dataSync(f *os.File) error { return f.Sync() }

func reserve(*os.File, int64) error { return nil }
