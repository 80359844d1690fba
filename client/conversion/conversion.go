// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package conversion

import "k8s.io/apimachinery/pkg/runtime"

// Hub marks the one version of a kind through which all conversions go. Its method is only the mark and does nothing.
type Hub interface {
	runtime.Object
	Hub()
}

// Convertible is a version of a kind that is not the hub.
type Convertible interface {
	runtime.Object

	// ConvertTo writes the receiver's content into dst, an empty hub object. It must not keep parts of the receiver in
	// dst that it would later change.
	ConvertTo(dst Hub) error

	// ConvertFrom sets the receiver from src, under the same rule.
	ConvertFrom(src Hub) error
}
