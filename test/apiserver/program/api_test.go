// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package program_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	apps "k8s.io/api/apps/v1"
	authentication "k8s.io/api/authentication/v1"
	core "k8s.io/api/core/v1"
	crds "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	crdclient "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/wherry-dev/wherry/test/apiserver/server"
	"github.com/wherry-dev/wherry/test/apiserver/storage/file"
)

// serve runs a server in this process that keeps nothing, and stops it when the test ends.
func serve(t *testing.T, change ...func(*server.Options)) *server.Server {
	t.Helper()
	o := server.Options{Storage: file.Memory}
	for _, f := range change {
		f(&o)
	}
	s, err := server.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Errorf("stop: %v", err)
		}
		if calls := s.UnexpectedEtcdCalls(); len(calls) > 0 {
			t.Errorf("calls to etcd that are not on the list: %q", calls)
		}
	})
	return s
}

func newNamespace(t *testing.T, c kubernetes.Interface, name string) {
	t.Helper()
	_, err := c.CoreV1().Namespaces().Create(t.Context(), &core.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	must(t, err)
}

func configMap(name string) *core.ConfigMap {
	return &core.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"k": "v"}}
}

func widgets(group string) *crds.CustomResourceDefinition {
	preserve := true
	return &crds.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "widgets." + group},
		Spec: crds.CustomResourceDefinitionSpec{
			Group: group, Scope: crds.NamespaceScoped,
			Names: crds.CustomResourceDefinitionNames{Plural: "widgets", Singular: "widget", Kind: "Widget", ListKind: "WidgetList"},
			Versions: []crds.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Subresources: &crds.CustomResourceSubresources{Status: &crds.CustomResourceSubresourceStatus{}},
				Schema: &crds.CustomResourceValidation{OpenAPIV3Schema: &crds.JSONSchemaProps{
					Type: "object", Properties: map[string]crds.JSONSchemaProps{
						"spec":   {Type: "object", Description: "what is wished", XPreserveUnknownFields: &preserve},
						"status": {Type: "object", XPreserveUnknownFields: &preserve},
					},
				}},
			}},
		},
	}
}

func widget(group, name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": group + "/v1", "kind": "Widget", "metadata": map[string]any{"name": name},
		"spec": map[string]any{"colour": "red"},
	}}
}

// define makes the widgets of a group and waits until they are served.
func define(t *testing.T, config *rest.Config, group string, change ...func(*crds.CustomResourceDefinition)) dynamic.NamespaceableResourceInterface {
	t.Helper()
	c, err := crdclient.NewForConfig(config)
	must(t, err)
	definition := widgets(group)
	for _, f := range change {
		f(definition)
	}
	_, err = c.ApiextensionsV1().CustomResourceDefinitions().Create(t.Context(), definition, metav1.CreateOptions{})
	must(t, err)
	d, err := dynamic.NewForConfig(config)
	must(t, err)
	r := d.Resource(schema.GroupVersionResource{Group: group, Version: "v1", Resource: "widgets"})
	eventually(t, 10*time.Second, func() string {
		if _, err := r.List(t.Context(), metav1.ListOptions{}); err != nil {
			return err.Error()
		}
		return ""
	})
	return r
}

// TestAPI goes through what a cluster's API does that depends on how this server is put together.
func TestAPI(t *testing.T) {
	s := serve(t, func(o *server.Options) { o.Flags = []string{"event-ttl=1s"} })
	config := s.Config()
	c := clientFor(t, config)
	t.Run("anonymous access is off", func(t *testing.T) { testAnonymous(t, config) })
	t.Run("RBAC is on", func(t *testing.T) { testRBAC(t, c, config) })
	t.Run("node ports are allocated once", func(t *testing.T) { testNodePorts(t, c) })
	t.Run("server-side apply", func(t *testing.T) { testApply(t, c) })
	t.Run("events expire", func(t *testing.T) { testEventTTL(t, c) })
	t.Run("documents", func(t *testing.T) { testDocuments(t, c, config) })
	t.Run("namespaces go away", func(t *testing.T) { testNamespace(t, c, config) })
	t.Run("dependents go away", func(t *testing.T) { testGarbage(t, c, config) })
	t.Run("every namespace has an account", func(t *testing.T) {
		newNamespace(t, c, "accounts")
		eventually(t, 2*time.Second, func() string {
			_, err := c.CoreV1().ServiceAccounts("accounts").Get(t.Context(), "default", metav1.GetOptions{})
			return text(err)
		})
	})
	t.Run("version", func(t *testing.T) {
		v, err := c.Discovery().ServerVersion()
		must(t, err)
		if v.Major != "1" || v.Minor != "37" {
			t.Errorf("version %s.%s; want 1.37", v.Major, v.Minor)
		}
	})
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func testAnonymous(t *testing.T, config *rest.Config) {
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	defer client.CloseIdleConnections()
	for _, path := range []string{"/api", "/version", "/readyz", "/metrics", server.AdminPath + "/snapshots"} {
		answer, err := client.Get(config.Host + path)
		must(t, err)
		_ = answer.Body.Close()
		if answer.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s without a token answers %s; want 401", path, answer.Status)
		}
	}
}

