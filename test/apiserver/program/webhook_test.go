// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package program_test

import (
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	admission "k8s.io/api/admission/v1"
	registration "k8s.io/api/admissionregistration/v1"
	core "k8s.io/api/core/v1"
	crds "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	crdclient "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// webhooks serves an admission webhook that refuses what is named "bad" and a conversion webhook between v1, whose
// colour is in spec.colour, and v2, whose colour is in spec.paint.
func webhooks(t *testing.T) (url string, ca []byte) {
	t.Helper()
	routes := http.NewServeMux()
	routes.HandleFunc("/admit", func(w http.ResponseWriter, r *http.Request) {
		var review admission.AdmissionReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		review.Response = &admission.AdmissionResponse{UID: review.Request.UID, Allowed: review.Request.Name != "bad",
			Result: &metav1.Status{Message: "bad is not welcome"}}
		_ = json.NewEncoder(w).Encode(review)
	})
	routes.HandleFunc("/convert", func(w http.ResponseWriter, r *http.Request) {
		var review crds.ConversionReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		review.Response = &crds.ConversionResponse{UID: review.Request.UID, Result: metav1.Status{Status: metav1.StatusSuccess}}
		for _, raw := range review.Request.Objects {
			var o unstructured.Unstructured
			if err := json.Unmarshal(raw.Raw, &o.Object); err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			from, to := "colour", "paint"
			if strings.HasSuffix(review.Request.DesiredAPIVersion, "/v1") {
				from, to = to, from
			}
			value, _, _ := unstructured.NestedString(o.Object, "spec", from)
			_ = unstructured.SetNestedMap(o.Object, map[string]any{to: value}, "spec")
			o.SetAPIVersion(review.Request.DesiredAPIVersion)
			review.Response.ConvertedObjects = append(review.Response.ConvertedObjects, runtime.RawExtension{Object: &o})
		}
		_ = json.NewEncoder(w).Encode(review)
	})
	s := httptest.NewTLSServer(routes)
	t.Cleanup(s.Close)
	return s.URL, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
}

func TestWebhooks(t *testing.T) {
	s := serve(t)
	c := clientFor(t, s.Config())
	url, ca := webhooks(t)
	admit, convert := url+"/admit", url+"/convert"
	none := registration.SideEffectClassNone
	_, err := c.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(t.Context(), &registration.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "names"},
		Webhooks: []registration.ValidatingWebhook{{
			Name: "names.example.com", ClientConfig: registration.WebhookClientConfig{URL: &admit, CABundle: ca},
			Rules: []registration.RuleWithOperations{{Operations: []registration.OperationType{registration.Create},
				Rule: registration.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}}}},
			SideEffects: &none, AdmissionReviewVersions: []string{"v1"},
		}},
	}, metav1.CreateOptions{})
	must(t, err)
	eventually(t, 10*time.Second, func() string {
		_, err := c.CoreV1().ConfigMaps("default").Create(t.Context(), configMap("bad"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err != nil && strings.Contains(err.Error(), "bad is not welcome") {
			return ""
		}
		return "the admission webhook was not asked: " + text(err)
	})
	_, err = c.CoreV1().ConfigMaps("default").Create(t.Context(), configMap("good"), metav1.CreateOptions{})
	must(t, err)

	crd := widgets("hooks.example.com")
	v2 := *crd.Spec.Versions[0].DeepCopy()
	v2.Name, v2.Storage = "v2", false
	crd.Spec.Versions = append(crd.Spec.Versions, v2)
	crd.Spec.Conversion = &crds.CustomResourceConversion{Strategy: crds.WebhookConverter, Webhook: &crds.WebhookConversion{
		ClientConfig: &crds.WebhookClientConfig{URL: &convert, CABundle: ca}, ConversionReviewVersions: []string{"v1"},
	}}
	definitions, err := crdclient.NewForConfig(s.Config())
	must(t, err)
	_, err = definitions.ApiextensionsV1().CustomResourceDefinitions().Create(t.Context(), crd, metav1.CreateOptions{})
	must(t, err)
	d, err := dynamic.NewForConfig(s.Config())
	must(t, err)
	of := func(version string) dynamic.ResourceInterface {
		return d.Resource(schema.GroupVersionResource{Group: "hooks.example.com", Version: version, Resource: "widgets"}).Namespace("default")
	}
	eventually(t, 10*time.Second, func() string {
		_, err := of("v1").Create(t.Context(), widget("hooks.example.com", "w"), metav1.CreateOptions{})
		return text(err)
	})
	got, err := of("v2").Get(t.Context(), "w", metav1.GetOptions{})
	must(t, err)
	if paint, _, _ := unstructured.NestedString(got.Object, "spec", "paint"); paint != "red" {
		t.Errorf("as v2 the widget is %v; want its colour as paint", got.Object)
	}
}

func TestEncryptionAtRest(t *testing.T) {
	dir, keys := t.TempDir(), filepath.Join(t.TempDir(), "keys.yaml")
	must(t, os.WriteFile(keys, []byte(`apiVersion: apiserver.config.k8s.io/v1
kind: EncryptionConfiguration
resources:
- resources: [secrets]
  providers:
  - aescbc: {keys: [{name: k1, secret: MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=}]}
  - identity: {}
`), 0o600))
	args := []string{"--data-dir", dir, "--apiserver-flag", "encryption-provider-config=" + keys}
	p := start(t, args...)
	_, err := p.client(t).CoreV1().Secrets("default").Create(t.Context(), &core.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "s"}, StringData: map[string]string{"word": "open-sesame"},
	}, metav1.CreateOptions{})
	must(t, err)
	_, err = p.client(t).CoreV1().ConfigMaps("default").Create(t.Context(), &core.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "m"}, Data: map[string]string{"word": "plain-to-see"},
	}, metav1.CreateOptions{})
	must(t, err)
	p.stop(t)
	logs, err := filepath.Glob(filepath.Join(dir, "log-*"))
	must(t, err)
	var all []byte
	for _, path := range logs {
		data, err := os.ReadFile(path)
		must(t, err)
		all = append(all, data...)
	}
	if strings.Contains(string(all), "open-sesame") || !strings.Contains(string(all), "plain-to-see") {
		t.Error("the secret is in the log as it is, or the log holds nothing")
	}
	got, err := start(t, args...).client(t).CoreV1().Secrets("default").Get(t.Context(), "s", metav1.GetOptions{})
	if err != nil || string(got.Data["word"]) != "open-sesame" {
		t.Errorf("after a restart the secret is %q, %v", got.Data["word"], err)
	}
}
