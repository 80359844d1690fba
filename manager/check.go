// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/wherry-dev/wherry/cache"
	"github.com/wherry-dev/wherry/cache/cacheapi"
	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/client/apiutil"
	"github.com/wherry-dev/wherry/manager/healthz"
	"github.com/wherry-dev/wherry/webhook/conversion"
)

// CacheSyncedCheck returns a check that passes when m's cache is filled with the kind of object. Its error says why it is not, by
// the API server's own words: no permission, no such kind. Asking starts an informer for the kind if there is none.
//
// A kind that this process converts between its versions passes always: to list it, the API server may need our conversion
// webhook, which it reaches only once the process is ready. It is such a kind if a converter is registered with m, or if the Go
// types of its versions in m's scheme convert into each other.
func CacheSyncedCheck(m Manager, object client.Object) healthz.Checker {
	return func(req *http.Request) error {
		if converts(m, object) {
			return nil
		}
		informer, err := m.GetCache().GetInformer(req.Context(), object, cache.BlockUntilSynced(false))
		if err != nil {
			return fmt.Errorf("cache of %T: %w", object, err)
		}
		if informer.HasSynced() {
			return nil
		}
		if r, ok := informer.(cacheapi.ErrorReporter); ok {
			if err := r.LastError(); err != nil {
				return fmt.Errorf("cache of %T is not filled: %w", object, err)
			}
		}
		return fmt.Errorf("cache of %T is not filled yet", object)
	}
}

// converts tells whether this process converts between the versions of object's kind. Types that do only in part are no
// answer here: their webhook could not be built either.
func converts(m Manager, object runtime.Object) bool {
	kind, err := apiutil.GVKForObject(object, m.GetScheme())
	if err != nil {
		return false
	}
	if _, registered := m.GetConverterRegistry().GetConverter(kind.GroupKind()); registered {
		return true
	}
	byTypes, err := conversion.IsConvertible(m.GetScheme(), object)
	return err == nil && byTypes
}