func testRBAC(t *testing.T, c *kubernetes.Clientset, config *rest.Config) {
	eventually(t, 5*time.Second, func() string { // it is made once the server is ready
		return text(second(c.CoreV1().ServiceAccounts("default").Get(t.Context(), "default", metav1.GetOptions{})))
	})
	token, err := c.CoreV1().ServiceAccounts("default").CreateToken(t.Context(), "default", &authentication.TokenRequest{}, metav1.CreateOptions{})
	must(t, err)
	as := rest.AnonymousClientConfig(config)
	as.BearerToken = token.Status.Token
	account := clientFor(t, as)
	me, err := account.AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authentication.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil || me.Status.UserInfo.Username != "system:serviceaccount:default:default" {
		t.Errorf("the token's bearer is %v, %v", me, err)
	}
	if _, err := account.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("the default account lists pods: %v; want Forbidden", err)
	}
	r := account.RESTClient().Post().AbsPath(server.AdminPath + "/snapshots").Do(t.Context())
	if !apierrors.IsForbidden(r.Error()) {
		t.Errorf("the default account takes a snapshot: %v; want Forbidden", r.Error())
	}
}

func testNodePorts(t *testing.T, c *kubernetes.Clientset) {
	seen := map[int32]bool{}
	for i := range 5 {
		svc, err := c.CoreV1().Services("default").Create(t.Context(), &core.Service{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("np%d", i)},
			Spec:       core.ServiceSpec{Type: core.ServiceTypeNodePort, Ports: []core.ServicePort{{Port: 80}}},
		}, metav1.CreateOptions{})
		must(t, err)
		port := svc.Spec.Ports[0].NodePort
		if port == 0 || seen[port] {
			t.Errorf("service %d got the node port %d", i, port)
		}
		seen[port] = true
	}
	taken := &core.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "np-again"},
		Spec:       core.ServiceSpec{Type: core.ServiceTypeNodePort, Ports: []core.ServicePort{{Port: 80}}},
	}
	for port := range seen {
		taken.Spec.Ports[0].NodePort = port
	}
	if _, err := c.CoreV1().Services("default").Create(t.Context(), taken, metav1.CreateOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("a node port was given twice: %v", err)
	}
}

func testApply(t *testing.T, c *kubernetes.Clientset) {
	apply := func(manager, replicas string, force bool) error {
		body := `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web"},"spec":{"replicas":` + replicas +
			`,"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}}`
		_, err := c.AppsV1().Deployments("default").Patch(t.Context(), "web", types.ApplyPatchType, []byte(body),
			metav1.PatchOptions{FieldManager: manager, Force: &force})
		return err
	}
	must(t, apply("one", "1", false), apply("one", "2", false))
	if err := apply("two", "3", false); !apierrors.IsConflict(err) {
		t.Errorf("a second manager took a field: %v; want a conflict", err)
	}
	must(t, apply("two", "3", true))
	if _, err := c.AppsV1().Deployments("default").Create(t.Context(), &apps.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "bad"}}, metav1.CreateOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("a deployment without a template: %v; want Invalid", err)
	}
}

func testEventTTL(t *testing.T, c *kubernetes.Clientset) {
	_, err := c.CoreV1().Events("default").Create(t.Context(), &core.Event{
		ObjectMeta:     metav1.ObjectMeta{Name: "short"},
		InvolvedObject: core.ObjectReference{Namespace: "default", Name: "x", Kind: "Pod"},
	}, metav1.CreateOptions{})
	must(t, err)
	eventually(t, 10*time.Second, func() string {
		_, err := c.CoreV1().Events("default").Get(t.Context(), "short", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return ""
		}
		return fmt.Sprintf("the event is still there (%v)", err)
	})
}

