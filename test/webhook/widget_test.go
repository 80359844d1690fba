// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"context"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/wherry-dev/wherry/webhook/conversion"
)

var widgetKind = schema.GroupKind{Group: "example.com", Kind: "Widget"}

// WidgetV1 is the hub and is stored.
type WidgetV1 struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              struct {
		Size   int    `json:"size,omitempty"`
		Colour string `json:"colour,omitempty"`
	} `json:"spec"`
}

// WidgetV2 counts in another unit.
type WidgetV2 struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              struct {
		Millis int    `json:"millis,omitempty"`
		Colour string `json:"colour,omitempty"`
	} `json:"spec"`
}

// DeepCopyObject is generated in real life.
func (w *WidgetV1) DeepCopyObject() runtime.Object {
	c := *w
	c.ObjectMeta = *w.ObjectMeta.DeepCopy()
	return &c
}

// DeepCopyObject is generated in real life.
func (w *WidgetV2) DeepCopyObject() runtime.Object {
	c := *w
	c.ObjectMeta = *w.ObjectMeta.DeepCopy()
	return &c
}

func newScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	s.AddKnownTypeWithName(widgetKind.WithVersion("v1"), &WidgetV1{})
	s.AddKnownTypeWithName(widgetKind.WithVersion("v2"), &WidgetV2{})
	for _, version := range []string{"v1", "v2"} {
		metav1.AddToGroupVersion(s, schema.GroupVersion{Group: widgetKind.Group, Version: version})
	}
	return s
}

func widgetConverter() func(*runtime.Scheme) (conversion.Converter, error) {
	return conversion.NewHubSpokeConverter(&WidgetV1{}, conversion.NewSpokeConverter(&WidgetV2{},
		func(_ context.Context, hub *WidgetV1, spoke *WidgetV2) error {
			spoke.ObjectMeta, spoke.Spec.Millis, spoke.Spec.Colour = hub.ObjectMeta, hub.Spec.Size*1000, hub.Spec.Colour
			return nil
		},
		func(_ context.Context, spoke *WidgetV2, hub *WidgetV1) error {
			hub.ObjectMeta, hub.Spec.Size, hub.Spec.Colour = spoke.ObjectMeta, spoke.Spec.Millis/1000, spoke.Spec.Colour
			return nil
		}))
}

// widgetCRD has both versions and is converted at url.
func widgetCRD(url string, caBundle []byte) *apiextensionsv1.CustomResourceDefinition {
	keep := true
	open := &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
		Type:       "object",
		Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": {Type: "object", XPreserveUnknownFields: &keep}},
	}}
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "widgets.example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: widgetKind.Group,
			Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "widgets", Singular: "widget", Kind: widgetKind.Kind, ListKind: "WidgetList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{
				{Name: "v1", Served: true, Storage: true, Schema: open},
				{Name: "v2", Served: true, Schema: open},
			},
			Conversion: &apiextensionsv1.CustomResourceConversion{
				Strategy: apiextensionsv1.WebhookConverter,
				Webhook: &apiextensionsv1.WebhookConversion{
					ClientConfig:             &apiextensionsv1.WebhookClientConfig{URL: &url, CABundle: caBundle},
					ConversionReviewVersions: []string{"v1"},
				},
			},
		},
	}
}
