// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
)

var (
	// Apply is a server-side apply of the object as it is.
	//
	// Deprecated: use Client.Apply with an apply configuration: a Go struct cannot tell a field that is to be zero from
	// one that is not to be managed.
	Apply Patch = wholePatch{types.ApplyPatchType}

	// Merge is a JSON merge patch of the object as it is.
	Merge Patch = wholePatch{types.MergePatchType}
)

// wholePatch sends the whole object as a patch.
type wholePatch struct{ patchType types.PatchType }

func (p wholePatch) Type() types.PatchType { return p.patchType }

func (p wholePatch) Data(obj Object) ([]byte, error) { return json.Marshal(obj) }

// RawPatch makes a patch of ready-made data, which is kept and must not be changed afterwards.
func RawPatch(patchType types.PatchType, data []byte) Patch {
	return rawPatch{patchType, data}
}

type rawPatch struct {
	patchType types.PatchType
	data      []byte
}

func (p rawPatch) Type() types.PatchType { return p.patchType }

func (p rawPatch) Data(Object) ([]byte, error) { return p.data, nil }

// MergeFromOption changes how a patch is made from two objects.
type MergeFromOption interface {
	// ApplyToMergeFrom writes the option into the options.
	ApplyToMergeFrom(*MergeFromOptions)
}

// MergeFromOptions are the options of MergeFromWithOptions and StrategicMergeFrom.
type MergeFromOptions struct {
	// OptimisticLock puts the resourceVersion of the older object into the patch, so that the server refuses it with a
	// conflict if the object was changed since.
	OptimisticLock bool
}

// MergeFrom makes a JSON merge patch of what differs between obj, as it is when the patch is sent, and the object that is
// then given to Patch. obj is kept and must not be changed: take a deep copy before changing the working object.
//
// A merge patch replaces lists as a whole. It cannot set a field to null. Numbers are taken over as they are written,
// however large.
func MergeFrom(obj Object) Patch { return MergeFromWithOptions(obj) }

// MergeFromWithOptions is MergeFrom with options.
func MergeFromWithOptions(obj Object, opts ...MergeFromOption) Patch {
	return newDiffPatch(types.MergePatchType, mergeDiff, obj, opts)
}

// StrategicMergeFrom is MergeFromWithOptions with a strategic merge patch, which merges lists by their keys. It needs the
// patch tags of a Go type and a server that supports it: it works for typed objects of built-in kinds, not for custom
// resources.
func StrategicMergeFrom(obj Object, opts ...MergeFromOption) Patch {
	return newDiffPatch(types.StrategicMergePatchType, strategicDiff, obj, opts)
}

// A diff gives the patch that leads from one JSON document to another; obj is the object that the latter was made of.
type diff func(before, after []byte, obj Object) ([]byte, error)

type diffPatch struct {
	patchType types.PatchType
	diff      diff
	from      Object
	options   MergeFromOptions
}

func newDiffPatch(patchType types.PatchType, diff diff, from Object, opts []MergeFromOption) Patch {
	p := &diffPatch{patchType: patchType, diff: diff, from: from}
	for _, opt := range opts {
		opt.ApplyToMergeFrom(&p.options)
	}
	return p
}

func (p *diffPatch) Type() types.PatchType { return p.patchType }

func (p *diffPatch) Data(obj Object) ([]byte, error) {
	from := p.from
	if p.options.OptimisticLock {
		locked := from.GetResourceVersion()
		if locked == "" {
			return nil, fmt.Errorf("make a patch with optimistic lock: the object %q that it starts from has no resourceVersion", from.GetName())
		}
		// With the version missing on one side and the old one on the other, the diff carries the old one.
		from = from.DeepCopyObject().(Object)
		from.SetResourceVersion("")
		obj = obj.DeepCopyObject().(Object)
		obj.SetResourceVersion(locked)
	}
	before, err := json.Marshal(from)
	if err != nil {
		return nil, err
	}
	after, err := json.Marshal(obj)
	if err != nil {
		return nil, err
	}
	return p.diff(before, after, obj)
}
