// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

// Package replicaset_test runs the ReplicaSet example from end to end: a real
// API server, a manager, the example's reconciler.
package replicaset_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	ctrl "github.com/wherry-dev/wherry"
	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/examples/replicaset/reconciler"
	"github.com/wherry-dev/wherry/manager/config"
	"github.com/wherry-dev/wherry/manager/metrics/server"
	"github.com/wherry-dev/wherry/test/envtest"
)

// startLimit is how long a server may take to be ready: it shares the machine with whatever else is being built.
const startLimit = 2 * time.Minute

const (
	// settle is how long the cluster may take to reach a state.
	settle = time.Minute
	// look is how often a test asks whether it has.
	look = 20 * time.Millisecond
	// stay is how long a reached state is watched for going away again.
	stay = 300 * time.Millisecond
)

func scheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{appsv1.AddToScheme, corev1.AddToScheme, coordinationv1.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// world is a server with the example running against it.
type world struct {
	*testing.T
	env  *envtest.Environment
	live client.Client
}

// newWorld starts a server, and a manager with the example's reconciler, and
// stops both when the test ends.
func newWorld(t *testing.T) *world {
	w := &world{T: t, env: &envtest.Environment{ControlPlaneStartTimeout: startLimit, ControlPlane: envtest.ControlPlane{
		APIServer: &envtest.APIServer{},
		Etcd:      &envtest.Etcd{DataDir: t.TempDir()},
	}}}
	cfg, err := w.env.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.env.Stop(); err != nil {
			t.Error(err)
		}
	})
	if w.live, err = client.New(cfg, client.Options{Scheme: scheme(t)}); err != nil {
		t.Fatal(err)
	}
	manage(t, cfg)
	return w
}

// workers is how many sets either controller looks at at a time.
const workers = 5

// manage runs a manager with the example's reconciler until the test ends.
func manage(t *testing.T, cfg *rest.Config) {
	t.Helper()
	s := scheme(t)
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme: s, Metrics: server.Options{BindAddress: "0"}, Controller: config.Controller{MaxConcurrentReconciles: workers},
	})
	if err != nil {
		t.Fatal(err)
	}
	rs := &reconciler.ReplicaSet{Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Scheme: s}
	if err := rs.SetupWithManager(mgr); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("manager: %v", err)
			}
		case <-time.After(settle):
			t.Errorf("the manager did not stop within %v", settle)
		}
	})
}

// restart stops the server and starts it again on the same folder and port.
func (w *world) restart() {
	w.Helper()
	host, err := url.Parse(w.env.Config.Host)
	if err != nil {
		w.Fatal(err)
	}
	port, err := strconv.Atoi(host.Port())
	if err != nil {
		w.Fatal(err)
	}
	w.env.ControlPlane.APIServer.SecurePort = port
	if err := w.env.Stop(); err != nil {
		w.Fatal(err)
	}
	if _, err := w.env.Start(); err != nil {
		w.Fatal(err)
	}
}

// create creates the ReplicaSet name with n replicas.
func (w *world) create(name string, n int32) *appsv1.ReplicaSet {
	w.Helper()
	labels := map[string]string{"app": name}
	rs := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: ptr.To(n),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "example.com/c:1"}}},
			},
		},
	}
	if err := w.live.Create(w.Context(), rs); err != nil {
		w.Fatal(err)
	}
	return rs
}

// scale sets the number of replicas, as kubectl scale does.
func (w *world) scale(rs *appsv1.ReplicaSet, n int32) {
	w.Helper()
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, n))
	if err := w.live.Patch(w.Context(), rs, patch); err != nil {
		w.Fatal(err)
	}
}

// pods are the UIDs of the pods that rs controls, with their versions.
func (w *world) pods(rs *appsv1.ReplicaSet) map[types.UID]corev1.Pod {
	w.Helper()
	var list corev1.PodList
	if err := w.live.List(w.Context(), &list, client.InNamespace(rs.Namespace), client.MatchingLabels(rs.Spec.Selector.MatchLabels)); err != nil {
		w.Fatal(err)
	}
	pods := map[types.UID]corev1.Pod{}
	for _, pod := range list.Items {
		if metav1.IsControlledBy(&pod, rs) && pod.DeletionTimestamp == nil {
			pods[pod.UID] = pod
		}
	}
	return pods
}

