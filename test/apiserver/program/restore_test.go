// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package program_test

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	authorization "k8s.io/api/authorization/v1"
	core "k8s.io/api/core/v1"
	rbac "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"github.com/wherry-dev/wherry/test/apiserver/server"
)

func TestRestoreBringsBackTheState(t *testing.T) {
	s := serve(t)
	c := clientFor(t, s.Config())
	maps := c.CoreV1().ConfigMaps("default")
	create := func(name string) *core.ConfigMap {
		m, err := maps.Create(t.Context(), configMap(name), metav1.CreateOptions{})
		must(t, err)
		return m
	}
	kept, changed, deleted := create("kept"), create("changed"), create("deleted")
	w := define(t, s.Config(), "old.example.com")
	instance, err := w.Namespace("default").Create(t.Context(), widget("old.example.com", "w"), metav1.CreateOptions{})
	must(t, err)
	role := &rbac.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "reader"}, Rules: []rbac.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get"}}}}
	binding := &rbac.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "reader"}, RoleRef: rbac.RoleRef{APIGroup: rbac.GroupName, Kind: "ClusterRole", Name: "reader"}, Subjects: []rbac.Subject{{Kind: "User", Name: "ann", APIGroup: rbac.GroupName}}}
	_, err = c.RbacV1().ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{})
	must(t, err)

	var taken struct {
		Name     string
		Revision int64
	}
	must(t, post(t.Context(), c, "/snapshots", nil, &taken))
	watching, err := maps.Watch(t.Context(), metav1.ListOptions{ResourceVersion: strconv.FormatInt(taken.Revision, 10)})
	must(t, err)
	defer watching.Stop()

	create("made")
	changed.Data["k"] = "new"
	_, err = maps.Update(t.Context(), changed, metav1.UpdateOptions{})
	must(t, err, maps.Delete(t.Context(), "deleted", metav1.DeleteOptions{}))
	must(t, w.Namespace("default").Delete(t.Context(), "w", metav1.DeleteOptions{}))
	define(t, s.Config(), "new.example.com")
	newNamespace(t, c, "new")
	_, err = c.RbacV1().ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{})
	must(t, err)

	var done server.Restored
	must(t, post(t.Context(), c, "/snapshots/"+taken.Name+"/restore", nil, &done))
	if done.Revision <= taken.Revision || done.Deleted == 0 || done.Written == 0 {
		t.Errorf("restored %+v since revision %d", done, taken.Revision)
	}
	// Right after it returned, without waiting:
	if now, err := maps.Get(t.Context(), "changed", metav1.GetOptions{}); err != nil || now.Data["k"] != "v" || now.UID != changed.UID {
		t.Errorf("the changed map is %v, %v; want its old content and UID", now, err)
	}
	if now, err := maps.Get(t.Context(), "deleted", metav1.GetOptions{}); err != nil || now.UID != deleted.UID {
		t.Errorf("the deleted map is %v, %v; want it back with its UID", now, err)
	}
	if now, err := maps.Get(t.Context(), "kept", metav1.GetOptions{}); err != nil || now.ResourceVersion != kept.ResourceVersion {
		t.Errorf("the map nobody touched is %v, %v; want it untouched", now, err)
	}
	for name, err := range map[string]error{
		"made":      second(maps.Get(t.Context(), "made", metav1.GetOptions{})),
		"new":       second(c.CoreV1().Namespaces().Get(t.Context(), "new", metav1.GetOptions{})),
		"its group": second(c.Discovery().ServerResourcesForGroupVersion("new.example.com/v1")),
	} {
		if !apierrors.IsNotFound(err) {
			t.Errorf("%s, made since, is still there (%v)", name, err)
		}
	}
	if now, err := w.Namespace("default").Get(t.Context(), "w", metav1.GetOptions{}); err != nil || now.GetUID() != instance.GetUID() {
		t.Errorf("the deleted widget is %v, %v; want it back with its UID", now, err)
	}
	review, err := c.AuthorizationV1().SubjectAccessReviews().Create(t.Context(), &authorization.SubjectAccessReview{Spec: authorization.SubjectAccessReviewSpec{
		User: "ann", ResourceAttributes: &authorization.ResourceAttributes{Verb: "get", Resource: "configmaps", Namespace: "default"},
	}}, metav1.CreateOptions{})
	if err != nil || review.Status.Allowed {
		t.Errorf("what was granted since still holds: %+v, %v", review.Status, err)
	}
	checkEvents(t, watching, []string{"ADDED made", "MODIFIED changed", "DELETED deleted", "DELETED made", "MODIFIED changed", "ADDED deleted"})
	testControllersGoOn(t, c)
}

