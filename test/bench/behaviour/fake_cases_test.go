// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package behaviour

import (
	"context"
	"errors"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// faked is a case of the fake client, which needs no server.
func faked(name, why string, run func(ctx context.Context, t *testing.T, o *outcome)) testCase {
	return testCase{"fake client", name, why, func(t *testing.T, o *outcome) { run(t.Context(), t, o) }}
}

// newFake begins a fake client with a scheme of its own: upstream's registers
// the unstructured kinds it meets in the scheme it was given, without any lock
// that another client on the same scheme would know of. On client-go's, which
// is one for all cases, that ended the process of the cases beside it.
func newFake() *fake.ClientBuilder {
	s := runtime.NewScheme()
	utilruntime.Must(scheme.AddToScheme(s))
	return fake.NewClientBuilder().WithScheme(s)
}

func fakeCases() []testCase {
	key := types.NamespacedName{Namespace: "ns", Name: "a"}
	return []testCase{
		faked("preloaded objects", "", func(ctx context.Context, t *testing.T, o *outcome) {
			c := newFake().WithObjects(newConfigMap("ns", "a", nil)).Build()
			var cm corev1.ConfigMap
			o.note("get", c.Get(ctx, key, &cm))
			o.note("version", cm.ResourceVersion)
			o.note("absent", c.Get(ctx, types.NamespacedName{Namespace: "ns", Name: "b"}, &cm))
		}),
		faked("versions", "", func(ctx context.Context, t *testing.T, o *outcome) {
			c := newFake().Build()
			cm := newConfigMap("ns", "a", nil)
			o.note("create", c.Create(ctx, cm))
			o.note("version", cm.ResourceVersion)
			o.note("again", c.Create(ctx, newConfigMap("ns", "a", nil)))
			old := cm.DeepCopy()
			cm.Data["new"] = "1"
			o.note("update", c.Update(ctx, cm))
			o.note("version", cm.ResourceVersion)
			o.note("update of the old one", c.Update(ctx, old))
			o.note("with a version", c.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "b", ResourceVersion: "7"}}))
		}),
		faked("an update that changes nothing", "", func(ctx context.Context, t *testing.T, o *outcome) {
			c := newFake().Build()
			cm := newConfigMap("ns", "a", nil)
			must(t, c.Create(ctx, cm))
			before := cm.ResourceVersion
			o.note("update", c.Update(ctx, cm))
			o.note("version went on", cm.ResourceVersion != before)
		}),
		faked("a kind with a status", "", func(ctx context.Context, t *testing.T, o *outcome) {
			p := pod("ns", "a")
			c := newFake().WithObjects(p).WithStatusSubresource(p).Build()
			must(t, c.Get(ctx, key, p))
			p.Status.Reason, p.Labels = "x", map[string]string{"l": "1"}
			o.note("update", c.Update(ctx, p))
			must(t, c.Get(ctx, key, p))
			o.note("reason", p.Status.Reason)
			o.note("labels", p.Labels)
			p.Status.Reason, p.Labels = "x", nil
			o.note("status", c.Status().Update(ctx, p))
			must(t, c.Get(ctx, key, p))
			o.note("reason", p.Status.Reason)
			o.note("labels", p.Labels)
		}),
		faked("a delete with a finalizer", "", func(ctx context.Context, t *testing.T, o *outcome) {
			cm := newConfigMap("ns", "a", nil)
			cm.Finalizers = []string{"example.com/f"}
			c := newFake().WithObjects(cm).Build()
			o.note("delete", c.Delete(ctx, cm))
			o.note("get", c.Get(ctx, key, cm))
			o.note("terminates", cm.DeletionTimestamp != nil)
			cm.Finalizers = nil
			o.note("update", c.Update(ctx, cm))
			o.note("get", c.Get(ctx, key, cm))
		}),
		faked("a second delete with a finalizer", "the API server neither stamps a new time nor raises the version", func(ctx context.Context, t *testing.T, o *outcome) {
			cm := newConfigMap("ns", "a", nil)
			cm.Finalizers = []string{"example.com/f"}
			c := newFake().WithObjects(cm).Build()
			must(t, c.Delete(ctx, cm))
			must(t, c.Get(ctx, key, cm))
			before := cm.ResourceVersion
			o.note("delete", c.Delete(ctx, cm))
			must(t, c.Get(ctx, key, cm))
			o.note("version went on", cm.ResourceVersion != before)
		}),
		faked("a delete under a wrong UID", "the API server refuses it", func(ctx context.Context, t *testing.T, o *outcome) {
			cm := newConfigMap("ns", "a", nil)
			cm.UID = "mine"
			c := newFake().WithObjects(cm).Build()
			o.note("delete", c.Delete(ctx, cm, client.Preconditions{UID: new(types.UID("other"))}))
			o.note("get", c.Get(ctx, key, cm))
		}),
		faked("list by a field without an index", "", func(ctx context.Context, t *testing.T, o *outcome) {
			c := newFake().WithObjects(newConfigMap("ns", "a", nil)).Build()
			o.note("refused", c.List(ctx, &corev1.ConfigMapList{}, client.MatchingFields{"data.key": "value"}) != nil)
		}),
		faked("list by an index", "", func(ctx context.Context, t *testing.T, o *outcome) {
			c := newFake().WithObjects(newConfigMap("ns", "a", nil)).
				WithIndex(&corev1.ConfigMap{}, "data.key", func(obj client.Object) []string { return []string{obj.(*corev1.ConfigMap).Data["key"]} }).Build()
			for _, value := range []string{"value", "other"} {
				var l corev1.ConfigMapList
				o.note("list", c.List(ctx, &l, client.MatchingFields{"data.key": value}))
				o.note("items", named(l.Items))
			}
		}),
		faked("list by labels and namespace", "", func(ctx context.Context, t *testing.T, o *outcome) {
			c := newFake().WithObjects(newConfigMap("ns", "a", map[string]string{"x": "1"}), newConfigMap("ns", "b", nil), newConfigMap("other", "c", map[string]string{"x": "1"})).Build()
			var l corev1.ConfigMapList
			o.note("list", c.List(ctx, &l, client.InNamespace("ns"), client.MatchingLabels{"x": "1"}))
			o.note("items", named(l.Items))
		}),
		faked("list with a limit", "the API server answers so many, and a token", func(ctx context.Context, t *testing.T, o *outcome) {
			c := newFake().WithObjects(newConfigMap("ns", "a", nil), newConfigMap("ns", "b", nil)).Build()
			var l corev1.ConfigMapList
			o.note("list", c.List(ctx, &l, client.Limit(1)))
			o.note("items", named(l.Items))
			o.note("goes on", l.Continue != "")
		}),
		faked("delete a collection without a namespace", "no API server deletes a collection over all namespaces", func(ctx context.Context, t *testing.T, o *outcome) {
			c := newFake().WithObjects(newConfigMap("ns", "a", nil)).Build()
			o.note("refused", c.DeleteAllOf(ctx, &corev1.ConfigMap{}) != nil)
			o.note("get", c.Get(ctx, key, &corev1.ConfigMap{}))
		}),
		faked("a namespace given for a cluster-scoped kind", "the API server has no namespace for such a kind, so the object is found without", func(ctx context.Context, t *testing.T, o *outcome) {
			c := newFake().Build()
			o.note("create", c.Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}}))
			o.note("get", c.Get(ctx, types.NamespacedName{Name: "a"}, &corev1.Node{}))
		}),
		faked("patches", "", func(ctx context.Context, t *testing.T, o *outcome) {
			cm := newConfigMap("ns", "a", nil)
			c := newFake().WithObjects(cm).Build()
			o.note("merge", c.Patch(ctx, cm, client.RawPatch(types.MergePatchType, []byte(`{"data":{"m":"1"}}`))))
			o.note("JSON", c.Patch(ctx, cm, client.RawPatch(types.JSONPatchType, []byte(`[{"op":"remove","path":"/data/key"}]`))))
			o.note("data", cm.Data)
			rs := replicaSet("ns", "a")
			must(t, c.Create(ctx, rs))
			o.note("strategic", c.Patch(ctx, rs, client.RawPatch(types.StrategicMergePatchType, []byte(`{"spec":{"template":{"spec":{"containers":[{"name":"d","image":"i"}]}}}}`))))
			o.note("containers", len(rs.Spec.Template.Spec.Containers))
		}),
		faked("apply by two owners", "", func(ctx context.Context, t *testing.T, o *outcome) {
			c := newFake().Build()
			o.note("first", c.Apply(ctx, applied("ns", "1"), client.FieldOwner("one")))
			o.note("second", c.Apply(ctx, applied("ns", "2"), client.FieldOwner("two")))
			o.note("by force", c.Apply(ctx, applied("ns", "2"), client.FieldOwner("two"), client.ForceOwnership))
			var cm corev1.ConfigMap
			must(t, c.Get(ctx, key, &cm))
			o.note("data", cm.Data)
		}),
		faked("intercepted", "", func(ctx context.Context, t *testing.T, o *outcome) {
			broken := errors.New("broken")
			c := newFake().WithInterceptorFuncs(interceptor.Funcs{
				Update: func(context.Context, client.WithWatch, client.Object, ...client.UpdateOption) error { return broken },
			}).Build()
			o.note("create", c.Create(ctx, newConfigMap("ns", "a", nil)))
			o.note("update is the interceptor's", errors.Is(c.Update(ctx, newConfigMap("ns", "a", nil)), broken))
		}),
		faked("watch", "", func(ctx context.Context, t *testing.T, o *outcome) {
			c := newFake().Build()
			w, err := c.Watch(ctx, &corev1.ConfigMapList{})
			must(t, err)
			defer w.Stop()
			cm := newConfigMap("ns", "a", nil)
			must(t, c.Create(ctx, cm))
			must(t, c.Delete(ctx, cm))
			for range 2 {
				e := <-w.ResultChan()
				o.note(string(e.Type), e.Object.(client.Object).GetName())
			}
		}),
		faked("watch by labels", "a watch shows what it selects", func(ctx context.Context, t *testing.T, o *outcome) {
			c := newFake().Build()
			w, err := c.Watch(ctx, &corev1.ConfigMapList{}, client.MatchingLabels{"x": "1"})
			must(t, err)
			defer w.Stop()
			must(t, c.Create(ctx, newConfigMap("ns", "a", nil)))
			must(t, c.Create(ctx, newConfigMap("ns", "b", map[string]string{"x": "1"})))
			e := <-w.ResultChan()
			o.note("first event", e.Object.(client.Object).GetName())
		}),
		faked("dry runs", "", func(ctx context.Context, t *testing.T, o *outcome) {
			cm := newConfigMap("ns", "a", nil)
			c := newFake().WithObjects(cm).Build()
			o.note("create", c.Create(ctx, newConfigMap("ns", "b", nil), client.DryRunAll))
			o.note("delete", c.Delete(ctx, cm, client.DryRunAll))
			var l corev1.ConfigMapList
			must(t, c.List(ctx, &l))
			o.note("items", named(l.Items))
		}),
		faked("a kind that the scheme does not know", "", func(ctx context.Context, t *testing.T, o *outcome) {
			c := newFake().Build()
			o.note("get", c.Get(ctx, key, &foreign{}))
			o.note("an unstructured one", c.Create(ctx, widget("ns", "w")))
			o.note("a known one", c.Create(ctx, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "d"}}))
		}),
		faked("the caller's scheme after an unstructured write", "a scheme has no lock: who adds to one that others read ends their process", func(ctx context.Context, t *testing.T, o *outcome) {
			c := newFake().Build()
			must(t, c.Create(ctx, widget("ns", "w")))
			o.note("got kinds that the caller did not add", c.Scheme().Recognizes(widget("ns", "w").GroupVersionKind()))
		}),
	}
}
