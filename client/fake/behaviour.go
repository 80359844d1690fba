// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package fake

// Behaviour is one thing that an API server does and this package does only if asked. Each would make tests fail that
// were written, over years, for a client without it: such tests compare whole objects, or use fixtures that no server
// would accept.
type Behaviour uint16

const (
	// Identity gives every object that is created or preloaded a UID of its own and a creation time, whatever the caller
	// set on a create, and refuses an Update that carries another UID than the stored object has. Without it both fields
	// are the caller's.
	Identity Behaviour = 1 << iota

	// Generations keeps metadata.generation: 1 on create, one more with each change outside of metadata and status.
	// Without it the field is the caller's.
	Generations

	// StatusReset drops the status on a create of a kind that has a status sub-resource. Without it the status is kept.
	StatusReset

	// NoOpWrites lets a write that changes nothing leave the resourceVersion as it is and cause no event. Without it every
	// write counts.
	NoOpWrites

	// GracefulPods keeps a deleted pod, with deletionTimestamp and deletionGracePeriodSeconds, until it is deleted with a
	// grace period of 0, unless it is not scheduled or has ended. Without it pods without finalizers go at once.
	GracefulPods

	// Namespaces wants a namespace for every object of a namespaced kind, and the Namespace to exist and not to be
	// terminating when something is created in it. Without it, objects of namespaced kinds may be in no namespace.
	Namespaces

	// Validation checks names, labels, annotations, finalizers and owner references, and refuses to change metadata that
	// cannot change. It also refuses kinds that are neither built in nor known to the RESTMapper. Specs are never validated.
	// Without it only an empty name is refused.
	Validation

	// ListVersions gives lists the resourceVersion of the moment; with it one counter numbers all objects, as
	// WithGlobalResourceVersionCounter asks for, and a Watch can go on from a version. Without it lists have none.
	ListVersions

	// InitialEvents lets a Watch without a resourceVersion begin with an ADDED event for each object there is. Without it
	// a Watch tells only of what happens after it.
	InitialEvents

	// AllBehaviours are all of them.
	AllBehaviours = 1<<iota - 1
)

// has reports whether all of want are on.
func (b Behaviour) has(want Behaviour) bool { return b&want == want }