func second[T any](_ T, err error) error { return err }

// checkEvents expects these events, in any order among those one restore made, and an unbroken watch.
func checkEvents(t *testing.T, w watch.Interface, want []string) {
	t.Helper()
	var got []string
	last := int64(0)
	for range want {
		select {
		case e, ok := <-w.ResultChan():
			if !ok {
				t.Fatalf("the watch broke after %v", got)
			}
			m, ok := e.Object.(*core.ConfigMap)
			if !ok {
				t.Fatalf("the watch says %v %v", e.Type, e.Object)
			}
			revision, err := strconv.ParseInt(m.ResourceVersion, 10, 64)
			if err != nil || revision <= last {
				t.Errorf("%s at resourceVersion %s after %d", m.Name, m.ResourceVersion, last)
			}
			last = revision
			got = append(got, string(e.Type)+" "+m.Name)
		case <-time.After(busy * 5 * time.Second):
			t.Fatalf("the watch saw %v; want %v", got, want)
		}
	}
	slices.Sort(got[3:])
	slices.Sort(want[3:])
	if !slices.Equal(got, want) {
		t.Errorf("the watch saw %v; want %v", got, want)
	}
}

// testControllersGoOn sees to it that the controllers work after a restore.
func testControllersGoOn(t *testing.T, c *kubernetes.Clientset) {
	t.Helper()
	newNamespace(t, c, "after")
	eventually(t, 5*time.Second, func() string {
		return text(second(c.CoreV1().ServiceAccounts("after").Get(t.Context(), "default", metav1.GetOptions{})))
	})
	must(t, c.CoreV1().Namespaces().Delete(t.Context(), "after", metav1.DeleteOptions{}))
	eventually(t, 5*time.Second, func() string {
		if apierrors.IsNotFound(second(c.CoreV1().Namespaces().Get(t.Context(), "after", metav1.GetOptions{}))) {
			return ""
		}
		return "the namespace does not go away"
	})
}

func TestTwentyRestoresInARow(t *testing.T) {
	s := serve(t)
	c := clientFor(t, s.Config())
	maps := c.CoreV1().ConfigMaps("default")
	for i := range 1000 {
		_, err := maps.Create(t.Context(), configMap(fmt.Sprintf("m%d", i)), metav1.CreateOptions{})
		must(t, err)
	}
	taken := s.Snapshot()
	var took []time.Duration
	for i := range 20 {
		_, err := maps.Create(t.Context(), configMap(fmt.Sprintf("new%d", i)), metav1.CreateOptions{})
		must(t, err, maps.Delete(t.Context(), fmt.Sprintf("m%d", i), metav1.DeleteOptions{}))
		begun := time.Now()
		done, err := s.Restore(t.Context(), taken)
		must(t, err)
		took = append(took, time.Since(begun))
		if done.Deleted < 1 || done.Written < 1 {
			t.Errorf("restore %d did %+v", i, done)
		}
		list, err := maps.List(t.Context(), metav1.ListOptions{})
		must(t, err)
		if len(list.Items) != 1000 {
			t.Errorf("after restore %d there are %d maps; want 1000", i, len(list.Items))
		}
	}
	slices.Sort(took)
	t.Logf("20 restores at 1,000 objects: median %v, slowest %v", took[10].Round(time.Microsecond), took[19].Round(time.Microsecond))
}

func TestSnapshotsByName(t *testing.T) {
	c := clientFor(t, serve(t).Config())
	var none any
	for _, path := range []string{"/snapshots/9/restore", "/snapshots/x/restore"} {
		if err := post(t.Context(), c, path, nil, &none); !apierrors.IsNotFound(err) {
			t.Errorf("%s: %v; want NotFound", path, err)
		}
	}
	var taken struct{ Name string }
	must(t, post(t.Context(), c, "/snapshots", nil, &taken))
	must(t, c.RESTClient().Delete().AbsPath(server.AdminPath+"/snapshots/"+taken.Name).Do(t.Context()).Error())
	if err := post(t.Context(), c, "/snapshots/"+taken.Name+"/restore", nil, &none); !apierrors.IsNotFound(err) {
		t.Errorf("a forgotten snapshot: %v; want NotFound", err)
	}
}
