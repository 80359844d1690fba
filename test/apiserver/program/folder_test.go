// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package program_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestCheckAndRepair(t *testing.T) {
	made := t.TempDir()
	p := start(t, "--data-dir", made)
	c := p.client(t)
	m, err := c.CoreV1().ConfigMaps("default").Create(t.Context(), configMap("precious"), metav1.CreateOptions{})
	must(t, err)
	// Something must lie behind it, for the damage to be in.
	for range 3 {
		m.Data["k"] += "x"
		m, err = c.CoreV1().ConfigMaps("default").Update(t.Context(), m, metav1.UpdateOptions{})
		must(t, err)
	}
	p.stop(t)

	out, err := command(t, "check", "--data-dir", made).Output()
	if err != nil || !strings.Contains(string(out), "revision") {
		t.Errorf("a sound folder: %s, %v", out, err)
	}
	logs, err := filepath.Glob(filepath.Join(made, "log-*"))
	must(t, err)
	data, err := os.ReadFile(logs[len(logs)-1])
	must(t, err)
	at := strings.LastIndex(string(data), "precious")
	data[at] ^= 1
	must(t, os.WriteFile(logs[len(logs)-1], data, 0o600))

	broken, err := command(t, "check", "--data-dir", made).CombinedOutput()
	if err == nil || !strings.Contains(string(broken), "repair") {
		t.Errorf("a damaged folder: %s, %v; want a status other than 0 and the remedy", broken, err)
	}
	refused(t, 2, []string{"repair", "--data-dir", made}, "--to")
	saved := filepath.Join(t.TempDir(), "saved")
	if out, err := command(t, "repair", "--data-dir", made, "--to", saved).CombinedOutput(); err != nil {
		t.Fatalf("repair: %s, %v", out, err)
	}
	if now, _ := os.ReadFile(logs[len(logs)-1]); string(now) != string(data) {
		t.Error("repair changed the damaged folder")
	}
	q := start(t, "--data-dir", saved)
	now, err := q.client(t).CoreV1().ConfigMaps("default").Get(t.Context(), "precious", metav1.GetOptions{})
	if err != nil || now.UID != m.UID {
		t.Errorf("the saved object is %v, %v", now, err)
	}
	if q.config(t).BearerToken != p.config(t).BearerToken {
		t.Error("the saved folder has another identity")
	}
}
