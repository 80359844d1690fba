// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package program_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestKubeconfigIsThereWhileItRuns(t *testing.T) {
	dir := t.TempDir()
	p := start(t, "--data-dir", dir)
	want := filepath.Join(dir, "kubeconfig")
	if p.KubeconfigFile != want {
		t.Errorf("the kubeconfig is at %q; want %q", p.KubeconfigFile, want)
	}
	data, err := os.ReadFile(want)
	if err != nil || string(data) != p.Kubeconfig {
		t.Errorf("the file and the ready line differ: %v", err)
	}
	for path, mode := range map[string]os.FileMode{want: 0o600, filepath.Join(dir, "identity.pem"): 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: mode %v, %v; want %04o", path, info.Mode().Perm(), err, mode)
		}
	}
	if status := p.stop(t); status != 0 {
		t.Errorf("exit status %d; want 0; %s", status, p.stderr)
	}
	if _, err := os.Stat(want); !os.IsNotExist(err) {
		t.Errorf("the kubeconfig is left behind: %v", err)
	}
	if p.stderr.Len() > 0 {
		t.Errorf("it was not quiet: %s", p.stderr)
	}
}

func TestMemoryModeWritesNoFile(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	t.Chdir(dir)
	p := start(t, "--storage", "memory")
	if p.KubeconfigFile != "" {
		t.Errorf("a kubeconfig was written to %s", p.KubeconfigFile)
	}
	if _, err := p.client(t).CoreV1().Namespaces().Get(t.Context(), "default", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("files appeared: %v, %v", entries, err)
	}
}

func TestSignalsStopItInTime(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		t.Run(sig.String(), func(t *testing.T) {
			p := start(t, "--storage", "memory")
			// A watch must not hold it up.
			w, err := p.client(t).CoreV1().Pods("").Watch(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			defer w.Stop()
			must(t, p.cmd.Process.Signal(sig))
			if status := p.wait(t); status != 0 {
				t.Errorf("exit status %d; want 0; %s", status, p.stderr)
			}
		})
	}
}

func TestSignalBeforeReady(t *testing.T) {
	for _, after := range []time.Duration{50 * time.Millisecond, 200 * time.Millisecond, 500 * time.Millisecond, 800 * time.Millisecond, 1100 * time.Millisecond} {
		t.Run(after.String(), func(t *testing.T) {
			dir := t.TempDir()
			cmd := command(t, "--data-dir", dir)
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			must(t, cmd.Start())
			time.Sleep(after) // the moment within the start is what is tested
			// It takes signals before it touches the folder. On a machine that does other things it may not have come so far.
			entries, err := os.ReadDir(dir)
			must(t, err)
			begun := len(entries) > 0
			must(t, cmd.Process.Signal(syscall.SIGTERM))
			told := time.Now()
			ended := make(chan error, 1)
			go func() { ended <- cmd.Wait() }()
			select {
			case err := <-ended:
				if exit, ok := err.(*exec.ExitError); ok && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGTERM && !begun {
					return // it had not yet come to take signals
				}
				if err != nil {
					t.Errorf("%v; want status 0; %s", err, &stderr)
				}
			case <-time.After(busy * stopLimit):
				_ = cmd.Process.Kill()
				t.Errorf("it runs on %v after the signal", time.Since(told))
			}
		})
	}
}

func TestItEndsWithTheProgramThatStartedIt(t *testing.T) {
	dir := t.TempDir()
	self := command(t)
	// A shell starts the program in the background and ends when it is ready.
	shell := exec.Command("sh", "-c", `"$1" --data-dir "$2" & echo $!; until [ -e "$2/kubeconfig" ]; do sleep 0.05; done`, "sh", self.Path, dir)
	shell.Env = self.Env
	out, err := shell.StdoutPipe()
	must(t, err, shell.Start())
	buf := make([]byte, 32)
	n, _ := out.Read(buf)
	pid, err := strconv.Atoi(strings.TrimSpace(string(buf[:n])))
	must(t, err)
	process, err := os.FindProcess(pid)
	must(t, err)
	_, _ = shell.Process.Wait()
	_ = out.Close()
	eventually(t, time.Second+stopLimit, func() string {
		if process.Signal(syscall.Signal(0)) != nil || unreaped(pid) {
			return ""
		}
		return "the program is still there"
	})
	if _, err := os.Stat(filepath.Join(dir, "kubeconfig")); !os.IsNotExist(err) {
		t.Errorf("it did not stop in good order: the kubeconfig is left behind (%v)", err)
	}
}

