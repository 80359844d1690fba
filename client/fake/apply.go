// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package fake

import (
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/wherry-dev/wherry/client"
)

// apply is a server-side apply: it merges what the caller wants with what is there and creates what is not.
func (e *engine) apply(w *write, p patching) (client.Object, error) {
	if w.manager == "" {
		return nil, invalidOptions("PatchOptions", field.Required(field.NewPath("fieldManager"), "is required for apply patch"))
	}
	applied := &unstructured.Unstructured{}
	if err := json.Unmarshal(p.data, &applied.Object); err != nil {
		return nil, badRequestf("error decoding YAML: %v", err)
	}
	if applied.GetManagedFields() != nil {
		return nil, apierrors.NewBadRequest("metadata.managedFields must be nil")
	}
	applied.SetGroupVersionKind(w.k.gvk)
	if w.k.has(clusterScoped) {
		applied.SetNamespace("")
	}
	w.settled = true
	e.mu.Lock()
	defer e.mu.Unlock()
	old, err := e.rows.get(w.k, w.key)
	if err != nil {
		return nil, err
	}
	if old == nil {
		return e.applyNew(w, applied, p.force)
	}
	if err := e.managers.settle(w.k, old); err != nil {
		return nil, err
	}
	merged, err := e.merge(w, old.obj.DeepCopyObject().(client.Object), applied, p.force, false)
	if err != nil {
		return nil, err
	}
	if err := checkURL(w, merged); err != nil {
		return nil, err
	}
	w.patch = true
	return e.replace(w, old, merged)
}

func (e *engine) applyNew(w *write, applied *unstructured.Unstructured, force bool) (client.Object, error) {
	if w.subresource != "" {
		return nil, w.k.notFound(w.key.Name)
	}
	if uid := applied.GetUID(); uid != "" {
		return nil, w.k.conflict(w.key.Name, fmt.Errorf("uid mismatch: the provided object specified uid %s, and no existing object was found", uid))
	}
	applied.SetResourceVersion("") // there is nothing that it could be a version of
	empty, err := e.newStored(w.k)
	if err != nil {
		return nil, err
	}
	merged, err := e.merge(w, empty, applied, force, true)
	if err != nil {
		return nil, err
	}
	return e.createLocked(w, merged)
}

// merge lets the field manager do its work and gives the result in stored form. It may write to live.
func (e *engine) merge(w *write, live client.Object, applied *unstructured.Unstructured, force, create bool) (client.Object, error) {
	fm, err := e.managers.of(w.k, w.subresource, create)
	if err != nil {
		return nil, err
	}
	merged, err := fm.Apply(live, applied, w.manager, force)
	if err != nil {
		var status apierrors.APIStatus
		if errors.As(err, &status) {
			return nil, err // a conflict, or a bad request
		}
		return nil, apierrors.NewInternalError(err)
	}
	return e.toStored(w.k, merged)
}
