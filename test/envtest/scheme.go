// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package envtest

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/rest"

	"github.com/wherry-dev/wherry/client"
)

// own is the scheme of what this package itself installs. Upstream adds CRDs to
// client-go's global scheme instead, which every importer then sees.
var (
	own    = newScheme()
	codecs = serializer.NewCodecFactory(own)
)

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(apiextensionsv1.AddToScheme(scheme)) // it fails only if the package contradicts itself
	utilruntime.Must(admissionregistrationv1.AddToScheme(scheme))
	utilruntime.Must(corev1.AddToScheme(scheme))
	return scheme
}

func ownClient(config *rest.Config) (client.Client, error) {
	return client.New(config, client.Options{Scheme: own})
}
