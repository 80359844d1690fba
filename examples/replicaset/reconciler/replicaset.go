// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	ctrl "github.com/wherry-dev/wherry"
	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/cluster/recorder"
	"github.com/wherry-dev/wherry/controller/builder"
	"github.com/wherry-dev/wherry/controller/handler"
	"github.com/wherry-dev/wherry/controller/reconcile"
)

// ReplicaSet reconciles ReplicaSets.
type ReplicaSet struct {
	// Client reads from the cache, with read-your-writes consistency, and
	// writes to the API server.
	Client client.Client
	// Live reads from the API server. It is asked once before orphans are
	// adopted: whether the ReplicaSet is still the same and still alive.
	Live client.Reader
	// Scheme knows ReplicaSet, so that pods can name it as their owner.
	Scheme *runtime.Scheme
	// Recorder records events. SetupWithManager takes the manager's if it is
	// nil; without a recorder no events are recorded.
	Recorder recorder.EventRecorder
}

// RequireReadYourWrites refuses options of a manager whose client would not
// see its own writes: the reconciler would create pods twice.
func RequireReadYourWrites(options ctrl.Options) error {
	if c := options.Client.Cache; c != nil && c.EnableReadYourWritesConsistency != nil && !*c.EnableReadYourWritesConsistency {
		return errors.New("the ReplicaSet reconciler keeps no expectations and would create pods twice without read-your-writes consistency: leave CacheOptions.EnableReadYourWritesConsistency on")
	}
	return nil
}

// SetupWithManager registers the reconciler. It runs for each ReplicaSet that
// changes, for the owner of each pod that does, and for every ReplicaSet that
// could adopt a pod that has no owner.
func (r *ReplicaSet) SetupWithManager(mgr ctrl.Manager) error {
	if r.Recorder == nil {
		r.Recorder = mgr.GetEventRecorder("replicaset-controller")
	}
	if err := mgr.GetFieldIndexer().IndexField(context.Background(), &corev1.Pod{}, ByController, Controller); err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).
		For(&appsv1.ReplicaSet{}).
		Owns(&corev1.Pod{}).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(r.adopters), builder.WithPredicates(orphaned)).
		Complete(r)
}

// Reconcile makes one ReplicaSet's pods and status match its spec.
func (r *ReplicaSet) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var rs appsv1.ReplicaSet
	if err := r.Client.Get(ctx, req.NamespacedName, &rs); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err) // gone: its pods go with it by owner reference
	}
	selector, err := metav1.LabelSelectorAsSelector(rs.Spec.Selector)
	if err != nil {
		return ctrl.Result{}, reconcile.TerminalError(fmt.Errorf("selector of ReplicaSet %s: %w", req, err))
	}
	candidates, err := r.podsOf(ctx, rs.Namespace, string(rs.UID), noController)
	if err != nil {
		return ctrl.Result{}, err
	}
	running, err := r.claim(ctx, &rs, selector, candidates)
	if err != nil {
		return ctrl.Result{}, err
	}
	var failure error
	if rs.DeletionTimestamp == nil {
		running, failure = r.scale(ctx, &rs, running)
	}
	status, next := observe(&rs, running, terminating(&rs, selector, candidates), failure, time.Now())
	if err := r.updateStatus(ctx, &rs, status); err != nil {
		return ctrl.Result{}, errors.Join(failure, err)
	}
	if failure != nil {
		return ctrl.Result{}, failure
	}
	return ctrl.Result{RequeueAfter: next}, nil
}

// ByController is the index of pods by the UID of their controller.
const ByController = "controller"

// noController is where the index has the pods without one.
const noController = "none"

// Controller is the value of a pod in the index ByController.
func Controller(obj client.Object) []string {
	if owner := metav1.GetControllerOfNoCopy(obj); owner != nil {
		return []string{string(owner.UID)}
	}
	return []string{noController}
}

// podsOf lists the pods that the index has under the given values. They are
// the cache's own: whoever changes one copies it first.
func (r *ReplicaSet) podsOf(ctx context.Context, namespace string, controllers ...string) ([]corev1.Pod, error) {
	var all []corev1.Pod
	for _, c := range controllers {
		var list corev1.PodList
		if err := r.Client.List(ctx, &list, client.InNamespace(namespace), client.MatchingFields{ByController: c}, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("list pods with controller %s in namespace %s: %w", c, namespace, err)
		}
		if len(all) == 0 {
			all = list.Items // pods are large: those of the first list are not copied
			continue
		}
		all = append(all, list.Items...)
	}
	return all, nil
}

// want is how many pods the spec asks for: one when it does not say.
func want(rs *appsv1.ReplicaSet) int { return int(ptr.Deref(rs.Spec.Replicas, 1)) }

// matches tells whether a pod has the labels that the selector asks for. An
// empty selector matches nothing here: the API server does not accept it.
func matches(selector labels.Selector, pod *corev1.Pod) bool {
	return !selector.Empty() && selector.Matches(labels.Set(pod.Labels))
}

// event records what happened to rs, if there is a recorder. With the pod it
// happened with, or nil, events about different pods stay apart; else they
// would be counted as one.
func (r *ReplicaSet) event(rs *appsv1.ReplicaSet, pod *corev1.Pod, eventType, reason, action, note string, args ...any) {
	if r.Recorder == nil {
		return
	}
	var related runtime.Object
	if pod != nil {
		related = pod
	}
	r.Recorder.Eventf(rs, related, eventType, reason, action, note, args...)
}
