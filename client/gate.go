// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/wherry-dev/wherry/client/apiutil"
)

// Verb names what a write does.
type Verb string

// The verbs of writes. Those on a sub-resource have the verb of their method and Write.SubResource set.
const (
	VerbCreate      Verb = "create"
	VerbUpdate      Verb = "update"
	VerbPatch       Verb = "patch"
	VerbApply       Verb = "apply"
	VerbDelete      Verb = "delete"
	VerbDeleteAllOf Verb = "deletecollection"
)

// A Write tells a WriteGate what is about to be sent. It is only valid until Begin returns, except for what it points to.
type Write struct {
	Verb Verb
	// GroupVersionKind is the kind of the object that is written, also where SubResource is set.
	GroupVersionKind schema.GroupVersionKind
	// Form is the form of the object that the answer is read into.
	Form apiutil.Form
	// SubResource is empty for a write of the object itself.
	SubResource string
	// Namespace is empty for kinds without one.
	Namespace string
	// Name is empty for a Create with generateName and for a DeleteAllOf.
	Name string
	// UID is what the caller's object, or a Delete's precondition, says; often it says nothing.
	UID types.UID
	// DryRun is set if the server will not store the write.
	DryRun bool
	// DisableReadYourWrites is set if the caller gave DisableReadYourWritesConsistency.
	DisableReadYourWrites bool
	// List is what a DeleteAllOf selects, nil for all other verbs. It must not be changed.
	List *ListOptions
}

// An Outcome tells how a write ended.
type Outcome struct {
	// Err is nil if the server answered with success; an error of package apierrors if it answered with another status.
	Err error
	// Sent is false if the server cannot have seen the request.
	Sent bool
	// Unknown is set if nobody knows whether the write happened: it was sent and there was no answer or one of 500 and
	// above, also if that was an earlier attempt and the last one failed in another way.
	Unknown bool
	// StatusCode is the answer's HTTP status, 0 if there was no answer.
	StatusCode int
	// ContentType is the answer's media type.
	ContentType string
	// Body is the answer as it came: an object, a list or a metav1.Status. It must not be changed, and may be kept.
	Body []byte
}

// WriteGate hears of every write of a client: before it is sent, and when it is answered, before the caller hears of it.
// Caches use it to let a client read its own writes, managers to refuse writes after they lost their lease.
//
// All writes of a client pass all of its gates: those of Options.Gates in their order and then, if
// CacheOptions.EnableReadYourWritesConsistency is true, the cache. A gate is called from many goroutines at once.
type WriteGate interface {
	// Begin is called before the write is sent. An error refuses the write: it is returned to the caller, wrapped, and
	// nothing is sent. The context that is returned is the one that the request is sent with; it must be ctx or derived
	// from it. settle, if not nil, is called exactly once, also if a later gate refuses; it must not block for long.
	Begin(ctx context.Context, write Write) (_ context.Context, settle func(Outcome), _ error)
}

// gates is the list of a client's gates as one.
type gates []WriteGate

// begin passes a write through all gates. If one refuses, those before it are told, and settle is nil.
func (g gates) begin(ctx context.Context, write Write) (context.Context, func(Outcome), error) {
	settles := make([]func(Outcome), 0, len(g))
	settle := func(outcome Outcome) {
		for i := len(settles) - 1; i >= 0; i-- {
			settles[i](outcome)
		}
	}
	for _, gate := range g {
		gated, done, err := gate.Begin(ctx, write)
		if err != nil {
			settle(Outcome{Err: err})
			return ctx, nil, err
		}
		if gated != nil {
			ctx = gated
		}
		if done != nil {
			settles = append(settles, done)
		}
	}
	return ctx, settle, nil
}
