// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package event

import "github.com/wherry-dev/wherry/client"

// The events of objects of any API kind.
type (
	CreateEvent  = TypedCreateEvent[client.Object]
	UpdateEvent  = TypedUpdateEvent[client.Object]
	DeleteEvent  = TypedDeleteEvent[client.Object]
	GenericEvent = TypedGenericEvent[client.Object]
)

// TypedCreateEvent tells of an object that the source did not know before.
type TypedCreateEvent[object any] struct {
	// Object is the new object.
	Object object

	// IsInInitialList is true if the object was there when watching began.
	IsInInitialList bool
}

// TypedUpdateEvent tells that an object changed. After a resync, and only
// then, both have the same resourceVersion.
type TypedUpdateEvent[object any] struct {
	// ObjectOld is the object as the source knew it before.
	ObjectOld object

	// ObjectNew is the object as it is now.
	ObjectNew object
}

// TypedDeleteEvent tells that an object is gone.
type TypedDeleteEvent[object any] struct {
	// Object is the last state known.
	Object object

	// DeleteStateUnknown is true if the deletion itself was missed, so that
	// Object may be older than the state that was deleted.
	DeleteStateUnknown bool
}

// TypedGenericEvent tells of anything else, mostly of something outside the
// cluster. Object is what it is about.
type TypedGenericEvent[object any] struct {
	Object object
}
