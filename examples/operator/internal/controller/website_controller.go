// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

// Package controller brings the cluster in line with what the objects ask for.
package controller

import (
	"context"
	"errors"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	ctrl "github.com/wherry-dev/wherry"
	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/cluster/recorder"
	"github.com/wherry-dev/wherry/controller/builder"
	"github.com/wherry-dev/wherry/controller/controllerutil"
	"github.com/wherry-dev/wherry/controller/predicate"

	webv1alpha1 "github.com/wherry-dev/wherry/examples/operator/api/v1alpha1"
)

// The condition types that kubectl wait, Argo CD and Flux read. Ready is always there; of the others one, while it is false.
const (
	ready       = "Ready"
	reconciling = "Reconciling" // under way, nothing to do but wait
	stalled     = "Stalled"     // will not get on before somebody does something
)

// WebsiteReconciler keeps a Deployment for each Website.
type WebsiteReconciler struct {
	client.Client
	Scheme   *runtime.Scheme
	Recorder recorder.EventRecorder
}

// +kubebuilder:rbac:groups=web.example.com,resources=websites,verbs=get;list;watch
// +kubebuilder:rbac:groups=web.example.com,resources=websites/status,verbs=patch
// +kubebuilder:rbac:groups=web.example.com,resources=websites/finalizers,verbs=update
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;list;watch;create;update

// SetupWithManager has Reconcile called when the spec of a Website changes, or anything of its Deployment.
func (r *WebsiteReconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		For(&webv1alpha1.Website{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Owns(&appsv1.Deployment{}).
		Complete(r)
}

// Reconcile compares what is with what is asked for and writes the difference. It may be called at any time and any number
// of times. Reads come from a cache that holds this client's own writes already.
func (r *WebsiteReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var site webv1alpha1.Website
	if err := r.Get(ctx, req.NamespacedName, &site); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err) // deleted: the garbage collector takes the Deployment
	}
	if !site.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: site.Namespace, Name: site.Name}}
	_, err := ctrl.CreateOrUpdate(ctx, r.Client, deployment, func() error {
		shape(deployment, &site)
		return ctrl.SetControllerReference(&site, deployment, r.Scheme)
	})
	if taken := new(controllerutil.AlreadyOwnedError); errors.As(err, &taken) || apierrors.IsInvalid(err) {
		return ctrl.Result{}, errors.Join(err, r.report(ctx, &site, stalled, "Refused", err.Error()))
	}
	if err != nil {
		return ctrl.Result{}, err // Reconcile is called again, after a pause that grows
	}
	state, reason, message := judge(deployment)
	return ctrl.Result{}, r.report(ctx, &site, state, reason, message)
}

// shape sets what we care for in the Deployment and leaves alone what others, such as the server's defaults, set there.
func shape(deployment *appsv1.Deployment, site *webv1alpha1.Website) {
	labels := map[string]string{"app.kubernetes.io/name": "website", "app.kubernetes.io/instance": site.Name}
	spec, template := &deployment.Spec, &deployment.Spec.Template
	spec.Replicas = site.Spec.Replicas
	spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	template.Labels = labels
	if len(template.Spec.Containers) == 0 {
		template.Spec.Containers = make([]corev1.Container, 1)
	}
	web := &template.Spec.Containers[0]
	web.Name, web.Image = "web", "docker.io/library/busybox:1.37"
	web.Env = []corev1.EnvVar{{Name: "HTML", Value: strings.ReplaceAll(site.Spec.HTML, "$", "$$")}} // $(NAME) would be expanded
	web.Command = []string{"sh", "-c", `printf %s "$HTML" >/tmp/index.html && exec httpd -f -p 8080 -h /tmp`}
}

// judge tells how far the Deployment is.
func judge(deployment *appsv1.Deployment) (state, reason, message string) {
	want, status := *deployment.Spec.Replicas, deployment.Status
	for _, c := range status.Conditions {
		if c.Type == appsv1.DeploymentProgressing && c.Status == corev1.ConditionFalse {
			return stalled, c.Reason, c.Message
		}
	}
	message = fmt.Sprintf("%d of %d pods serve the page", status.AvailableReplicas, want)
	if status.ObservedGeneration < deployment.Generation || min(status.UpdatedReplicas, status.AvailableReplicas) < want {
		return reconciling, "RollingOut", message
	}
	return ready, "Available", message
}

// report writes the status if it changed, and an event if the reason did.
func (r *WebsiteReconciler) report(ctx context.Context, site *webv1alpha1.Website, state, reason, message string) error {
	before := site.DeepCopy()
	site.Status.ObservedGeneration = site.Generation
	for _, kind := range []string{ready, reconciling, stalled} {
		condition := metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: reason, Message: message, ObservedGeneration: site.Generation}
		if kind != state && kind != ready {
			meta.RemoveStatusCondition(&site.Status.Conditions, kind)
			continue
		}
		if kind != state {
			condition.Status = metav1.ConditionFalse
		}
		meta.SetStatusCondition(&site.Status.Conditions, condition)
	}
	if equality.Semantic.DeepEqual(before.Status, site.Status) {
		return nil
	}
	if err := r.Status().Patch(ctx, site, client.MergeFrom(before)); err != nil {
		return err
	}
	if was := meta.FindStatusCondition(before.Status.Conditions, ready); was != nil && was.Reason == reason {
		return nil
	}
	severity := corev1.EventTypeNormal
	if state == stalled {
		severity = corev1.EventTypeWarning
	}
	r.Recorder.Eventf(site, nil, severity, reason, "Reconcile", "%s", message)
	return nil
}
