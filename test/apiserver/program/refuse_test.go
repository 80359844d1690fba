// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package program_test

import (
	"bytes"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestCommandLinesThatMakeNoSense(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"unknown flag":           {[]string{"--fast"}, "-fast"},
		"unknown command":        {[]string{"run"}, `"run"`},
		"unknown mode":           {[]string{"--storage", "tape"}, `"tape"`},
		"exec without a command": {[]string{"exec", "--"}, "exec -- COMMAND"},
		"exec and stdin":         {[]string{"--exit-on-stdin-eof", "exec", "--", "true"}, "standard input"},
		"exec and JSON":          {[]string{"--ready-json", "exec", "--", "true"}, "standard output"},
		"unknown controller":     {[]string{"--without", "scheduler"}, "scheduler"},
		"argument to version":    {[]string{"version", "x"}, `"x"`},
	} {
		t.Run(name, func(t *testing.T) { refused(t, 2, tc.args, tc.want) })
	}
}

func TestWhatIsInTheWay(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	open := filepath.Join(dir, "open")
	foreign := filepath.Join(dir, "foreign")
	must(t, os.WriteFile(file, nil, 0o600), os.Mkdir(open, 0o700), os.Chmod(open, 0o777),
		os.WriteFile(foreign, []byte("apiVersion: v1\nkind: Config\n"), 0o600))
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	port := strconv.Itoa(listener.Addr().(*net.TCPAddr).Port)
	fresh := func() string { return t.TempDir() }
	for name, tc := range map[string]struct {
		args []string
		want []string
	}{
		"port in use":             {[]string{"--storage", "memory", "--port", port}, []string{port, "another port"}},
		"port that is none":       {[]string{"--storage", "memory", "--port", "70000"}, []string{"70000"}},
		"folder below a file":     {[]string{"--data-dir", filepath.Join(file, "x")}, []string{file, "name one you can write to"}},
		"folder that is a file":   {[]string{"--data-dir", file}, []string{file}},
		"folder open to others":   {[]string{"--data-dir", open}, []string{open, "chmod 700"}},
		"folder in memory mode":   {[]string{"--storage", "memory", "--data-dir", dir}, []string{dir, "leave one of them out"}},
		"foreign kubeconfig":      {[]string{"--data-dir", fresh(), "--kubeconfig", foreign}, []string{foreign, "--kubeconfig"}},
		"kubeconfig in no folder": {[]string{"--data-dir", fresh(), "--kubeconfig", filepath.Join(dir, "no", "k")}, []string{"no/k"}},
		"unknown kube flag":       {[]string{"--storage", "memory", "--apiserver-flag", "warp=9"}, []string{"warp"}},
		"kube flag of ours":       {[]string{"--storage", "memory", "--apiserver-flag", "anonymous-auth=true"}, []string{"anonymous-auth", "always off"}},
		"bad value of a flag":     {[]string{"--storage", "memory", "--apiserver-flag", "event-ttl=soon"}, []string{"event-ttl"}},
	} {
		t.Run(name, func(t *testing.T) { refused(t, 1, tc.args, tc.want...) })
	}
	if data, _ := os.ReadFile(foreign); string(data) != "apiVersion: v1\nkind: Config\n" {
		t.Errorf("the foreign kubeconfig now holds %q", data)
	}
}

func TestOneServerPerFolder(t *testing.T) {
	dir := t.TempDir()
	p := start(t, "--data-dir", dir)
	refused(t, 1, []string{"--data-dir", dir}, dir, "in use", strconv.Itoa(p.cmd.Process.Pid))
	if _, err := p.client(t).CoreV1().Namespaces().Get(t.Context(), "default", metav1.GetOptions{}); err != nil {
		t.Errorf("the first server suffered: %v", err)
	}
	if _, err := os.Stat(p.KubeconfigFile); err != nil {
		t.Errorf("the first server's kubeconfig suffered: %v", err)
	}
}

func TestDamagedFoldersStayAsTheyAre(t *testing.T) {
	made := t.TempDir()
	start(t, "--data-dir", made).stop(t)
	logs, err := filepath.Glob(filepath.Join(made, "log-*"))
	if err != nil || len(logs) == 0 {
		t.Fatalf("no log in %s: %v", made, err)
	}
	for name, tc := range map[string]struct {
		file   string
		damage func([]byte) []byte
		want   string
	}{
		"log":      {filepath.Base(logs[0]), func(b []byte) []byte { b[len(b)/3] ^= 0x40; return b }, "corrupt"},
		"identity": {"identity.pem", func(b []byte) []byte { return b[:len(b)/2] }, "remove it"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			must(t, os.CopyFS(dir, os.DirFS(made)), os.Chmod(filepath.Join(dir, "identity.pem"), 0o600))
			path := filepath.Join(dir, tc.file)
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			damaged := tc.damage(bytes.Clone(data))
			must(t, os.WriteFile(path, damaged, 0o600))
			refused(t, 1, []string{"--data-dir", dir}, tc.file, tc.want)
			if left, _ := os.ReadFile(path); !bytes.Equal(left, damaged) {
				t.Errorf("%s was changed", tc.file)
			}
		})
	}
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestHelpNamesEveryFlag(t *testing.T) {
	out, err := command(t, "--help").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, flag := range []string{"data-dir", "storage", "port", "kubeconfig", "ready-json", "exit-on-stdin-eof", "without"} {
		if !strings.Contains(string(out), "--"+flag) {
			t.Errorf("help does not name --%s", flag)
		}
	}
}
