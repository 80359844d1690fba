// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package file

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/value"
)

// maxCorruptObjects is how many unreadable objects one list names before it gives up.
const maxCorruptObjects = 100

var (
	errTransform = errors.New("data from the storage is not transformable")
	errDecode    = errors.New("object not decodable")
	errTooMany   = errors.New("too many errors, the list is truncated")
)

// unreadableError says that one object is there and cannot be read. It exists only while the feature gate
// AllowUnsafeMalformedObjectDeletion is on, which lets such objects be found and deleted.
type unreadableError struct {
	step  error
	rev   int64
	cause error
}

func (e *unreadableError) Error() string {
	return fmt.Sprintf("%v (revision %d): %v", e.step, e.rev, e.cause)
}
func (e *unreadableError) Unwrap() []error { return []error{e.step, e.cause} }

// tellingTransformer marks the errors of a transformer as those of an unreadable object.
type tellingTransformer struct{ value.Transformer }

func (t tellingTransformer) TransformFromStorage(ctx context.Context, data []byte, dataCtx value.Context) ([]byte, bool, error) {
	out, stale, err := t.Transformer.TransformFromStorage(ctx, data, dataCtx)
	if err != nil {
		err = &unreadableError{step: errTransform, cause: err}
	}
	return out, stale, err
}

func transformFailed(key string, err error) error {
	return storage.NewInternalError(fmt.Errorf("unable to transform key %q: %w", key, err))
}

func decodeFailed(rev int64, err error) error {
	if unsafeDeletionAllowed() {
		return &unreadableError{errDecode, rev, err}
	}
	return err
}

// readError is what a reader of one object gets to see.
func (st *Storage) readError(key string, err error) error {
	var u *unreadableError
	if errors.As(err, &u) {
		return storage.NewCorruptObjError(key, u)
	}
	return err
}

// listFailures collects what a list could not read.
type listFailures struct {
	errs  []error
	abort error
}

// add takes the failure to read one object and tells whether the list should stop.
func (l *listFailures) add(key string, err error) bool {
	var u *unreadableError
	if !unsafeDeletionAllowed() || !errors.As(err, &u) {
		l.abort = err
		return true
	}
	l.errs = append(l.errs, storage.NewCorruptObjError(key, u))
	if len(l.errs) >= maxCorruptObjects {
		l.abort = errTooMany
	}
	return l.abort != nil
}

// err gives the one error that stands for all, or nil.
func (l *listFailures) err(resource schema.GroupResource) error {
	if len(l.errs) == 0 {
		return l.abort
	}
	var causes []metav1.StatusCause
	for _, err := range l.errs {
		var s *storage.StorageError
		errors.As(err, &s)
		causes = append(causes, metav1.StatusCause{
			Type: metav1.CauseTypeUnexpectedServerResponse, Field: s.Key, Message: err.Error(),
		})
	}
	switch {
	case errors.Is(l.abort, errTooMany):
		causes = append(causes, metav1.StatusCause{Type: metav1.CauseTypeTooMany, Message: errTooMany.Error()})
	case l.abort != nil:
		causes = append(causes, metav1.StatusCause{Type: metav1.CauseTypeUnexpectedServerResponse, Message: l.abort.Error()})
	}
	message := fmt.Sprintf("failed to read one or more %s from the storage: %v", resource, l.errs[0])
	if more := len(l.errs) - 1; more > 0 {
		message = fmt.Sprintf("%s (and %d more)", message, more)
	}
	return &statusError{cause: utilerrors.NewAggregate(l.errs), StatusError: apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Reason: metav1.StatusReasonStoreReadError,
		Message: message,
		Details: &metav1.StatusDetails{Group: resource.Group, Kind: resource.Resource, Name: "list", Causes: causes},
	}}}
}

// openForDeletion reads an object that is to be deleted because it cannot be read: success is a failure.
func (st *Storage) openForDeletion(ctx context.Context, v *version) error {
	data, _, err := st.way.Load().open(ctx, v.key, v.value)
	if err != nil {
		return nil
	}
	if _, err := st.decode(data, v.mod); err != nil {
		return nil
	}
	return storage.NewInvalidObjError(v.key, "it can be read, so it must be deleted in the ordinary way")
}
