// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds what the API server asks before it stores an object of api/v1alpha1.
package v1alpha1

import (
	"context"
	"fmt"
	"html"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	ctrl "github.com/wherry-dev/wherry"
	"github.com/wherry-dev/wherry/webhook/admission"

	webv1alpha1 "github.com/wherry-dev/wherry/examples/operator/api/v1alpha1"
)

// SetupWebsiteWebhookWithManager serves the two webhooks below.
func SetupWebsiteWebhookWithManager(mgr ctrl.Manager) error {
	return ctrl.NewWebhookManagedBy(mgr, &webv1alpha1.Website{}).
		WithDefaulter(&WebsiteDefaulter{}).
		WithValidator(&WebsiteValidator{}).
		Complete()
}

// +kubebuilder:webhook:path=/mutate-web-example-com-v1alpha1-website,mutating=true,failurePolicy=fail,sideEffects=None,groups=web.example.com,resources=websites,verbs=create;update,versions=v1alpha1,name=mwebsite-v1alpha1.kb.io,admissionReviewVersions=v1

// WebsiteDefaulter fills in what depends on other fields; a constant is better a +kubebuilder:default of the type.
type WebsiteDefaulter struct{}

// Default makes a page for a site that has none.
func (*WebsiteDefaulter) Default(_ context.Context, site *webv1alpha1.Website) error {
	if site.Spec.HTML == "" {
		site.Spec.HTML = "<h1>Welcome to " + html.EscapeString(site.Name) + "</h1>"
	}
	return nil
}

// +kubebuilder:webhook:path=/validate-web-example-com-v1alpha1-website,mutating=false,failurePolicy=fail,sideEffects=None,groups=web.example.com,resources=websites,verbs=create;update,versions=v1alpha1,name=vwebsite-v1alpha1.kb.io,admissionReviewVersions=v1

// WebsiteValidator refuses what the schema cannot.
type WebsiteValidator struct{}

// ValidateCreate wants a name that its pods can bear as a label.
func (*WebsiteValidator) ValidateCreate(_ context.Context, site *webv1alpha1.Website) (admission.Warnings, error) {
	if wrong := validation.IsDNS1123Label(site.Name); len(wrong) > 0 {
		return nil, fmt.Errorf("metadata.name %q: %s", site.Name, strings.Join(wrong, "; "))
	}
	return warnings(site), nil
}

// ValidateUpdate refuses nothing.
func (*WebsiteValidator) ValidateUpdate(_ context.Context, _, site *webv1alpha1.Website) (admission.Warnings, error) {
	return warnings(site), nil
}

// ValidateDelete is not called: the marker above names create and update.
func (*WebsiteValidator) ValidateDelete(context.Context, *webv1alpha1.Website) (admission.Warnings, error) {
	return nil, nil
}

func warnings(site *webv1alpha1.Website) admission.Warnings {
	if site.Spec.Replicas != nil && *site.Spec.Replicas == 0 {
		return admission.Warnings{"spec.replicas is 0: nobody serves the page"}
	}
	return nil
}
