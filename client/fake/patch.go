// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package fake

import (
	"bytes"
	stdjson "encoding/json"
	"fmt"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/wherry-dev/wherry/client"
)

// patching is a patch as it is sent.
type patching struct {
	kind  types.PatchType
	data  []byte
	force bool // an apply takes fields over from others
}

// patch changes the stored object by p.
func (e *engine) patch(w *write, p patching) (client.Object, error) {
	if p.kind == types.ApplyPatchType {
		return e.apply(w, p)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	old, err := e.rows.get(w.k, w.key)
	if err != nil {
		return nil, err
	}
	if old == nil {
		return nil, w.k.notFound(w.key.Name)
	}
	return e.patchLocked(w, old, p)
}

func (e *engine) patchLocked(w *write, old *record, p patching) (client.Object, error) {
	if bytes.Contains(p.data, []byte("managedFields")) {
		if err := e.managers.settle(w.k, old); err != nil {
			return nil, err
		}
	}
	content, err := toMap(w.k, old.obj)
	if err != nil {
		return nil, err
	}
	before, err := stdjson.Marshal(content)
	if err != nil {
		return nil, err
	}
	after, err := e.patchJSON(w.k, before, p)
	if err != nil {
		return nil, err
	}
	obj, err := e.decode(w.k, after)
	if err != nil {
		return nil, apierrors.NewInvalid(schema.GroupKind{}, "", field.ErrorList{field.Invalid(field.NewPath("patch"), string(after), err.Error())})
	}
	if err := checkURL(w, obj); err != nil {
		return nil, err
	}
	w.patch = true
	return e.replace(w, old, obj)
}

// patchJSON gives what the patch makes of a document.
func (e *engine) patchJSON(k *kind, before []byte, p patching) ([]byte, error) {
	switch p.kind {
	case types.JSONPatchType:
		ops, err := jsonpatch.DecodePatch(p.data)
		if err != nil {
			return nil, apierrors.NewBadRequest(decodeError(p.data))
		}
		after, err := ops.Apply(before)
		if err != nil {
			return nil, k.unprocessable(err)
		}
		return after, nil
	case types.MergePatchType:
		if !isObject(p.data) {
			return nil, apierrors.NewBadRequest(decodeError(p.data))
		}
		after, err := jsonpatch.MergePatch(before, p.data)
		if err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		return after, nil
	case types.StrategicMergePatchType:
		if !k.hasPatch {
			return nil, k.unsupportedPatch()
		}
		if !isObject(p.data) {
			return nil, apierrors.NewBadRequest(decodeError(p.data))
		}
		model, err := e.scheme.New(k.gvk)
		if err != nil {
			return nil, err
		}
		after, err := strategicpatch.StrategicMergePatch(before, p.data, model)
		if err != nil {
			return nil, k.unprocessable(err)
		}
		return after, nil
	}
	return nil, k.unsupportedPatch()
}

// decodeError says what is wrong with a patch that is no object or list.
func decodeError(data []byte) string {
	if !stdjson.Valid(data) {
		return "invalid JSON patch"
	}
	var m map[string]any
	if err := stdjson.Unmarshal(data, &m); err != nil {
		return "error decoding patch: " + err.Error()
	}
	var l []map[string]any
	return fmt.Sprint("error decoding patch: ", stdjson.Unmarshal(data, &l))
}

func isObject(data []byte) bool {
	var m map[string]stdjson.RawMessage
	return stdjson.Unmarshal(data, &m) == nil && m != nil
}