// testDocuments reads what kubectl reads for explain and for client-side validation.
func testDocuments(t *testing.T, c *kubernetes.Clientset, config *rest.Config) {
	define(t, config, "docs.example.com")
	raw := func(path string) string {
		data, err := c.RESTClient().Get().AbsPath(path).SetHeader("Accept", "application/json").DoRaw(t.Context())
		if err != nil {
			return ""
		}
		return string(data)
	}
	eventually(t, 15*time.Second, func() string {
		if v2 := raw("/openapi/v2"); !strings.Contains(v2, `"io.k8s.api.apps.v1.Deployment"`) || !strings.Contains(v2, "com.example.docs.v1.Widget") ||
			!strings.Contains(v2, "io.k8s.kube-aggregator") {
			return fmt.Sprintf("/openapi/v2 (%d bytes) lacks deployments, widgets or API services", len(v2))
		}
		return ""
	})
	var index struct {
		Paths map[string]struct {
			ServerRelativeURL string `json:"serverRelativeURL"`
		} `json:"paths"`
	}
	for group, want := range map[string]string{
		"apis/apps/v1":                   "io.k8s.api.apps.v1.Deployment",
		"api/v1":                         "io.k8s.api.core.v1.Pod",
		"apis/docs.example.com/v1":       "what is wished",
		"apis/apiextensions.k8s.io/v1":   "CustomResourceDefinition",
		"apis/apiregistration.k8s.io/v1": "APIService",
	} {
		eventually(t, 15*time.Second, func() string {
			if err := json.Unmarshal([]byte(raw("/openapi/v3")), &index); err != nil {
				return "/openapi/v3: " + err.Error()
			}
			at := index.Paths[group].ServerRelativeURL
			path, query, _ := strings.Cut(at, "?")
			if at == "" || query == "" {
				return fmt.Sprintf("/openapi/v3 does not name %s: %q", group, at)
			}
			data, err := c.RESTClient().Get().AbsPath(path).Param("hash", strings.TrimPrefix(query, "hash=")).
				SetHeader("Accept", "application/json").DoRaw(t.Context())
			if err != nil || !strings.Contains(string(data), want) {
				return fmt.Sprintf("%s (%d bytes, %v) lacks %q", at, len(data), err, want)
			}
			return ""
		})
	}
}

func testNamespace(t *testing.T, c *kubernetes.Clientset, config *rest.Config) {
	w := define(t, config, "bye.example.com")
	newNamespace(t, c, "bye")
	_, err := c.CoreV1().ConfigMaps("bye").Create(t.Context(), configMap("a"), metav1.CreateOptions{})
	must(t, err)
	_, err = w.Namespace("bye").Create(t.Context(), widget("bye.example.com", "w"), metav1.CreateOptions{})
	must(t, err, c.CoreV1().Namespaces().Delete(t.Context(), "bye", metav1.DeleteOptions{}))
	took := eventually(t, 10*time.Second, func() string {
		_, err := c.CoreV1().Namespaces().Get(t.Context(), "bye", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return ""
		}
		return fmt.Sprintf("the namespace is still there (%v)", err)
	})
	t.Logf("the namespace was gone after %v", took.Round(time.Millisecond))
	newNamespace(t, c, "bye")
	list, err := w.Namespace("bye").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) > 0 {
		t.Errorf("the new namespace holds %d widgets, %v", len(list.Items), err)
	}
}

func testGarbage(t *testing.T, c *kubernetes.Clientset, config *rest.Config) {
	w := define(t, config, "owner.example.com")
	owner, err := w.Namespace("default").Create(t.Context(), widget("owner.example.com", "owner"), metav1.CreateOptions{})
	must(t, err)
	for i := range 3 {
		dependent := configMap(fmt.Sprintf("dependent%d", i))
		dependent.OwnerReferences = []metav1.OwnerReference{{APIVersion: "owner.example.com/v1", Kind: "Widget", Name: "owner", UID: owner.GetUID()}}
		_, err := c.CoreV1().ConfigMaps("default").Create(t.Context(), dependent, metav1.CreateOptions{})
		must(t, err)
	}
	must(t, w.Namespace("default").Delete(t.Context(), "owner", metav1.DeleteOptions{}))
	took := eventually(t, 10*time.Second, func() string {
		list, err := c.CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return err.Error()
		}
		for _, m := range list.Items {
			if strings.HasPrefix(m.Name, "dependent") {
				return m.Name + " is still there"
			}
		}
		return ""
	})
	t.Logf("the dependents were gone after %v", took.Round(time.Millisecond))
}

// post calls the admin path.
func post(ctx context.Context, c *kubernetes.Clientset, path string, body, into any) error {
	data, err := json.Marshal(body)
	if err != nil {
		return err
	}
	out, err := c.RESTClient().Post().AbsPath(server.AdminPath + path).Body(data).DoRaw(ctx)
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return json.Unmarshal(out, into)
}

func TestUsersByCertificate(t *testing.T) {
	s := serve(t)
	var made struct{ Certificate, Key string }
	must(t, post(t.Context(), clientFor(t, s.Config()), "/users", map[string]any{"name": "ann", "groups": []string{"devs"}}, &made))
	config := rest.AnonymousClientConfig(s.Config())
	config.CertData, config.KeyData = []byte(made.Certificate), []byte(made.Key)
	me, err := clientFor(t, config).AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authentication.SelfSubjectReview{}, metav1.CreateOptions{})
	must(t, err)
	if u := me.Status.UserInfo; u.Username != "ann" || !strings.Contains(strings.Join(u.Groups, " "), "devs") {
		t.Errorf("the certificate's bearer is %+v; want ann of devs", u)
	}
	if err := post(t.Context(), clientFor(t, s.Config()), "/users", map[string]any{}, &made); err == nil {
		t.Error("a user without a name was made")
	}
}
