// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"fmt"
	"strings"

	"github.com/wherry-dev/wherry/test/apiserver/storage/file"
)

// Options say where a server keeps its data and how it is reached. The zero value needs DataDir only.
type Options struct {
	// DataDir is the folder that holds the objects, the certificate authority and the administrator's token. It is
	// made if it does not exist. One server may use it at a time. It must be empty with file.Memory, which writes no
	// file at all.
	DataDir string

	// Storage says what a write waits for. Zero is file.Durable.
	Storage file.Mode

	// Port is the port on 127.0.0.1 to listen on. Zero takes a free one.
	Port int

	// Flags are flags of kube-apiserver, each "name=value" without the leading dashes, for what has no option here.
	// The flags this package needs for itself cannot be set this way.
	Flags []string

	// NoNamespaceDeleter leaves terminating namespaces and what is in them where they are.
	NoNamespaceDeleter bool
	// NoGarbageCollector leaves the dependents of deleted owners where they are.
	NoGarbageCollector bool
	// NoServiceAccounts makes no "default" service account in new namespaces.
	NoServiceAccounts bool

	// Stock builds the server the way kube-apiserver's own command does, start-up hooks and all. It is slower by
	// seconds, and it is what this package's shortcuts are compared with.
	Stock bool

	// Etcd puts an etcd in this process in place of the storage and of everything that is made to do without one. It
	// goes with Stock and file.Memory only, and only in a build with the tag "etcd": it is what to compare with.
	Etcd bool
}

func (o Options) validate() error {
	switch {
	case o.Storage == file.Memory && o.DataDir != "":
		return fmt.Errorf("storage mode %q keeps no files, but the data folder %s was named: leave one of them out",
			o.Storage, o.DataDir)
	case o.Storage != file.Memory && o.DataDir == "":
		return errors.New("no data folder was named: name one, or use the storage mode memory")
	case o.Etcd && !HasEtcd():
		return errors.New("this build has no etcd: build with -tags etcd")
	case o.Etcd && (!o.Stock || o.Storage != file.Memory):
		return errors.New("etcd goes with the stock assembly and the storage mode memory only")
	case o.Port < 0 || o.Port > 65535:
		return fmt.Errorf("port %d does not exist: name one from 1 to 65535, or 0 for a free one", o.Port)
	}
	for _, f := range o.Flags {
		name, _, ok := strings.Cut(f, "=")
		if !ok || name == "" || strings.HasPrefix(name, "-") {
			return fmt.Errorf("kube-apiserver flag %q is not of the form name=value", f)
		}
		if why, ok := reserved[name]; ok {
			return fmt.Errorf("kube-apiserver flag %q cannot be set: %s", name, why)
		}
	}
	return nil
}

// reserved are the flags of kube-apiserver that would undo what this package is, and why.
var reserved = map[string]string{
	"advertise-address":                "the server is reached on loopback only",
	"anonymous-auth":                   "anonymous access is always off",
	"bind-address":                     "the server listens on loopback only",
	"cert-dir":                         "the certificates come from the data folder's own authority",
	"endpoint-reconciler-type":         "it would need etcd",
	"etcd-servers":                     "there is no etcd",
	"secure-port":                      "use the port option",
	"service-account-key-file":         "the key comes from the data folder's own identity",
	"service-account-signing-endpoint": "the key comes from the data folder's own identity",
	"service-account-signing-key-file": "the key comes from the data folder's own identity",
	"tls-cert-file":                    "the certificates come from the data folder's own authority",
	"tls-private-key-file":             "the certificates come from the data folder's own authority",
	"watch-cache":                      "the storage serves watches itself",
}
