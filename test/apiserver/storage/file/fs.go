// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package file

import "io"

// FS is the little the store asks of a file system. Tests give one that fails or forgets; names are paths as the
// operating system spells them.
type FS interface {
	// MkdirAll makes the folder and its missing parents, for the owner only.
	MkdirAll(dir string) error
	// Create makes a file that must not exist, for the owner only, open for reading and writing.
	Create(name string) (File, error)
	// Open opens a file for reading and, if write is set, for writing. It does not follow a symbolic link.
	Open(name string, write bool) (File, error)
	// Names lists the folder's entries, sorted.
	Names(dir string) ([]string, error)
	// Rename puts a file in another's place, at once.
	Rename(from, to string) error
	// Remove deletes a file.
	Remove(name string) error
	// SyncDir makes creations, renames and removals in the folder durable.
	SyncDir(dir string) error
	// Lock takes the folder for this process and says who it is in the lock file. If somebody else has it, it
	// gives an *InUseError at once. Closing the result frees the folder, and so does the end of the process.
	Lock(dir string) (io.Closer, error)
}

// File is an open file.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	// Size gives the file's length in bytes.
	Size() (int64, error)
	// Sync makes what was written durable.
	Sync() error
	// Truncate sets the file's length.
	Truncate(size int64) error
	// Reserve takes disk space up to size, growing the file with zeroes, so that writes below size do not run out of
	// space. It may do nothing where the system cannot promise that.
	Reserve(size int64) error
}
