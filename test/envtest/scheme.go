// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package envtest

import (
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
	return scheme
}

func crdClient(config *rest.Config) (client.Client, error) {
	return client.New(config, client.Options{Scheme: own})
}
