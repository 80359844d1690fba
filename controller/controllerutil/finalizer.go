// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package controllerutil

import (
	"slices"

	"github.com/wherry-dev/wherry/client"
)

// AddFinalizer adds a finalizer to the object, in memory only, and tells
// whether it was missing. client.AddFinalizer and client.RemoveFinalizer write
// one finalizer to the server without touching those of others.
func AddFinalizer(o client.Object, finalizer string) (finalizersUpdated bool) {
	have := o.GetFinalizers()
	if slices.Contains(have, finalizer) {
		return false
	}
	o.SetFinalizers(append(slices.Clone(have), finalizer))
	return true
}

// RemoveFinalizer takes a finalizer from the object, in memory only, and tells
// whether it was there.
func RemoveFinalizer(o client.Object, finalizer string) (finalizersUpdated bool) {
	have := o.GetFinalizers()
	if !slices.Contains(have, finalizer) {
		return false
	}
	o.SetFinalizers(slices.DeleteFunc(slices.Clone(have), func(f string) bool { return f == finalizer }))
	return true
}

// ContainsFinalizer tells whether the object has a finalizer.
func ContainsFinalizer(o client.Object, finalizer string) bool {
	return slices.Contains(o.GetFinalizers(), finalizer)
}
