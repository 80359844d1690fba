// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"fmt"
	"os"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/client/apiutil"
	"github.com/wherry-dev/wherry/test/envtest"
)

var (
	config     *rest.Config
	widgetKind = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}
	configMaps = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
)

// patience is how long anything may take that must happen, on a machine that does other things.
const patience = time.Minute

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	env := &envtest.Environment{ControlPlaneStartTimeout: 2 * patience, CRDs: []*apiextensionsv1.CustomResourceDefinition{widgetCRD("widgets", "Widget")}}
	var err error
	if config, err = env.Start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() {
		if err := env.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}()
	config.QPS = -1
	return m.Run()
}

// widgetCRD has a status sub-resource, a scale sub-resource and open fields.
func widgetCRD(plural, kind string) *apiextensionsv1.CustomResourceDefinition {
	open := apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)}
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: plural + ".example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "example.com", Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: plural, Kind: kind},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object",
					Properties: map[string]apiextensionsv1.JSONSchemaProps{
						"spec": {Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
							"size": {Type: "integer"}, "big": {Type: "integer", Format: "int64"}, "extra": open,
						}},
						"status": {Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
							"phase": {Type: "string"}, "size": {Type: "integer"},
						}},
					},
				}},
				Subresources: &apiextensionsv1.CustomResourceSubresources{
					Status: &apiextensionsv1.CustomResourceSubresourceStatus{},
					Scale:  &apiextensionsv1.CustomResourceSubresourceScale{SpecReplicasPath: ".spec.size", StatusReplicasPath: ".status.size"},
				},
			}},
		},
	}
}

func newClient(t *testing.T, options client.Options) client.WithWatch {
	t.Helper()
	c, err := client.NewWithWatch(config, options)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// namespace makes a namespace for one test. It is left to the server, which ends with the tests.
func namespace(t *testing.T, c client.Client) string {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "t-"}}
	if err := c.Create(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	return ns.Name
}

// A maker makes an empty object and list of one kind in one form.
type maker struct {
	name string
	kind schema.GroupVersionKind
	form apiutil.Form
}

func (m maker) object(ns, name string) client.Object {
	var obj client.Object
	switch {
	case m.form == apiutil.Typed:
		obj = &corev1.ConfigMap{}
	case m.form == apiutil.Unstructured:
		obj = &unstructured.Unstructured{}
	default:
		obj = &metav1.PartialObjectMetadata{}
	}
	if m.form != apiutil.Typed {
		obj.GetObjectKind().SetGroupVersionKind(m.kind)
	}
	obj.SetNamespace(ns)
	obj.SetName(name)
	return obj
}

func (m maker) list() client.ObjectList {
	var list client.ObjectList
	switch {
	case m.form == apiutil.Typed:
		return &corev1.ConfigMapList{}
	case m.form == apiutil.Unstructured:
		list = &unstructured.UnstructuredList{}
	default:
		list = &metav1.PartialObjectMetadataList{}
	}
	list.GetObjectKind().SetGroupVersionKind(apiutil.ListKind(m.kind))
	return list
}

// makers are the forms of a built-in kind and of one without a Go type.
var makers = []maker{
	{"typed ConfigMap", configMaps, apiutil.Typed},
	{"unstructured ConfigMap", configMaps, apiutil.Unstructured},
	{"metadata ConfigMap", configMaps, apiutil.Metadata},
	{"unstructured Widget", widgetKind, apiutil.Unstructured},
	{"metadata Widget", widgetKind, apiutil.Metadata},
}

func deployment(ns, name string) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(1)), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
			},
		},
	}
}
