// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package file

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

const noFollow = 0

// NB: on Windows a folder cannot be synced: the store survives the end of its process there, and a power cut as well
// as the system lets it.
func syncDir(string) error { return nil }

// The lock covers a byte far behind the process id, as a locked byte cannot be read by others.
var lockPlace = windows.Overlapped{OffsetHigh: 1}

func lockFile(f *os.File) error {
	place := lockPlace
	err := windows.LockFileEx(windows.Handle(f.Fd()),
		windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, &place)
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return errLocked
	}
	return err
}

func noSpace(err error) bool {
	return errors.Is(err, windows.ERROR_DISK_FULL) || errors.Is(err, windows.ERROR_HANDLE_DISK_FULL)
}
