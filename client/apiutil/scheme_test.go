// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package apiutil

import (
	"reflect"
	"strings"
	"testing"

	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
)

// The table and client-go's scheme must tell the same about every type of k8s.io/api.
func TestAPIPackagesAgreeWithClientGo(t *testing.T) {
	paths := map[string]bool{}
	for gvk, typ := range clientgoscheme.Scheme.AllKnownTypes() {
		if !strings.HasPrefix(typ.PkgPath(), apiRoot) {
			continue
		}
		paths[typ.PkgPath()] = true
		if got, ok := apiPackageKind(typ); !ok || got != gvk {
			t.Errorf("%s.%s: table gives %v (%v), client-go %v", typ.PkgPath(), typ.Name(), got, ok, gvk)
		}
	}
	rows := 0
	for _, p := range apiPackages {
		for version := range strings.FieldsSeq(p.versions) {
			rows++
			if path := apiRoot + p.folder + "/" + version; !paths[path] {
				t.Errorf("%s is in the table but not in client-go's scheme", path)
			}
		}
	}
	if rows != len(paths) || rows == 0 {
		t.Errorf("table has %d packages, client-go %d", rows, len(paths))
	}
	if _, ok := apiPackageKind(reflect.TypeFor[strings.Builder]()); ok {
		t.Error("a type of another module resolved")
	}
}
