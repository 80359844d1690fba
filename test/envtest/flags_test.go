// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package envtest

import (
	"net/url"
	"slices"
	"strings"
	"testing"
)

// TestEmbeddedLine writes the command line of the embedded server's program.
func TestEmbeddedLine(t *testing.T) {
	defaults := []string{
		serverFlag, "allow-privileged=true", serverFlag, "authorization-mode=RBAC",
		serverFlag, "disable-admission-plugins=ServiceAccount", serverFlag, "service-cluster-ip-range=10.0.0.0/24",
	}
	minimal := []string{serverFlag, "authorization-mode=RBAC", serverFlag, "service-cluster-ip-range=10.0.0.0/24"}
	for _, c := range []struct {
		name  string
		set   func(*APIServer)
		ahead []string
		want  []string
		err   string
	}{
		{"nothing", func(*APIServer) {}, nil, defaults, ""},
		{"a value for a flag without one", func(s *APIServer) { s.Configure().Set("event-ttl", "1h") }, nil,
			slices.Insert(slices.Clone(defaults), 6, serverFlag, "event-ttl=1h"), ""},
		{"several values", func(s *APIServer) { s.Configure().Append("disable-admission-plugins", "LimitRanger") }, nil,
			slices.Insert(slices.Clone(defaults), 6, serverFlag, "disable-admission-plugins=LimitRanger"), ""},
		{"a default left out", func(s *APIServer) { s.Configure().Disable("disable-admission-plugins") }, nil,
			slices.Delete(slices.Clone(defaults), 4, 6), ""},
		{"by name alone", func(s *APIServer) { s.Configure().Enable("profiling") }, nil,
			slices.Insert(slices.Clone(defaults), 6, serverFlag, "profiling=true"), ""},
		{"a port", func(s *APIServer) { s.Port = "7000" }, []string{"--port", "7000"}, defaults, ""},
		{"a port by flag", func(s *APIServer) { s.Port = "7000"; s.Configure().Set("secure-port", "7001") }, []string{"--port", "7001"}, defaults, ""},
		{"loopback", func(s *APIServer) { s.Configure().Set("bind-address", "127.0.0.1") }, nil, defaults, ""},
		{"another address", func(s *APIServer) { s.Configure().Set("bind-address", "0.0.0.0") }, nil, nil, "0.0.0.0"},
		{"flags of etcd and of files", func(s *APIServer) {
			s.Configure().Set("etcd-servers", "http://x").Set("etcd-prefix", "/r").Set("tls-cert-file", "f").Set("cert-dir", "d")
		}, nil, defaults, ""},
		{"templates", func(s *APIServer) {
			s.EtcdURL = &url.URL{Scheme: "http", Host: "there"}
			s.Args = append(slices.Clone(DefaultKubeAPIServerFlags), "--v={{ .Port }}7", "{{ if .CertDir }}--x=y{{ end }}")
		}, nil, slices.Concat([]string{serverFlag, "allow-privileged=true", serverFlag, "authorization-mode=RBAC",
			serverFlag, "disable-admission-plugins=ServiceAccount", serverFlag, "service-cluster-ip-range=10.0.0.0/24", "--v", "7"}), ""},
		{"templates with the least of defaults", func(s *APIServer) { s.Args = []string{"--v=2"} }, nil, append(slices.Clone(minimal), "--v", "2"), ""},
		{"templates that are no flags", func(s *APIServer) { s.Args = []string{"-v", "2"} }, nil, nil, `"-v" "2"`},
		{"a template that is none", func(s *APIServer) { s.Args = []string{"--v={{"} }, nil, nil, "--v={{"},
		{"a field there is not", func(s *APIServer) { s.Args = []string{"--v={{ .Nope }}"} }, nil, nil, "Nope"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &APIServer{}
			c.set(s)
			for range 2 { // a second Start has the same line
				got, err := s.embeddedLine()
				if c.err != "" {
					if err == nil || !strings.Contains(err.Error(), c.err) {
						t.Fatalf("error %v, want one with %q", err, c.err)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				want := slices.Concat([]string{"--exit-on-stdin-eof", "--ready-json", "--storage", "memory"}, c.ahead, c.want)
				if !slices.Equal(got, want) {
					t.Errorf("got  %q\nwant %q", got, want)
				}
			}
		})
	}
}
