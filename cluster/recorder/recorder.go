// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package recorder

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
)

// EventRecorder writes events of events.k8s.io/v1 in the name of one controller. Its methods may be called at any
// time from any goroutine and do not block; objects are only read, and not after the call returned.
type EventRecorder interface {
	// Eventf records that something happened to regarding: eventtype is Normal or Warning, reason says why and action
	// what was done, both in one UpperCamelCase word of at most 128 characters, and note says it for people, in at most
	// 1 KiB. related is a second object, or nil.
	Eventf(regarding, related runtime.Object, eventtype, reason, action, note string, args ...any)

	// AnnotatedEventf is Eventf with annotations on the event.
	AnnotatedEventf(regarding, related runtime.Object, annotations map[string]string, eventtype, reason, action, note string, args ...any)
}

// Provider gives recorders.
type Provider interface {
	// GetEventRecorder returns a recorder of events.k8s.io/v1 events in the name of a controller.
	GetEventRecorder(name string) EventRecorder

	// GetEventRecorderFor returns a recorder of core/v1 events.
	//
	// Deprecated: use GetEventRecorder, whose events say what was done and count repetitions better.
	GetEventRecorderFor(name string) record.EventRecorder
}
