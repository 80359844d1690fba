// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	ctrl "github.com/wherry-dev/wherry"
	"github.com/wherry-dev/wherry/cache/cacheapi"
	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/client/apiutil"
	"github.com/wherry-dev/wherry/controller/reconcile"
	managerconfig "github.com/wherry-dev/wherry/manager/config"
	"github.com/wherry-dev/wherry/manager/metrics/server"
	"github.com/wherry-dev/wherry/test/envtest"
)

// resumes is how long a kind may take, at most, to be cached again once it can be: the longest pause between two
// attempts after a refusal, and some time for a machine under load.
const resumes = time.Minute

// syncTimeout is how long a source of the first manager waits: long enough for the server to refuse it once, at least.
const syncTimeout = 6 * time.Second

func install(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	_, err := envtest.InstallCRDs(config, envtest.CRDInstallOptions{CRDs: []*apiextensionsv1.CustomResourceDefinition{crd}})
	must(t, err)
}

func uninstall(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	must(t, envtest.UninstallCRDs(config, envtest.CRDInstallOptions{CRDs: []*apiextensionsv1.CustomResourceDefinition{crd}}))
	eventually(t, "the definition is still there", resumes, func() bool {
		err := live.Get(t.Context(), client.ObjectKeyFromObject(crd), &apiextensionsv1.CustomResourceDefinition{})
		return apierrors.IsNotFound(err)
	})
}

// A kind whose definition is deleted and comes back resumes by itself, in each form: its objects go, handlers hear of
// the new ones, reads show them. The server lets the watch of such a kind be for a while; when it has ended, the
// informer says what is wrong until the kind is back.
func TestKindGoesAndComesBack(t *testing.T) {
	for _, ended := range []bool{false, true} {
		for _, form := range []apiutil.Form{apiutil.Unstructured, apiutil.Metadata} {
			s := shape{widgetKind.GroupVersion().WithKind("Gadget"), form}
			t.Run(fmt.Sprintf("%s watch ended=%v", s, ended), func(t *testing.T) { goesAndComesBack(t, s, ended) })
		}
	}
}

func goesAndComesBack(t *testing.T, s shape, ended bool) {
	gadgets, raw := definition("gadgets", "Gadget"), shape{s.kind, apiutil.Unstructured}
	install(t, gadgets.DeepCopy())
	ns := namespace(t)
	must(t, live.Create(t.Context(), raw.object(ns, "one", "of", ns)))
	cfg, watches := heldWatches(config)
	cl := start(t, cfg)
	want(t, "at the beginning", s.listed(t, cl.GetClient()), ns+"/one")
	h := hear(t, cl, s, client.MatchingLabels{"of": ns})
	want(t, "the first object", h.take(t, 1), "add "+ns+"/one")

	uninstall(t, gadgets)
	want(t, "with the definition the objects go", h.take(t, 1), "delete "+ns+"/one")
	inf, err := cl.GetCache().GetInformer(t.Context(), s.object("", ""))
	must(t, err)
	status := inf.(cacheapi.ErrorReporter)
	if ended {
		watches.cut(false)
		eventually(t, "the informer does not say that its kind is gone", resumes, func() bool { return apierrors.IsNotFound(status.LastError()) })
	}
	want(t, "while the kind is gone", s.listed(t, cl.GetClient()))

	install(t, gadgets.DeepCopy())
	must(t, live.Create(t.Context(), raw.object(ns, "two", "of", ns)))
	eventually(t, "the kind is not cached again", resumes, func() bool { return s.there(t, cl.GetClient(), ns, "two") })
	want(t, "the new object", h.take(t, 1), "add "+ns+"/two")
	must(t, status.LastError())
	uninstall(t, gadgets)
}

// counted tells that something was reconciled.
func counted(keys chan<- string) reconcile.Func {
	return func(_ context.Context, req reconcile.Request) (reconcile.Result, error) {
		select {
		case keys <- req.String():
		default:
		}
		return reconcile.Result{}, nil
	}
}

// watching makes a manager with one controller of a kind. It is not started.
func watching(t *testing.T, cfg *rest.Config, s shape, timeout time.Duration) (ctrl.Manager, <-chan string) {
	t.Helper()
	skip := true
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme: scheme, Metrics: server.Options{BindAddress: "0"},
		Client:     client.Options{Cache: &client.CacheOptions{Unstructured: true}},
		Controller: managerconfig.Controller{CacheSyncTimeout: timeout, SkipNameValidation: &skip},
	})
	must(t, err)
	keys := make(chan string, 1)
	must(t, ctrl.NewControllerManagedBy(mgr).Named("late").For(s.object("", "")).Complete(counted(keys)))
	return mgr, keys
}

// A source of a kind that is not installed, or not allowed yet, waits for it until its sync timeout, while a read of
// the kind fails at once with the server's reason; past the timeout the manager ends with that reason.
func TestSourcesWaitReadsFail(t *testing.T) {
	gizmos := definition("gizmos", "Gizmo")
	gizmo := shape{widgetKind.GroupVersion().WithKind("Gizmo"), apiutil.Unstructured}
	late := rest.CopyConfig(config)
	late.Impersonate = rest.ImpersonationConfig{UserName: "late"}
	ns := namespace(t)
	for _, c := range []struct {
		name   string
		config *rest.Config
		shape  shape
		allow  func(t *testing.T)
		reason func(error) bool
		says   string
	}{
		{"not installed", config, gizmo, func(t *testing.T) { install(t, gizmos) }, meta.IsNoMatchError, "Gizmo"},
		{"not allowed", late, shape{widgetKind, apiutil.Typed}, func(t *testing.T) { grant(t, "late", "widgets") }, apierrors.IsForbidden, "widgets"},
	} {
		t.Run(c.name, func(t *testing.T) {
			mgr, _ := watching(t, c.config, c.shape, syncTimeout)
			err := mgr.Start(t.Context())
			if !c.reason(err) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("past the sync timeout the manager ended with %v", err)
			}

			mgr, keys := watching(t, c.config, c.shape, 2*resumes)
			manage(t, mgr)
			began := time.Now()
			err = mgr.GetClient().Get(t.Context(), client.ObjectKey{Namespace: ns, Name: "one"}, c.shape.object("", ""))
			if !c.reason(err) || !strings.Contains(err.Error(), c.says) || time.Since(began) > 20*time.Second {
				t.Errorf("after %s a read failed with %v", time.Since(began), err)
			}
			time.Sleep(3 * time.Second) // far beyond what a sync takes; the source has been refused a few times
			c.allow(t)
			must(t, live.Create(t.Context(), shape{c.shape.kind, apiutil.Unstructured}.object(ns, "one")))
			select {
			case <-keys:
			case <-time.After(resumes):
				t.Fatal("the source did not go on after the kind could be watched")
			}
			if !c.shape.there(t, mgr.GetClient(), ns, "one") {
				t.Error("the object is not read")
			}
		})
	}
}

// grant lets a user do everything with a resource of Widgets' group.
func grant(t *testing.T, user, resource string) {
	t.Helper()
	name := metav1.ObjectMeta{Name: user + "-" + resource}
	must(t, live.Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: name, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{widgetKind.Group}, Resources: []string{resource}, Verbs: []string{"*"}},
	}}), live.Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: name, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name.Name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}},
	}))
}
