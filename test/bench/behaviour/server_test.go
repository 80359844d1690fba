// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package behaviour

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/wherry-dev/wherry/test/envtest/program"
)

var (
	// server reaches the embedded API server that all cases share. Each case
	// that writes has a namespace of its own.
	server *rest.Config
	// truth looks at the server past the library.
	truth *kubernetes.Clientset
)

func TestMain(m *testing.M) {
	flag.Parse()
	_ = flag.Set("test.parallel", "12") // cases wait more than they work
	ctrl.SetLogger(logr.Discard())
	code, err := runOnServer(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// runOnServer starts the server by its program: importing Wherry's envtest here
// would register Wherry's hooks beside controller-runtime's.
func runOnServer(m *testing.M) (int, error) {
	path, err := program.Find(context.Background(), os.Stderr)
	if err != nil {
		return 0, err
	}
	cmd := exec.Command(path, "--exit-on-stdin-eof", "--ready-json", "--storage", "memory")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return 0, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return 0, err
	}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	defer func() {
		stdin.Close()
		_ = cmd.Wait()
	}()
	line, err := bufio.NewReader(stdout).ReadBytes('\n')
	if err != nil {
		return 0, fmt.Errorf("the API server %s said nothing: %w", path, err)
	}
	var ready struct{ Kubeconfig string }
	if err := json.Unmarshal(line, &ready); err != nil {
		return 0, err
	}
	if server, err = clientcmd.RESTConfigFromKubeConfig([]byte(ready.Kubeconfig)); err != nil {
		return 0, err
	}
	server.QPS = -1
	if truth, err = kubernetes.NewForConfig(server); err != nil {
		return 0, err
	}
	if err := installWidgets(); err != nil {
		return 0, err
	}
	return m.Run(), nil
}

var widgetKind = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}

// crd is a definition with a status and the given scope.
func crd(plural, kind, scope string) *unstructured.Unstructured {
	object := func(properties map[string]any) map[string]any {
		return map[string]any{"type": "object", "properties": properties}
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": plural + ".example.com"},
		"spec": map[string]any{
			"group": "example.com", "scope": scope,
			"names": map[string]any{"plural": plural, "kind": kind},
			"versions": []any{map[string]any{
				"name": "v1", "served": true, "storage": true,
				"subresources": map[string]any{"status": map[string]any{}},
				"schema": map[string]any{"openAPIV3Schema": object(map[string]any{
					"spec":   object(map[string]any{"size": map[string]any{"type": "integer"}, "color": map[string]any{"type": "string"}}),
					"status": object(map[string]any{"ready": map[string]any{"type": "boolean"}}),
				})},
			}},
		},
	}}
}

var crds = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// install creates a definition and waits until its kind is served.
func install(definition *unstructured.Unstructured) error {
	d, err := dynamic.NewForConfig(server)
	if err != nil {
		return err
	}
	if _, err := d.Resource(crds).Create(context.Background(), definition, metav1.CreateOptions{}); err != nil {
		return err
	}
	plural, _, _ := unstructured.NestedString(definition.Object, "spec", "names", "plural")
	served := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: plural}
	if !within(patience, func() bool {
		_, err := d.Resource(served).List(context.Background(), metav1.ListOptions{})
		return err == nil
	}) {
		return fmt.Errorf("%s is not served within %v", plural, patience)
	}
	return nil
}

func installWidgets() error { return install(crd("widgets", "Widget", "Namespaced")) }

// namespace makes a namespace for a case.
func namespace(t *testing.T) string {
	t.Helper()
	ns, err := truth.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "case-"}}, metav1.CreateOptions{})
	must(t, err)
	// Pods are refused without it, and the server makes it behind the namespace.
	if !within(patience, func() bool {
		_, err := truth.CoreV1().ServiceAccounts(ns.Name).Get(t.Context(), "default", metav1.GetOptions{})
		return err == nil
	}) {
		t.Fatalf("namespace %s has no service account", ns.Name)
	}
	return ns.Name
}

// configMap puts a ConfigMap on the server past the library.
func configMap(t *testing.T, ns, name string, labels map[string]string) *corev1.ConfigMap {
	t.Helper()
	cm, err := truth.CoreV1().ConfigMaps(ns).Create(t.Context(), newConfigMap(ns, name, labels), metav1.CreateOptions{})
	must(t, err)
	return cm
}

func newConfigMap(ns, name string, labels map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name, Labels: labels}, Data: map[string]string{"key": "value"}}
}

// widget is a custom object that is not on the server yet.
func widget(ns, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"size": int64(1)}}}
	u.SetGroupVersionKind(widgetKind)
	u.SetNamespace(ns)
	u.SetName(name)
	return u
}

// stored reads a ConfigMap past the library; nil if it is not there.
func stored(t *testing.T, ns, name string) *corev1.ConfigMap {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cm, err := truth.CoreV1().ConfigMaps(ns).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil
	}
	return cm
}

func storedNames(t *testing.T, ns string) string {
	t.Helper()
	l, err := truth.CoreV1().ConfigMaps(ns).List(context.Background(), metav1.ListOptions{})
	must(t, err)
	return named(l.Items)
}

// soon is a context for one call that might hang.
func soon(t *testing.T, limit time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	return ctx
}
