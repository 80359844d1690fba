// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package replicaset_test

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	ctrl "github.com/wherry-dev/wherry"
	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/client/log/zap"
	"github.com/wherry-dev/wherry/test/envtest"
	"github.com/wherry-dev/wherry/test/envtest/program"
)

// casesAtOnce is how many cases run at a time: they wait more than they work.
const casesAtOnce = 12

func TestMain(m *testing.M) {
	ctrl.SetLogger(zap.New())
	flag.Parse()
	if !slices.ContainsFunc(os.Args, func(a string) bool { return strings.Contains(a, "test.parallel") }) {
		if err := flag.Set("test.parallel", fmt.Sprint(casesAtOnce)); err != nil {
			panic(err)
		}
	}
	m.Run()
}

// behaviour is one thing that a ReplicaSet controller does. Its name says what.
type behaviour struct {
	name string
	run  func(*room)
}

// behaviours are all of them, in the order of a ReplicaSet's life.
var behaviours = slices.Concat(scaling, claiming, ranking, reporting, refusing, ending)

// wanted is how many behaviours there have to be at least.
const wanted = 40

// TestBehaviour runs every case twice on one server: with the example's controller, then with Kubernetes' own. Where the
// two differ the case says so, with the reason.
func TestBehaviour(t *testing.T) {
	if len(behaviours) < wanted {
		t.Errorf("there are %d cases, want %d", len(behaviours), wanted)
	}
	env := &envtest.Environment{ControlPlaneStartTimeout: startLimit}
	env.ControlPlane.GetAPIServer().Configure().Disable("disable-admission-plugins") // as in a cluster: no pod without its service account
	cfg, err := env.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := env.Stop(); err != nil {
			t.Error(err)
		}
	})
	s := scheme(t)
	if err := admissionv1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	live, err := client.New(cfg, client.Options{Scheme: s})
	if err != nil {
		t.Fatal(err)
	}
	for _, side := range []struct {
		name string
		run  func(*testing.T, *tally)
	}{
		{"ours", func(t *testing.T, c *tally) { manage(t, c.config()) }},
		{"kubernetes", runKubernetes},
	} {
		t.Run(side.name, func(t *testing.T) {
			counted := newTally(t, cfg)
			side.run(t, counted)
			witness := newRoom(t, side.name+"-witness", "", live, counted)
			witness.expect(witness.set("witness", 0), 0)
			t.Run("cases", func(t *testing.T) { // ends when all cases have, before the controller
				for i, b := range behaviours {
					t.Run(strings.ReplaceAll(b.name, " ", "_"), func(t *testing.T) {
						t.Parallel()
						b.run(newRoom(t, fmt.Sprintf("%s-%02d", side.name, i), witness.namespace, live, counted))
					})
				}
			})
		})
	}
}

// runKubernetes runs Kubernetes' own ReplicaSet controller until the test ends.
func runKubernetes(t *testing.T, counted *tally) {
	t.Helper()
	path, err := program.Find(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"c": {Server: counted.url}},
		Contexts:       map[string]*clientcmdapi.Context{"c": {Cluster: "c"}},
		CurrentContext: "c",
	}, kubeconfig); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), settle)
	defer cancel()
	cmd := exec.Command(path, "controllers", "--only", "replicaset", "--kubeconfig", kubeconfig)
	cmd.Stderr = os.Stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("Kubernetes' controller: %v", err)
		}
	})
	kill := context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })
	if line, err := bufio.NewReader(stdout).ReadString('\n'); err != nil || line != "running replicaset\n" {
		t.Fatalf("Kubernetes' controller said %q, %v", line, err)
	}
	kill()
}

// TestRegistry wants each case to have a name of its own.
func TestRegistry(t *testing.T) {
	seen := map[string]bool{}
	for _, b := range behaviours {
		if b.name == "" || b.run == nil || seen[b.name] {
			t.Errorf("the case %q has no name of its own, or does nothing", b.name)
		}
		seen[b.name] = true
	}
}
