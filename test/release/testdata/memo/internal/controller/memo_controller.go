package controller

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	notesv1 "example.org/memo/api/v1"
)

// MemoReconciler writes memos down.
type MemoReconciler struct {
	client.Client
	Scheme *runtime.Scheme
}

// +kubebuilder:rbac:groups=notes.example.org,resources=memos,verbs=get;list;watch;create;update;patch;delete
// +kubebuilder:rbac:groups=notes.example.org,resources=memos/status,verbs=get;update;patch
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=get;list;watch;create;update;patch;delete

// Reconcile puts the memo's text into a ConfigMap of its name.
func (r *MemoReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	log := logf.FromContext(ctx)

	var memo notesv1.Memo
	if err := r.Get(ctx, req.NamespacedName, &memo); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: memo.Name, Namespace: memo.Namespace}}
	op, err := controllerutil.CreateOrUpdate(ctx, r.Client, cm, func() error {
		cm.Data = map[string]string{"title": memo.Spec.Title, "text": memo.Spec.Text}
		return ctrl.SetControllerReference(&memo, cm, r.Scheme)
	})
	if err != nil {
		return ctrl.Result{}, err
	}
	log.V(1).Info("Wrote the memo down", "operation", op)

	memo.Status.ObservedGeneration = memo.Generation
	meta.SetStatusCondition(&memo.Status.Conditions, metav1.Condition{
		Type: "Ready", Status: metav1.ConditionTrue, Reason: "Written", ObservedGeneration: memo.Generation,
	})
	return ctrl.Result{}, r.Status().Update(ctx, &memo)
}

// SetupWithManager registers the controller.
func (r *MemoReconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		For(&notesv1.Memo{}).
		Owns(&corev1.ConfigMap{}).
		Named("memo").
		Complete(r)
}
