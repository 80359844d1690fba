// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package program

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

const (
	// lockWait bounds the wait for another process's build.
	lockWait = 20 * time.Minute
	// lockTry is how often a waiting process asks again.
	lockTry = 200 * time.Millisecond
)

// lock takes the lock file at path, waiting for whoever holds it, and returns
// what gives it back. The system frees it when the holder ends, however it
// ends.
func lock(ctx context.Context, path string, progress io.Writer) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, unwritable(filepath.Dir(path), err)
	}
	defer func() {
		if err != nil {
			f.Close()
		}
	}()
	ctx, cancel := context.WithTimeoutCause(ctx, lockWait, fmt.Errorf("%s was held for %v; remove it if nobody is building", path, lockWait))
	defer cancel()
	for told := false; ; told = true {
		got, err := tryLock(f)
		if err != nil {
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		if got {
			return func() { f.Close() }, nil
		}
		if !told {
			fmt.Fprintln(progress, "waiting for another process that is building the API server program")
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(lockTry):
		}
	}
}
