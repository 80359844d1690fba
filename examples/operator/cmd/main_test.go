// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/test/envtest"

	webv1alpha1 "github.com/wherry-dev/wherry/examples/operator/api/v1alpha1"
)

// patience is how long anything may take here, on a machine that does other things.
const patience = 2 * time.Minute

// TestOperator runs the whole program, with its webhooks and under its own role, on an API server of the test's own. No pod
// runs there, so the test says what a Deployment controller would say.
func TestOperator(t *testing.T) {
	env := &envtest.Environment{
		ControlPlaneStartTimeout: patience,
		CRDDirectoryPaths:        []string{"../config/crd/bases"},
		WebhookInstallOptions:    envtest.WebhookInstallOptions{Paths: []string{"../config/webhook"}},
	}
	cfg, err := env.Start()
	must(t, err)
	t.Cleanup(func() { must(t, env.Stop()) })
	admin, err := client.New(cfg, client.Options{Scheme: scheme})
	must(t, err)
	admin = client.WithFieldValidation(admin, "Strict") // a field that the CRD lacks is an error: make generate was forgotten
	for _, object := range append(read(t, "../config/manager/manager.yaml"), read(t, "../config/rbac/role.yaml")...) {
		if !strings.HasPrefix(object.GetAPIVersion(), "cert-manager.io/") { // the test has certificates of its own
			must(t, admin.Create(t.Context(), object))
		}
	}
	start(t, env)

	sample := read(t, "../config/samples/web_v1alpha1_website.yaml")[0]
	sample.SetNamespace("default")
	key := client.ObjectKeyFromObject(sample)
	must(t, admin.Create(t.Context(), sample))
	var site webv1alpha1.Website
	status := func(want string) {
		t.Helper()
		eventually(t, "the site is "+want, func() error {
			if err := admin.Get(t.Context(), key, &site); err != nil {
				return err
			}
			ready := meta.FindStatusCondition(site.Status.Conditions, "Ready")
			if ready == nil || ready.Reason != want || site.Status.ObservedGeneration != site.Generation {
				return fmt.Errorf("generation %d, status %+v", site.Generation, site.Status)
			}
			return nil
		})
	}
	status("RollingOut")
	rollOut(t, admin, key)
	status("Available")
	*site.Spec.Replicas++
	must(t, admin.Update(t.Context(), &site))
	status("RollingOut")
	rollOut(t, admin, key)
	status("Available")

	bad := &webv1alpha1.Website{}
	bad.Namespace, bad.Name = "default", "no.label"
	if err := admin.Create(t.Context(), bad); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "metadata.name") {
		t.Errorf("a bad name: %v", err)
	}
	bad.Name = "plain"
	must(t, admin.Create(t.Context(), bad))
	if bad.Spec.HTML != "<h1>Welcome to plain</h1>" || *bad.Spec.Replicas != 1 {
		t.Errorf("defaults: %+v", bad.Spec)
	}
	events := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "events.k8s.io/v1", "kind": "EventList"}}
	eventually(t, "events tell of it", func() error {
		if err := admin.List(t.Context(), events, client.InNamespace("default")); err != nil || len(events.Items) < 2 {
			return errors.Join(err, fmt.Errorf("%d events", len(events.Items)))
		}
		return nil
	})
}

// start runs the program as main does, as who it is in a cluster: it may do what config/ allows it, and no more.
func start(t *testing.T, env *envtest.Environment) {
	user, err := env.AddUser(envtest.User{Name: "system:serviceaccount:system:controller-manager"}, nil)
	must(t, err)
	kubeconfig, err := user.KubeConfig()
	must(t, err)
	file := filepath.Join(t.TempDir(), "kubeconfig")
	must(t, os.WriteFile(file, kubeconfig, 0o600))
	args := []string{"--kubeconfig=" + file, "--leader-elect", "--leader-elect-namespace=system", "--health-probe-bind-address=0",
		"--webhook-cert-path=" + env.WebhookInstallOptions.LocalServingCertDir, fmt.Sprint("--webhook-port=", env.WebhookInstallOptions.LocalServingPort)}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, args) }()
	t.Cleanup(func() { stop(); must(t, <-ended) })
	served, enough := context.WithTimeout(ctx, patience)
	defer enough()
	must(t, env.WebhookInstallOptions.WaitUntilServed(served))
}

// rollOut says that all pods of a Deployment are there.
func rollOut(t *testing.T, admin client.Client, key client.ObjectKey) {
	var d appsv1.Deployment
	must(t, admin.Get(t.Context(), key, &d))
	n := *d.Spec.Replicas
	d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: n, UpdatedReplicas: n, ReadyReplicas: n, AvailableReplicas: n}
	must(t, admin.Status().Update(t.Context(), &d))
}

// read reads the objects of a YAML file.
func read(t *testing.T, path string) (objects []*unstructured.Unstructured) {
	content, err := os.ReadFile(path)
	must(t, err)
	for document := range strings.SplitSeq(string(content), "\n---\n") {
		object := &unstructured.Unstructured{}
		must(t, yaml.Unmarshal([]byte(document), &object.Object))
		objects = append(objects, object)
	}
	return objects
}

// eventually asks until the answer is no error.
func eventually(t *testing.T, what string, ask func() error) {
	t.Helper()
	enough := time.After(patience)
	for tick := time.Tick(50 * time.Millisecond); ; {
		err := ask()
		if err == nil {
			return
		}
		select {
		case <-tick:
		case <-enough:
			t.Fatalf("not yet: %s: %v", what, err)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
