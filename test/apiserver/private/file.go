// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package private

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

const (
	fileMode = 0o600
	dirMode  = 0o700
	// maxFile bounds what ReadFile reads: no file of ours comes near it.
	maxFile = 1 << 20
)

// Dir makes a folder of mode 0700 and its missing parents. An existing folder is accepted unless others may write to
// it: whoever can write there could put their own files in place of ours.
func Dir(path string) error {
	if err := os.MkdirAll(path, dirMode); err != nil {
		return fmt.Errorf("cannot make the folder %s (%w): name one you can write to", path, bare(err))
	}
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("cannot look at the folder %s: %w", path, bare(err))
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is not a folder: name another", path)
	}
	if unixModes() && info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("others may write to the folder %s (mode %04o): chmod 700 it, or name another", path,
			info.Mode().Perm())
	}
	probe, err := create(filepath.Join(path, ".probe"))
	if err != nil {
		return fmt.Errorf("cannot write to the folder %s (%w): make it writable for this user, or name another", path,
			bare(err))
	}
	_ = probe.Close()
	if err := os.Remove(probe.Name()); err != nil {
		return fmt.Errorf("cannot remove files from the folder %s: %w", path, bare(err))
	}
	return nil
}

// ReadFile returns the content of a file that only its owner may read. It refuses a symbolic link, anything that is
// no plain file, and a file that others may read. The error is fs.ErrNotExist if there is none.
func ReadFile(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|noFollow, 0)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		return nil, fmt.Errorf("cannot open %s (symbolic links are not followed): %w", path, bare(err))
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, fmt.Errorf("cannot look at %s: %w", path, bare(err))
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a plain file: move it away", path)
	case unixModes() && info.Mode().Perm()&0o077 != 0:
		return nil, fmt.Errorf("%s may be read by others (mode %04o): chmod 600 it if you trust it, or move it away", path,
			info.Mode().Perm())
	case info.Size() > maxFile:
		return nil, fmt.Errorf("%s is too large (%d bytes): move it away", path, info.Size())
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFile))
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", path, bare(err))
	}
	return data, nil
}

// WriteFile puts a file of mode 0600 in place, whole: it writes a new file beside it and renames. A symbolic link at
// path is replaced, not followed. The data is on disk when it returns.
func WriteFile(path string, data []byte) error {
	f, err := create(path)
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", path, bare(err))
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return fmt.Errorf("cannot write %s: %w", path, bare(err))
	}
	return nil
}

// create makes a new file whose name begins with path and ends in something nobody can guess.
func create(path string) (*os.File, error) {
	var suffix [8]byte
	if _, err := rand.Read(suffix[:]); err != nil {
		return nil, err
	}
	return os.OpenFile(path+"."+hex.EncodeToString(suffix[:]), os.O_WRONLY|os.O_CREATE|os.O_EXCL|noFollow, fileMode)
}

// bare takes the operation and the path off an error of os: the message around it names them already.
func bare(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	if l, ok := errors.AsType[*os.LinkError](err); ok {
		return l.Err
	}
	return err
}

// unixModes reports whether permission bits mean anything here.
func unixModes() bool { return runtime.GOOS != "windows" }
