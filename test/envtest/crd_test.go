// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package envtest_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/test/envtest"
)

const widgetCRD = `
apiVersion: v1
kind: ConfigMap
metadata: {name: not-a-crd}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties: {spec: {type: object, properties: {size: {type: integer}}}}
---
`

// folder writes files into a new folder.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestReadCRDFiles(t *testing.T) {
	given := func(name string) *apiextensionsv1.CustomResourceDefinition {
		return &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: name}}
	}
	for _, c := range []struct {
		name    string
		options envtest.CRDInstallOptions
		want    []string // names of CRDs
		err     []string
	}{
		{"a folder", envtest.CRDInstallOptions{Paths: []string{folder(t, map[string]string{"w.yaml": widgetCRD, "README.md": "no: [yaml"})}}, []string{"widgets.example.com"}, nil},
		{"a file", envtest.CRDInstallOptions{Paths: []string{filepath.Join(folder(t, map[string]string{"w.yaml": widgetCRD}), "w.yaml")}}, []string{"widgets.example.com"}, nil},
		{"given and found", envtest.CRDInstallOptions{CRDs: []*apiextensionsv1.CustomResourceDefinition{given("a.example.com"), given("widgets.example.com")}, Paths: []string{folder(t, map[string]string{"w.yml": widgetCRD})}}, []string{"a.example.com", "widgets.example.com"}, nil},
		{"missing, allowed", envtest.CRDInstallOptions{Paths: []string{filepath.Join(t.TempDir(), "absent")}}, nil, nil},
		{"missing, not allowed", envtest.CRDInstallOptions{Paths: []string{filepath.Join(t.TempDir(), "absent")}, ErrorIfPathMissing: true}, nil, []string{"CRD path", "absent"}},
		{"not YAML", envtest.CRDInstallOptions{Paths: []string{folder(t, map[string]string{"broken.yaml": "a: [b"})}}, nil, []string{"broken.yaml"}},
		{"an old version", envtest.CRDInstallOptions{Paths: []string{folder(t, map[string]string{"old.yaml": strings.ReplaceAll(widgetCRD, "k8s.io/v1", "k8s.io/v1beta1")})}}, nil, []string{"old.yaml", "v1beta1", "apiextensions.k8s.io/v1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := envtest.ReadCRDFiles(&c.options)
			if (err != nil) != (c.err != nil) {
				t.Fatalf("error %v, want one: %v", err, c.err != nil)
			}
			for _, w := range c.err {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("error %q does not say %q", err, w)
				}
			}
			var names []string
			for _, crd := range c.options.CRDs {
				names = append(names, crd.Name)
			}
			if err == nil && !slices.Equal(names, c.want) {
				t.Errorf("read %v, want %v", names, c.want)
			}
		})
	}
}

// TestCRDsAreUsableAtOnce creates a custom resource right after Start, and
// installs the CRD a second time, changed.
func TestCRDsAreUsableAtOnce(t *testing.T) {
	dir := folder(t, map[string]string{"w.yaml": widgetCRD})
	env := &envtest.Environment{CRDDirectoryPaths: []string{dir}, ErrorIfCRDPathMissing: true}
	cfg, err := env.Start()
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := env.Stop(); err != nil {
			t.Error(err)
		}
	}()
	if len(env.CRDs) != 1 {
		t.Errorf("Environment.CRDs has %d entries, want 1", len(env.CRDs))
	}
	c, err := client.New(cfg, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Create(t.Context(), widget("w")); err != nil {
		t.Fatal(err)
	}
	crds, err := envtest.InstallCRDs(cfg, envtest.CRDInstallOptions{CRDs: env.CRDs})
	if err != nil || len(crds) != 1 {
		t.Errorf("second install: %v, %d CRDs", err, len(crds))
	}
	if err := envtest.UninstallCRDs(cfg, envtest.CRDInstallOptions{Paths: []string{dir}}); err != nil {
		t.Error(err)
	}
}

// widget is a custom resource in the namespace default.
func widget(name string) *unstructured.Unstructured {
	w := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": name, "namespace": "default"}, "spec": map[string]any{"size": int64(1)}}}
	w.SetGroupVersionKind(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"})
	return w
}

// TestCRDErrors installs what the server does not take: Start fails, says why,
// and leaves nothing running.
func TestCRDErrors(t *testing.T) {
	const namesTaken = time.Second // it is waited for, as names may become free
	absent := filepath.Join(t.TempDir(), "absent")
	for _, c := range []struct {
		name string
		env  envtest.Environment
		want []string
	}{
		{"a folder that is missing", envtest.Environment{CRDDirectoryPaths: []string{absent}, ErrorIfCRDPathMissing: true}, []string{"CRD path", "absent", "test's own folder"}},
		{"the same by options", envtest.Environment{CRDInstallOptions: envtest.CRDInstallOptions{Paths: []string{absent}, ErrorIfPathMissing: true}}, []string{"CRD path", "absent"}},
		{"a CRD that is not valid", envtest.Environment{CRDDirectoryPaths: []string{folder(t, map[string]string{"w.yaml": strings.ReplaceAll(widgetCRD, "type: integer", "type: numberish")})}}, []string{"CRD widgets.example.com", "numberish"}},
		{"a CRD of another name", envtest.Environment{CRDDirectoryPaths: []string{folder(t, map[string]string{"w.yaml": strings.ReplaceAll(widgetCRD, "name: widgets.example.com", "name: things.example.com")})}}, []string{"CRD things.example.com", "metadata.name"}},
		{"a CRD without a schema", envtest.Environment{CRDs: []*apiextensionsv1.CustomResourceDefinition{{ObjectMeta: metav1.ObjectMeta{Name: "x.example.com"}}}}, []string{"CRD x.example.com", "spec.group"}},
		{"two kinds of one name", envtest.Environment{CRDDirectoryPaths: []string{folder(t, map[string]string{"a.yaml": widgetCRD, "b.yaml": strings.ReplaceAll(widgetCRD, "widgets", "things")})}, CRDInstallOptions: envtest.CRDInstallOptions{MaxTime: namesTaken}}, []string{"CRD things.example.com", "names are taken"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			limit := patience
			if c.env.CRDInstallOptions.MaxTime == namesTaken {
				limit = namesTaken
			}
			saysWithin(t, limit, func(limit time.Duration) error {
				c.env.CRDInstallOptions.MaxTime = limit
				_, err := c.env.Start()
				return err
			}, c.want...)
			if c.env.ControlPlane.APIURL() != nil {
				t.Error("the server still runs")
			}
		})
	}
}
