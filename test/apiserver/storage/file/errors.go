// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package file

import (
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var (
	// ErrClosed is what every call gets after Close.
	ErrClosed = errors.New("the store is closed")
	// ErrReadOnly is what every write gets from a store opened with ReadOnly.
	ErrReadOnly = errors.New("the store is open for reading only")
	// ErrCompacted is what a reader gets who asks for a revision the store has forgotten.
	ErrCompacted = errors.New("the revision has been compacted")
	// ErrFutureRevision is what a reader gets who asks for a revision the store has not reached.
	ErrFutureRevision = errors.New("the revision is in the future")
	// ErrFull is in the chain of a refused write when the disk is full. Deletes still work.
	ErrFull = errors.New("the disk is full")
	// ErrUnknownOutcome is in the chain when a write failed so late that it may or may not be there after a restart.
	ErrUnknownOutcome = errors.New("outcome unknown")

	// ErrFailed is in the chain of every write that is refused because an earlier one failed: after that nobody
	// knows what the disk holds until the store is opened again.
	ErrFailed = errors.New("the store takes no more writes until it is opened again")

	errTooLarge        = errors.New("too large")
	errForeignSnapshot = errors.New("restore: the snapshot was taken from another store")
)

// InUseError says that another process (or another store in this one) has the data folder.
type InUseError struct {
	Dir string
	PID int // 0 if the holder did not say
}

func (e *InUseError) Error() string {
	if e.PID == 0 {
		return fmt.Sprintf("data folder %s is in use by another process: stop it or choose another folder", e.Dir)
	}
	return fmt.Sprintf("data folder %s is in use by process %d: stop it or choose another folder", e.Dir, e.PID)
}

// CorruptError says that a file of the store holds something the store never wrote there.
type CorruptError struct {
	File   string
	Offset int64
	Reason string
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("%s is corrupt at byte %d: %s (nothing was changed; \"repair\" saves what can be saved to a copy)",
		e.File, e.Offset, e.Reason)
}

// FormatError says that a file is of a version this program does not know.
type FormatError struct {
	File    string
	Version uint32
}

func (e *FormatError) Error() string {
	return fmt.Sprintf("%s has format version %d and this program reads version %d: use the program that wrote it, or another folder",
		e.File, e.Version, formatVersion)
}

// refused turns the reason for a write that was not made, or perhaps not made, into what an API client sees: the
// reason, and a code that tells it whether to try again.
func refused(err error) error {
	code, reason := int32(http.StatusInternalServerError), metav1.StatusReasonInternalError
	switch {
	case errors.Is(err, ErrFull):
		code, reason = http.StatusInsufficientStorage, metav1.StatusReason("InsufficientStorage")
	case errors.Is(err, errTooLarge):
		code, reason = http.StatusRequestEntityTooLarge, metav1.StatusReasonRequestEntityTooLarge
	case errors.Is(err, ErrClosed):
		code, reason = http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable
	}
	return &statusError{cause: err, StatusError: apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: code, Reason: reason, Message: "storage: " + err.Error(),
	}}}
}

// statusError is an API status that keeps its cause.
type statusError struct {
	apierrors.StatusError
	cause error
}

func (e *statusError) Unwrap() error { return e.cause }
