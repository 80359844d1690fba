// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package fake

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/client/apiutil"
)

func (c *fakeClient) Apply(ctx context.Context, config runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	return c.apply(ctx, "", config, config, new(client.ApplyOptions).ApplyOptions(opts).AsPatchOptions())
}

// apply applies body to the object that config is about, or to a sub-resource of it.
func (c *fakeClient) apply(ctx context.Context, subresource string, config, body runtime.ApplyConfiguration, o *metav1.PatchOptions) error {
	obj, err := named(config)
	if err != nil {
		return err
	}
	w, err := c.begin(ctx, "apply", obj)
	if err != nil {
		return err
	}
	w.subresource = subresource
	if err := w.options("PatchOptions", o.DryRun, o.FieldManager); err != nil {
		return err
	}
	data, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("write the apply configuration %T: %w", body, err)
	}
	stored, err := c.e.apply(w, patching{kind: types.ApplyPatchType, data: data, force: o.Force != nil && *o.Force})
	if err != nil {
		return err
	}
	return fillConfig(w.k, stored, body)
}

// named reads from a configuration which object it is about.
func named(config runtime.ApplyConfiguration) (*unstructured.Unstructured, error) {
	if apiutil.IsNil(config) {
		return nil, fmt.Errorf("the apply configuration: %w", apiutil.ErrNilObject)
	}
	data, err := json.Marshal(config)
	if err != nil {
		return nil, fmt.Errorf("write the apply configuration %T: %w", config, err)
	}
	u := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal(data, &u.Object); err != nil {
		return nil, fmt.Errorf("read the apply configuration %T: %w", config, err)
	}
	if u.GetName() == "" {
		return nil, fmt.Errorf("the apply configuration of %s: %w", u.GroupVersionKind(), errNoName)
	}
	return u, nil
}

var errNoName = errors.New("resource name may not be empty: set the name")

// fillConfig writes the answer into a configuration, and leaves nothing of what that held before.
func fillConfig(k *kind, stored client.Object, config runtime.ApplyConfiguration) error {
	content, err := toMap(k, stored)
	if err != nil {
		return err
	}
	if u, ok := config.(runtime.Unstructured); ok {
		u.SetUnstructuredContent(content)
		return nil
	}
	data, err := json.Marshal(content)
	if err != nil {
		return err
	}
	apiutil.Zero(config)
	return utiljson.Unmarshal(data, config)
}
