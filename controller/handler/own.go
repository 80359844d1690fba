// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package handler

import (
	"reflect"

	"github.com/wherry-dev/wherry/controller/reconcile"
)

var ownPackage = reflect.TypeFor[TypedFuncs[any, reconcile.Request]]().PkgPath()

// own returns h if its type is one of this package, else nil. The type is
// asked for, not its methods: a user's type that embeds one of ours has its
// methods too.
func own(h any) any {
	t := reflect.TypeOf(h)
	if t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == nil || t.PkgPath() != ownPackage {
		return nil
	}
	return h
}

// Inline tells whether a handler is one of this package and calls no function
// of a user, so that, once prepared, it never blocks and never panics. A cache
// may then call it while it changes its store.
func Inline(h any) bool {
	i, ok := own(h).(interface{ inline() bool })
	return ok && i.inline()
}

// Validate tells what is wrong with how a handler was made, if anything.
func Validate(h any) error {
	if v, ok := own(h).(interface{ validate() error }); ok {
		return v.validate()
	}
	return nil
}

// Prepare does the part of a handler's work that may block, so that its events
// will not. A source calls it before it starts, and again after an error. It
// does nothing for handlers that are not of this package.
func Prepare(h any) error {
	if p, ok := own(h).(interface{ prepare() error }); ok {
		return p.prepare()
	}
	return nil
}
