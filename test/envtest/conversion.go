// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package envtest

import (
	"errors"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/wherry-dev/wherry/client/apiutil"
	"github.com/wherry-dev/wherry/webhook/conversion"
)

// conversionPath is where a manager's webhook server converts.
const conversionPath = "convert"

// withConversion returns copies of crds whose conversion webhook is this
// process's if their kind converts here. If it does not, a service that they name
// is left out, for there is none beside a test. Without prepared options they are
// as they were.
func withConversion(crds []*apiextensionsv1.CustomResourceDefinition, scheme *runtime.Scheme, o *WebhookInstallOptions) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	if scheme == nil {
		scheme = apiutil.DefaultScheme()
	}
	var out []*apiextensionsv1.CustomResourceDefinition
	for _, crd := range crds {
		crd = crd.DeepCopy()
		out = append(out, crd)
		if len(o.LocalServingCAData) == 0 || crd.Spec.PreserveUnknownFields {
			continue
		}
		kind := schema.GroupKind{Group: crd.Spec.Group, Kind: crd.Spec.Names.Kind}
		convertible, err := converts(scheme, kind)
		if err != nil {
			return nil, fmt.Errorf("conversion of %s: %w", kind, err)
		}
		if !convertible && !o.IgnoreSchemeConvertible {
			if byService(crd.Spec.Conversion) {
				crd.Spec.Conversion = nil
			}
			continue
		}
		address, err := o.address()
		if err != nil {
			return nil, err
		}
		url := "https://" + address + "/" + conversionPath
		crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{
			Strategy: apiextensionsv1.WebhookConverter,
			Webhook: &apiextensionsv1.WebhookConversion{
				ConversionReviewVersions: []string{"v1", "v1beta1"},
				ClientConfig:             &apiextensionsv1.WebhookClientConfig{URL: &url, CABundle: o.LocalServingCAData},
			},
		}
	}
	return out, nil
}

// byService reports whether a conversion calls a service of the cluster.
func byService(c *apiextensionsv1.CustomResourceConversion) bool {
	return c != nil && c.Webhook != nil && (c.Webhook.ClientConfig == nil || c.Webhook.ClientConfig.URL == nil)
}

// converts reports whether the versions of a kind convert by their Go types. A
// kind of which only some do is none, as with controller-runtime: its
// unconverted versions may belong to another program.
func converts(scheme *runtime.Scheme, kind schema.GroupKind) (bool, error) {
	for _, gv := range scheme.VersionsForGroupKind(kind) {
		if gv.Version == runtime.APIVersionInternal {
			continue
		}
		obj, err := scheme.New(gv.WithKind(kind.Kind))
		if err != nil {
			return false, err
		}
		ok, err := conversion.IsConvertible(scheme, obj)
		if _, partial := errors.AsType[conversion.PartialImplementationError](err); partial {
			logger.Info("no conversion webhook", "kind", kind, "reason", err.Error())
			return false, nil
		}
		return ok, err
	}
	return false, nil
}
