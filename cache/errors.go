// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ErrCacheNotStarted is returned by reads of a cache that was not started.
type ErrCacheNotStarted struct{}

// Error says what is wrong.
func (*ErrCacheNotStarted) Error() string {
	return "the cache is not started, can not read objects"
}

// ErrResourceNotCached is returned by reads of a kind that has no informer, where reads do not make one.
type ErrResourceNotCached struct {
	// GVK is the kind that was read.
	GVK schema.GroupVersionKind
}

// Error names the kind and tells how to have it cached.
func (e ErrResourceNotCached) Error() string {
	return fmt.Sprintf("%s is not cached: get its informer or watch it first, or unset ReaderFailOnMissingInformer", e.GVK)
}

// errStopped is returned to those who wait on an informer that ends.
var errStopped = errors.New("the informer was stopped")

// errUnused tells readers that an entry was stopped because nobody used it; they make another.
var errUnused = errors.New("the informer was not used and is stopped")

// unknownNamespace says that a read asks for a namespace which the cache does not hold. It is no NotFound: whoever
// takes it for one would create what is there.
func unknownNamespace(gvk schema.GroupVersionKind, ns string, known []string) error {
	slices.Sort(known)
	if ns == "" {
		return fmt.Errorf("%s is cached in namespaces %s only", gvk, strings.Join(known, ", "))
	}
	return fmt.Errorf("unknown namespace %q for the cache: %s is cached in %s only; add the namespace to DefaultNamespaces or ByObject, or read with the API reader",
		ns, gvk, strings.Join(known, ", "))
}

// refusal reports whether err is the server's own word that it will not serve the kind as asked: forbidden, not
// installed, a selector it does not take. A later attempt may go better, yet whoever waits now should hear it.
func refusal(err error) bool {
	if meta.IsNoMatchError(err) {
		return true
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	switch code := status.Status().Code; {
	case code == 408, code == 409, code == 410, code == 429:
		return false
	default:
		return code >= 400 && code < 500
	}
}

// syncTimeoutError tells a waiting reader that the cache of a kind did not fill in time, and why as far as known.
func syncTimeoutError(gvk schema.GroupVersionKind, waited time.Duration, why, last error) error {
	if last != nil {
		return fmt.Errorf("the cache of %s was not filled within %s: %w; the last attempt failed: %w", gvk, waited.Round(time.Millisecond), why, last)
	}
	return fmt.Errorf("the cache of %s was not filled within %s: %w", gvk, waited.Round(time.Millisecond), why)
}
