// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package komega

import (
	"context"
	"sync"

	"github.com/wherry-dev/wherry/client"
)

// process is the Komega of the package's functions.
var process = struct {
	sync.Mutex
	komega
}{komega: komega{ctx: context.Background()}}

// SetClient names the client of the package's functions. Functions they made
// before keep theirs.
func SetClient(c client.Client) {
	process.Lock()
	defer process.Unlock()
	process.client = c
}

// SetContext names the context of the package's functions; before, it is the
// background context. Functions they made before keep theirs.
func SetContext(c context.Context) {
	process.Lock()
	defer process.Unlock()
	process.ctx = c
}

// current is the Komega of the package's functions as it is now. A test that
// names no client could only fail later and say less.
func current() Komega {
	process.Lock()
	defer process.Unlock()
	if process.client == nil {
		panic("komega: no client was named: call komega.SetClient before the package's functions")
	}
	return &komega{process.ctx, process.client}
}

// Get is Komega.Get with the client of SetClient. Like all of the package's
// functions it panics if none was named.
func Get(obj client.Object) func() error { return current().Get(obj) }

// List is Komega.List with the client of SetClient.
func List(list client.ObjectList, opts ...client.ListOption) func() error {
	return current().List(list, opts...)
}

// Update is Komega.Update with the client of SetClient.
func Update(obj client.Object, f func(), opts ...client.UpdateOption) func() error {
	return current().Update(obj, f, opts...)
}

// UpdateStatus is Komega.UpdateStatus with the client of SetClient.
func UpdateStatus(obj client.Object, f func(), opts ...client.SubResourceUpdateOption) func() error {
	return current().UpdateStatus(obj, f, opts...)
}

// Object is Komega.Object with the client of SetClient.
func Object(obj client.Object) func() (client.Object, error) { return current().Object(obj) }

// ObjectList is Komega.ObjectList with the client of SetClient.
func ObjectList(list client.ObjectList, opts ...client.ListOption) func() (client.ObjectList, error) {
	return current().ObjectList(list, opts...)
}
