// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package apiutil

import (
	"reflect"
	"strings"
	"sync"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	// builtinScheme is the default scheme unless SetDefaultScheme put another in its place. Only its users write to it.
	builtinScheme = newMetaScheme()

	replacedScheme atomic.Pointer[runtime.Scheme]

	// apiTypes remembers which kind a Go type of k8s.io/api is, kindSchemes the schemes that SchemeFor has made. Both hold
	// at most one entry for each API type that the program names, so they need no other limit.
	apiTypes    sync.Map // reflect.Type → schema.GroupVersionKind
	kindSchemes sync.Map // typeAndKind → *runtime.Scheme
)

// DefaultScheme returns the scheme that stands for "no scheme given" everywhere in this module. It is one per process and
// is known by its pointer. What is registered with it, before a client, cache or manager that uses it starts, counts.
//
// Types of k8s.io/api need not be registered with it: GVKForObject knows them by their package, so that a program links
// only the API packages that it names. The scheme's own methods do not know of them: New, Recognizes, AllKnownTypes and
// ConvertToVersion answer for registered types only.
func DefaultScheme() *runtime.Scheme {
	if s := replacedScheme.Load(); s != nil {
		return s
	}
	return builtinScheme
}

// SetDefaultScheme makes s the default scheme of the process. It is for programs that want one filled scheme of their own,
// such as client-go's, to be the default; call it before anything else of this module. A nil s brings the first one back.
func SetDefaultScheme(s *runtime.Scheme) { replacedScheme.Store(s) }

type typeAndKind struct {
	typ  reflect.Type
	kind schema.GroupVersionKind
}

// newMetaScheme makes a scheme that knows meta/v1 and nothing else.
func newMetaScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	metav1.AddToGroupVersion(s, schema.GroupVersion{Version: "v1"})
	return s
}

// metaScheme is the one that nobody writes to.
var metaScheme = sync.OnceValue(newMetaScheme)

// kindOutsideScheme is GVKForObject's answer for a type that scheme does not know: err, unless scheme is the default one
// and the type is of k8s.io/api.
func kindOutsideScheme(obj runtime.Object, scheme *runtime.Scheme, err error) (schema.GroupVersionKind, error) {
	if runtime.IsNotRegisteredError(err) && scheme == DefaultScheme() {
		if kind, ok := apiPackageKind(reflect.TypeOf(obj).Elem()); ok {
			return kind, nil
		}
	}
	return schema.GroupVersionKind{}, err
}

// SchemeFor returns a scheme that can decode objects of the given kind into obj's Go type: scheme itself if it knows the
// kind, else one that holds obj's type and meta/v1, complete when it is made and kept for the next call. Hand it to
// serializer.NewCodecFactory where a decoder gets no target, as in a watch.
func SchemeFor(obj runtime.Object, kind schema.GroupVersionKind, scheme *runtime.Scheme) *runtime.Scheme {
	if scheme == nil {
		scheme = DefaultScheme()
	}
	if FormOf(obj) != Typed || scheme.Recognizes(kind) {
		return scheme
	}
	key := typeAndKind{reflect.TypeOf(obj), kind}
	if s, ok := kindSchemes.Load(key); ok {
		return s.(*runtime.Scheme)
	}
	s := newMetaScheme()
	s.AddKnownTypeWithName(kind, obj)
	metav1.AddToGroupVersion(s, kind.GroupVersion())
	kept, _ := kindSchemes.LoadOrStore(key, s)
	return kept.(*runtime.Scheme)
}

// apiRoot is the path under which every API package of Kubernetes lives.
const apiRoot = "k8s.io/api/"

// apiPackageKind tells the kind of a Go type of k8s.io/api: group and version by its package, kind by its name.
func apiPackageKind(t reflect.Type) (schema.GroupVersionKind, bool) {
	if kind, ok := apiTypes.Load(t); ok {
		return kind.(schema.GroupVersionKind), true
	}
	gv, ok := apiPackageVersion(t.PkgPath())
	if !ok || t.Name() == "" {
		return schema.GroupVersionKind{}, false
	}
	kind := gv.WithKind(t.Name())
	apiTypes.Store(t, kind)
	return kind, true
}

func apiPackageVersion(path string) (schema.GroupVersion, bool) {
	rest, ok := strings.CutPrefix(path, apiRoot)
	if !ok {
		return schema.GroupVersion{}, false
	}
	folder, version, ok := strings.Cut(rest, "/")
	if !ok {
		return schema.GroupVersion{}, false
	}
	for _, p := range apiPackages {
		if p.folder == folder && strings.Contains(" "+p.versions+" ", " "+version+" ") {
			return schema.GroupVersion{Group: p.group, Version: version}, true
		}
	}
	return schema.GroupVersion{}, false
}

// isAPIVersion reports whether a group and version is one of k8s.io/api's.
func isAPIVersion(gv schema.GroupVersion) bool {
	for _, p := range apiPackages {
		if p.group == gv.Group && strings.Contains(" "+p.versions+" ", " "+gv.Version+" ") {
			return true
		}
	}
	return false
}

// apiPackages is the table of k8s.io/api's packages: folder and versions make the path, group is what the server calls
// it. A test compares it with client-go's scheme, both ways.
var apiPackages = []struct{ folder, group, versions string }{
	{"admissionregistration", "admissionregistration.k8s.io", "v1 v1alpha1 v1beta1"},
	{"apiserverinternal", "internal.apiserver.k8s.io", "v1alpha1"},
	{"apps", "apps", "v1 v1beta1 v1beta2"},
	{"authentication", "authentication.k8s.io", "v1 v1alpha1 v1beta1"},
	{"authorization", "authorization.k8s.io", "v1 v1beta1"},
	{"autoscaling", "autoscaling", "v1 v2"},
	{"batch", "batch", "v1 v1beta1"},
	{"certificates", "certificates.k8s.io", "v1 v1alpha1 v1beta1"},
	{"coordination", "coordination.k8s.io", "v1 v1alpha2 v1beta1"},
	{"core", "", "v1"},
	{"discovery", "discovery.k8s.io", "v1 v1beta1"},
	{"events", "events.k8s.io", "v1 v1beta1"},
	{"extensions", "extensions", "v1beta1"},
	{"flowcontrol", "flowcontrol.apiserver.k8s.io", "v1 v1beta1 v1beta2 v1beta3"},
	{"lifecycle", "lifecycle.k8s.io", "v1alpha1"},
	{"networking", "networking.k8s.io", "v1 v1beta1"},
	{"node", "node.k8s.io", "v1 v1alpha1 v1beta1"},
	{"policy", "policy", "v1 v1beta1"},
	{"rbac", "rbac.authorization.k8s.io", "v1 v1alpha1 v1beta1"},
	{"resource", "resource.k8s.io", "v1 v1alpha3 v1beta1 v1beta2"},
	{"scheduling", "scheduling.k8s.io", "v1 v1alpha3 v1beta1"},
	{"storage", "storage.k8s.io", "v1 v1alpha1 v1beta1"},
	{"storagemigration", "storagemigration.k8s.io", "v1 v1beta1"},
}
