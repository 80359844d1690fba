// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// newer reports whether resourceVersion a is above b. An empty version is below every other; versions that
// are no numbers cannot be compared and are never newer.
func newer(a, b string) bool {
	switch {
	case a == b || a == "" || a == "0":
		return false
	case b == "" || b == "0":
		return true
	}
	c, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && c > 0
}

// isNumber reports whether a resourceVersion is a number and so can be compared with others.
func isNumber(version string) bool {
	_, err := resourceversion.CompareResourceVersion(version, version)
	return err == nil
}

// versionOf returns the resourceVersion of an object, or "" if it has none.
func versionOf(obj any) string {
	if m, err := meta.Accessor(obj); err == nil {
		return m.GetResourceVersion()
	}
	return ""
}

// uidOf returns the UID of an object, or "" for nil.
func uidOf(obj any) types.UID {
	if obj == nil {
		return ""
	}
	if m, err := meta.Accessor(obj); err == nil {
		return m.GetUID()
	}
	return ""
}
