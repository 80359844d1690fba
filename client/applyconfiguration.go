// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/wherry-dev/wherry/client/apiutil"
)

// ApplyConfigurationFromUnstructured lets an unstructured object be used as an apply configuration. u is kept: the answer
// of an Apply is written into it.
func ApplyConfigurationFromUnstructured(u *unstructured.Unstructured) runtime.ApplyConfiguration {
	return &unstructuredApplyConfiguration{u}
}

type unstructuredApplyConfiguration struct{ *unstructured.Unstructured }

// IsApplyConfiguration marks the type.
func (*unstructuredApplyConfiguration) IsApplyConfiguration() {}

// applyBody is an apply configuration as it is sent.
type applyBody struct {
	config runtime.ApplyConfiguration
	data   []byte
	kind   schema.GroupVersionKind
	key    ObjectKey
}

// newApplyBody writes a configuration as JSON and reads from that what it is about: generated configurations share no
// interface that would tell.
func newApplyBody(config runtime.ApplyConfiguration) (*applyBody, error) {
	if apiutil.IsNil(config) {
		return nil, fmt.Errorf("the apply configuration: %w", apiutil.ErrNilObject)
	}
	if wrapped, ok := config.(*unstructuredApplyConfiguration); ok && wrapped.Unstructured == nil {
		return nil, fmt.Errorf("the apply configuration: %w", apiutil.ErrNilObject)
	}
	data, err := json.Marshal(config)
	if err != nil {
		return nil, fmt.Errorf("write the apply configuration %T: %w", config, err)
	}
	var head struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Metadata   struct {
			Namespace string `json:"namespace"`
			Name      string `json:"name"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return nil, fmt.Errorf("read the apply configuration %T: %w", config, err)
	}
	gv, err := schema.ParseGroupVersion(head.APIVersion)
	switch {
	case err != nil:
		return nil, fmt.Errorf("the apply configuration %T: %w", config, err)
	case head.APIVersion == "":
		return nil, runtime.NewMissingVersionErr(fmt.Sprintf("the apply configuration %T has no apiVersion", config))
	case head.Kind == "":
		return nil, runtime.NewMissingKindErr(fmt.Sprintf("the apply configuration %T has no kind", config))
	case head.Metadata.Name == "":
		return nil, fmt.Errorf("the apply configuration of %s: %w", gv.WithKind(head.Kind), errNoName)
	}
	return &applyBody{
		config: config, data: data, kind: gv.WithKind(head.Kind),
		key: ObjectKey{Namespace: head.Metadata.Namespace, Name: head.Metadata.Name},
	}, nil
}

// decodeConfig writes an answer into an apply configuration. What it held before is gone.
func decodeConfig(answer answer, config runtime.ApplyConfiguration) error {
	if wrapped, ok := config.(*unstructuredApplyConfiguration); ok {
		apiutil.Zero(wrapped.Unstructured)
		return wrapped.UnmarshalJSON(answer.body)
	}
	apiutil.Zero(config)
	return utiljson.Unmarshal(answer.body, config)
}
