// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

// Package defaultscheme makes client-go's scheme the default one, as programs
// written for controller-runtime expect: they register their types with it and
// give no scheme. It links every API group of Kubernetes, as controller-runtime
// does.
package defaultscheme

import (
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/wherry-dev/wherry/client/apiutil"
)

// NB: an init with an effect. It runs before anything of the importing program
// does, so nobody has seen another default scheme.
func init() { apiutil.SetDefaultScheme(scheme.Scheme) }
