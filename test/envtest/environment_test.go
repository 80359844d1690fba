// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package envtest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/wherry-dev/wherry/test/envtest"
	"github.com/wherry-dev/wherry/test/envtest/program"
)

func TestStartErrors(t *testing.T) {
	self := self(t)
	const soon, late = time.Second, time.Minute // late is for those that do not take their time
	for _, c := range []struct {
		name, program, pretend string
		limit                  time.Duration
		want                   []string
	}{
		{"no such program", filepath.Join(t.TempDir(), "absent"), "", late, []string{program.Env, "absent", "unset it"}},
		{"a folder", t.TempDir(), "", late, []string{program.Env, "folder"}},
		{"not a ready line", self, "garbage", late, []string{"ready line", "hello"}},
		{"never ready", self, "mute", soon, []string{"not ready within LIMIT and had a processor for "}},
		{"never ready, and says why in the end", self, "godot", soon, []string{"not ready within LIMIT", "waited for Godot"}},
		{"never ready, never stops", self, "deaf", soon, []string{"not ready within LIMIT", "never mind", "killed"}},
		{"dies", self, "dead", late, []string{"ended before it was ready", "exit status 3", "no room on this disk"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv(program.Env, c.program)
			t.Setenv(pretend, c.pretend)
			saysWithin(t, c.limit, func(limit time.Duration) error {
				env := &envtest.Environment{ControlPlaneStartTimeout: limit, ControlPlaneStopTimeout: time.Second}
				_, err := env.Start()
				if err := env.Stop(); err != nil {
					t.Errorf("Stop after a failed Start: %v", err)
				}
				return err
			}, c.want...)
		})
	}
}

func TestStartAndStop(t *testing.T) {
	env := &envtest.Environment{}
	cfg, err := env.Start()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := env.Start(); err == nil {
		t.Error("a second Start succeeded while the first server runs")
	}
	c := kubernetes.NewForConfigOrDie(cfg)
	ns, err := c.CoreV1().Namespaces().Get(t.Context(), metav1.NamespaceDefault, metav1.GetOptions{})
	if err != nil || ns.UID == "" {
		t.Errorf("namespace default: %v, %v", ns, err)
	}
	if err := env.Stop(); err != nil {
		t.Fatal(err)
	}
	if alive(t, cfg) {
		t.Error("the server answers after Stop")
	}
	if err := env.Stop(); err != nil {
		t.Errorf("second Stop: %v", err)
	}
}

// TestDataSurvivesARestart restarts the server on the same folder and port.
func TestDataSurvivesARestart(t *testing.T) {
	env := &envtest.Environment{ControlPlane: envtest.ControlPlane{Etcd: &envtest.Etcd{DataDir: t.TempDir()}}}
	start := func() *kubernetes.Clientset {
		cfg, err := env.Start()
		if err != nil {
			t.Fatal(err)
		}
		return kubernetes.NewForConfigOrDie(cfg)
	}
	t.Cleanup(func() {
		if err := env.Stop(); err != nil {
			t.Error(err)
		}
	})
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "kept", Namespace: metav1.NamespaceDefault}}
	before, err := start().CoreV1().ConfigMaps(cm.Namespace).Create(t.Context(), cm, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := env.Stop(); err != nil {
		t.Fatal(err)
	}
	after, err := start().CoreV1().ConfigMaps(cm.Namespace).Get(t.Context(), cm.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if after.UID != before.UID || after.ResourceVersion != before.ResourceVersion {
		t.Errorf("after the restart: UID %s at %s, before it: UID %s at %s", after.UID, after.ResourceVersion, before.UID, before.ResourceVersion)
	}
}

// TestServerEndsWithItsTest kills a test process that has a server running: the
// server must not outlive it.
func TestServerEndsWithItsTest(t *testing.T) {
	t.Setenv(pretend, "orphan")
	cfg := kill(t)
	eventually(t, "the server ends", func() error {
		if alive(t, cfg) {
			return errors.New("it outlived the test process")
		}
		return nil
	})
}

// kill starts a test process with an environment, and kills it once that runs.
func kill(t *testing.T) *rest.Config {
	t.Helper()
	test := exec.CommandContext(t.Context(), self(t))
	test.Stderr = os.Stderr
	out, err := test.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := test.Start(); err != nil {
		t.Fatal(err)
	}
	var host string
	if _, err := fmt.Fscanln(out, &host); err != nil {
		t.Fatalf("the test process did not print its server: %v", err)
	}
	cfg := &rest.Config{Host: host, TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
	if !alive(t, cfg) {
		t.Fatalf("no server at %s", host)
	}
	_ = test.Process.Kill()
	_ = test.Wait() // it reports the kill
	return cfg
}

// alive reports whether a server answers, whatever it answers.
func alive(t *testing.T, cfg *rest.Config) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	err := kubernetes.NewForConfigOrDie(cfg).RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
	return err == nil || apierrors.ReasonForError(err) != metav1.StatusReasonUnknown
}
