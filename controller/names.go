// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"net/http"
	"runtime"
	"sync"
	"weak"

	"github.com/wherry-dev/wherry/manager"
)

// names are the names in use, by manager. A manager is known by its HTTP
// client, which no two managers share and which every wrapper around a manager
// hands through; it is held weakly, so that a manager that is gone leaves
// nothing behind.
var names = struct {
	sync.Mutex
	byManager map[weak.Pointer[http.Client]]map[string]bool
}{byManager: map[weak.Pointer[http.Client]]map[string]bool{}}

// claimName takes a name in a manager until release is called. A manager
// without a HTTP client of its own, as some test doubles are, has no names.
func claimName(mgr manager.Manager, name string) (release func(), err error) {
	client := mgr.GetHTTPClient()
	if client == nil || client == http.DefaultClient {
		return func() {}, nil
	}
	key := weak.Make(client)
	names.Lock()
	defer names.Unlock()
	taken := names.byManager[key]
	if taken == nil {
		taken = map[string]bool{}
		names.byManager[key] = taken
		runtime.AddCleanup(client, dropNames, key)
	}
	if taken[name] {
		return nil, fmt.Errorf("controller %q: the manager has a controller of that name already, and the two would share their metrics; give it another name, or set SkipNameValidation", name)
	}
	taken[name] = true
	return sync.OnceFunc(func() {
		names.Lock()
		defer names.Unlock()
		delete(taken, name)
	}), nil
}

func dropNames(key weak.Pointer[http.Client]) {
	names.Lock()
	defer names.Unlock()
	delete(names.byManager, key)
}