// unreaped reports whether a process has ended and nobody has waited for it: the first process of a container may wait for
// none of those that it is given.
func unreaped(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, state, found := strings.Cut(string(stat), ") ")
	return err == nil && found && state[0] == 'Z'
}

func TestExec(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	run := func(args ...string) (string, string, int) {
		cmd := command(t, append([]string{"--storage", "memory", "exec", "--"}, args...)...)
		cmd.Env = append(cmd.Env, "KUBECONFIG=/nowhere")
		var out, errs bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errs
		_ = cmd.Run()
		return out.String(), errs.String(), cmd.ProcessState.ExitCode()
	}
	out, errs, status := run("sh", "-c", `echo "$KUBECONFIG" "$#" "$1"; grep -c server: "$KUBECONFIG"; exit 7`, "sh", "a b")
	if status != 7 || !strings.Contains(out, "kubeconfig 1 a b\n1\n") || errs != "" {
		t.Errorf("status %d, output %q, errors %q; want 7 and the command's own output alone", status, out, errs)
	}
	if path, _, _ := strings.Cut(out, " "); fileExists(path) {
		t.Errorf("%s is left behind", path)
	}
	if _, errs, status := run("/does/not/exist"); status != 127 || !strings.Contains(errs, "/does/not/exist") {
		t.Errorf("status %d, %q; want 127 and the command's name", status, errs)
	}
	if _, _, status := run("sh", "-c", "kill -9 $$"); status != 128+9 {
		t.Errorf("status %d; want 137", status)
	}
}

func TestExecHandsSignalsOn(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	cmd := command(t, "--storage", "memory", "exec", "--", "sh", "-c",
		`trap 'echo got; exit 3' TERM; echo up; while :; do sleep 0.05; done`)
	out, err := cmd.StdoutPipe()
	must(t, err, cmd.Start())
	buf := make([]byte, 16)
	if n, err := out.Read(buf); err != nil || string(buf[:n]) != "up\n" {
		t.Fatalf("the command said %q, %v", buf[:n], err)
	}
	must(t, cmd.Process.Signal(syscall.SIGTERM))
	if n, _ := out.Read(buf); string(buf[:n]) != "got\n" {
		t.Errorf("the command said %q; want that it got the signal", buf[:n])
	}
	_ = cmd.Wait()
	if status := cmd.ProcessState.ExitCode(); status != 3 {
		t.Errorf("exit status %d; want the command's", status)
	}
}

// TestExecInterruptsOnce interrupts the whole process group, as programs do that play a terminal: the command must get
// one interrupt, not one of the group and one handed on.
func TestExecInterruptsOnce(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	cmd := command(t, "--storage", "memory", "exec", "--", "sh", "-c",
		`n=0; trap 'n=$((n+1))' INT; echo up; while [ $n = 0 ]; do sleep 0.05; done; sleep 0.5; exit $n`)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	out, err := cmd.StdoutPipe()
	must(t, err, cmd.Start())
	buf := make([]byte, 16)
	if n, err := out.Read(buf); err != nil || string(buf[:n]) != "up\n" {
		t.Fatalf("the command said %q, %v", buf[:n], err)
	}
	must(t, syscall.Kill(-cmd.Process.Pid, syscall.SIGINT))
	_ = cmd.Wait()
	if got := cmd.ProcessState.ExitCode(); got != 1 {
		t.Errorf("the command was interrupted %d times by one interrupt of its group, want once", got)
	}
}

// TestExecHandsAnInterruptOn interrupts the program alone.
func TestExecHandsAnInterruptOn(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	cmd := command(t, "--storage", "memory", "exec", "--", "sh", "-c",
		`trap 'exit 3' INT; echo up; while :; do sleep 0.05; done`)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	out, err := cmd.StdoutPipe()
	must(t, err, cmd.Start())
	buf := make([]byte, 16)
	if n, err := out.Read(buf); err != nil || string(buf[:n]) != "up\n" {
		t.Fatalf("the command said %q, %v", buf[:n], err)
	}
	must(t, cmd.Process.Signal(os.Interrupt))
	_ = cmd.Wait()
	if got := cmd.ProcessState.ExitCode(); got != 3 {
		t.Errorf("exit status %d; want the command's", got)
	}
}

func fileExists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