// expect waits until rs has n pods and says so in its status, and makes sure
// that it stays so.
func (w *world) expect(rs *appsv1.ReplicaSet, n int) {
	w.Helper()
	deadline := time.Now().Add(settle)
	for err := w.is(rs, n); err != nil; err = w.is(rs, n) {
		if time.Now().After(deadline) {
			w.Fatalf("after %v: %v", settle, err)
		}
		time.Sleep(look) // another process: nothing to wait on
	}
	for until := time.Now().Add(stay); time.Now().Before(until); time.Sleep(look) {
		if err := w.is(rs, n); err != nil {
			w.Fatalf("reached, then lost: %v", err)
		}
	}
}

func (w *world) is(rs *appsv1.ReplicaSet, n int) error {
	var now appsv1.ReplicaSet
	if err := w.live.Get(w.Context(), client.ObjectKeyFromObject(rs), &now); err != nil {
		return err
	}
	var errs []error
	if got := len(w.pods(rs)); got != n {
		errs = append(errs, fmt.Errorf("%d pods, want %d", got, n))
	}
	if got := now.Status.Replicas; int(got) != n {
		errs = append(errs, fmt.Errorf("status.replicas %d, want %d", got, n))
	}
	if now.Status.ObservedGeneration != now.Generation {
		errs = append(errs, fmt.Errorf("status.observedGeneration %d, want %d", now.Status.ObservedGeneration, now.Generation))
	}
	return errors.Join(errs...)
}

// TestServerRestart restarts the server under a running manager: nothing is
// lost, no version goes back, and the manager goes on by itself.
func TestServerRestart(t *testing.T) {
	w := newWorld(t)
	rs := w.create("web", 3)
	w.expect(rs, 3)
	before := w.pods(rs)

	w.restart()
	after := w.pods(rs)
	if len(after) != len(before) {
		t.Errorf("%d pods after the restart, want the %d from before it", len(after), len(before))
	}
	for uid, pod := range before {
		if after[uid].ResourceVersion != pod.ResourceVersion {
			t.Errorf("pod %s: version %q after the restart, %q before it", pod.Name, after[uid].ResourceVersion, pod.ResourceVersion)
		}
	}
	w.scale(rs, 6)
	w.expect(rs, 6)
	newest := slices.MaxFunc(slices.Collect(maps.Values(before)), func(a, b corev1.Pod) int { return version(t, a) - version(t, b) })
	for uid, pod := range w.pods(rs) {
		if _, old := before[uid]; !old && version(t, pod) <= version(t, newest) {
			t.Errorf("pod %s was made after the restart at version %s, but one from before it has %s", pod.Name, pod.ResourceVersion, newest.ResourceVersion)
		}
	}
}

func version(t *testing.T, pod corev1.Pod) int {
	t.Helper()
	v, err := strconv.Atoi(pod.ResourceVersion)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestRefuseRival(t *testing.T) {
	w := newWorld(t)
	if err := reconciler.RefuseRival(t.Context(), w.live); err != nil {
		t.Fatalf("refused on a cluster without a rival: %v", err)
	}
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "kube-controller-manager"},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity:       ptr.To("node1_42"),
			LeaseDurationSeconds: ptr.To[int32](15),
			RenewTime:            ptr.To(metav1.NewMicroTime(time.Now())),
		},
	}
	if err := w.live.Create(t.Context(), lease); err != nil {
		t.Fatal(err)
	}
	refused(t, w.live, "node1_42", "--force")
	lease.Spec.RenewTime = ptr.To(metav1.NewMicroTime(time.Now().Add(-time.Minute)))
	if err := w.live.Update(t.Context(), lease); err != nil {
		t.Fatal(err)
	}
	if err := reconciler.RefuseRival(t.Context(), w.live); err != nil {
		t.Fatalf("refused for a lease that ran out: %v", err)
	}
	rs := w.create("web", 1)
	w.expect(rs, 1)
	status := rs.DeepCopy()
	status.Status.Replicas = 1
	status.Status.FullyLabeledReplicas = 1
	if err := w.live.Status().Patch(t.Context(), status, client.RawPatch(types.MergePatchType, []byte(`{"status":{"availableReplicas":0,"replicas":1,"conditions":[{"type":"X","status":"True"}]}}`)), client.FieldOwner("kube-controller-manager")); err != nil {
		t.Fatal(err)
	}
	refused(t, w.live, "default/web", "--force")
}

func refused(t *testing.T, live client.Reader, want ...string) {
	t.Helper()
	err := reconciler.RefuseRival(t.Context(), live)
	if err == nil {
		t.Fatal("not refused")
	}
	for _, s := range want {
		if !strings.Contains(err.Error(), s) {
			t.Errorf("%q does not say %q", err, s)
		}
	}
}
