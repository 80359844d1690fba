// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package envtest

import (
	"slices"
	"strings"
)

// minimalFlags are kube-apiserver's flags that a test's server has in any case,
// defaultFlags those it has unless it is started with the deprecated Args. Both
// are what controller-runtime's envtest has.
var (
	minimalFlags = map[string][]string{
		"authorization-mode":       {"RBAC"},
		"service-cluster-ip-range": {"10.0.0.0/24"},
	}
	defaultFlags = map[string][]string{
		"allow-privileged":   {"true"},
		"authorization-mode": {"RBAC"},
		// With it a pod needs a service account, which tests do not make.
		"disable-admission-plugins": {"ServiceAccount"},
		"service-cluster-ip-range":  {"10.0.0.0/24"},
	}
)

// DefaultKubeAPIServerFlags are flags to put before those of your own in
// APIServer.Args, which has no others then.
//
// Deprecated: APIServer.Configure changes single flags and keeps the rest.
var DefaultKubeAPIServerFlags = []string{
	"--advertise-address=127.0.0.1",
	"--etcd-servers={{ with .EtcdURL }}{{ . }}{{ end }}",
	"--cert-dir={{ .CertDir }}",
	"--secure-port={{ with .SecurePort }}{{ . }}{{ end }}",
	"--disable-admission-plugins=ServiceAccount",
	"--service-cluster-ip-range=10.0.0.0/24",
	"--allow-privileged=true",
}

// unused are flags of kube-apiserver that say nothing to the embedded server:
// it has its own storage, certificates and addresses. A name that ends with a
// dash stands for all that begin so.
var unused = []string{
	"advertise-address",
	"cert-dir",
	"endpoint-reconciler-type",
	"etcd-",
	"insecure-bind-address",
	"insecure-port",
	"service-account-key-file",
	"service-account-signing-endpoint",
	"service-account-signing-key-file",
	"storage-backend",
	"tls-cert-file",
	"tls-private-key-file",
	"watch-cache",
	"watch-cache-sizes",
}

func isUnused(name string) bool {
	return slices.ContainsFunc(unused, func(u string) bool {
		return name == u || strings.HasSuffix(u, "-") && strings.HasPrefix(name, u)
	})
}

// serverFlag is how the embedded server's program takes a flag of
// kube-apiserver, as name=value.
const serverFlag = "--apiserver-flag"

// embedded turns flags of kube-apiserver into arguments of the embedded server's
// program, and returns the names of those that are of no use there. The names in
// settled were seen to before.
func embedded(flags []flagValues, settled ...string) (args, passedOver []string) {
	for _, f := range flags {
		values := slices.DeleteFunc(slices.Clone(f.values), func(v string) bool { return v == "" })
		switch {
		case len(values) == 0 && len(f.values) > 0: // a default that was not filled in
		case slices.Contains(settled, f.name):
		case f.name == "v" && len(values) > 0: // the program is silent without its own
			args = append(args, "--v", values[len(values)-1])
		case isUnused(f.name):
			passedOver = append(passedOver, f.name)
		case len(values) == 0: // by name alone, which only a bool takes
			args = append(args, serverFlag, f.name+"=true")
		default:
			for _, v := range values {
				args = append(args, serverFlag, f.name+"="+v)
			}
		}
	}
	return args, passedOver
}
