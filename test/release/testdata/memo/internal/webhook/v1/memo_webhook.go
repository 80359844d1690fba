package v1

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	notesv1 "example.org/memo/api/v1"
)

// SetupMemoWebhookWithManager registers the webhooks of Memo.
func SetupMemoWebhookWithManager(mgr ctrl.Manager) error {
	return ctrl.NewWebhookManagedBy(mgr, &notesv1.Memo{}).
		WithValidator(&MemoCustomValidator{}).
		WithDefaulter(&MemoCustomDefaulter{}).
		Complete()
}

// +kubebuilder:webhook:path=/mutate-notes-example-org-v1-memo,mutating=true,failurePolicy=fail,sideEffects=None,groups=notes.example.org,resources=memos,verbs=create;update,versions=v1,name=mmemo-v1.kb.io,admissionReviewVersions=v1

// MemoCustomDefaulter gives a memo its name as title.
type MemoCustomDefaulter struct{}

// Default sets what is not set.
func (d *MemoCustomDefaulter) Default(_ context.Context, memo *notesv1.Memo) error {
	if memo.Spec.Title == "" {
		memo.Spec.Title = memo.Name
	}
	return nil
}

// +kubebuilder:webhook:path=/validate-notes-example-org-v1-memo,mutating=false,failurePolicy=fail,sideEffects=None,groups=notes.example.org,resources=memos,verbs=create;update,versions=v1,name=vmemo-v1.kb.io,admissionReviewVersions=v1

// MemoCustomValidator refuses what is no memo.
type MemoCustomValidator struct{}

const longest = 280

// ValidateCreate judges a new memo.
func (v *MemoCustomValidator) ValidateCreate(_ context.Context, memo *notesv1.Memo) (admission.Warnings, error) {
	return nil, validate(memo)
}

// ValidateUpdate judges a changed memo.
func (v *MemoCustomValidator) ValidateUpdate(_ context.Context, before, memo *notesv1.Memo) (admission.Warnings, error) {
	var warnings admission.Warnings
	if before.Spec.Text != memo.Spec.Text && memo.Spec.Title == before.Spec.Title {
		warnings = append(warnings, "the text changed and the title did not")
	}
	return warnings, validate(memo)
}

// ValidateDelete lets everything go.
func (v *MemoCustomValidator) ValidateDelete(context.Context, *notesv1.Memo) (admission.Warnings, error) {
	return nil, nil
}

func validate(memo *notesv1.Memo) error {
	if n := len(memo.Spec.Text); n > longest {
		return apierrors.NewInvalid(schema.GroupKind{Group: "notes.example.org", Kind: "Memo"}, memo.Name, field.ErrorList{
			field.Invalid(field.NewPath("spec", "text"), fmt.Sprintf("%d characters", n), "a memo is short"),
		})
	}
	return nil
}
