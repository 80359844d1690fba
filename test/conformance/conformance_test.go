// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/client/fake/conformance"
	"github.com/wherry-dev/wherry/test/envtest"
)

// record writes the server's answers down instead of comparing them with those that are.
var record = flag.Bool("record", false, "write the server's answers to the root module")

const answersFile = "../../client/fake/conformance/testdata/answers.json"

// together bounds how many cases are played at once.
const together = 4

var server client.WithWatch

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(conformance.WidgetDefinition().Object, crd); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	env := &envtest.Environment{ControlPlaneStartTimeout: 2 * time.Minute, CRDs: []*apiextensionsv1.CustomResourceDefinition{crd}}
	cfg, err := env.Start()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() {
		if err := env.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}()
	cfg = rest.CopyConfig(cfg)
	cfg.QPS = -1
	cfg.UserAgent = "unknown/1" // the fake's manager of fields, where a case names none
	if server, err = client.NewWithWatch(cfg, client.Options{Scheme: scheme.Scheme}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// TestServer plays all cases on the server and compares its answers with those that the fake client is held to.
func TestServer(t *testing.T) {
	kept, err := conformance.Kept()
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	answers := map[string][]conformance.Step{}
	slots := make(chan struct{}, together)
	t.Run("cases", func(t *testing.T) {
		for _, c := range conformance.Cases() {
			t.Run(c.Name, func(t *testing.T) {
				t.Parallel()
				slots <- struct{}{}
				defer func() { <-slots }()
				got := conformance.Play(t, server, c)
				mu.Lock()
				answers[c.Name] = got
				mu.Unlock()
				if *record {
					return
				}
				for _, line := range conformance.Diff(kept[c.Name], got) {
					t.Errorf("kept answer and server differ (write them down anew with -record and look at what changed): %s", line)
				}
			})
		}
	})
	if *record {
		write(t, answers)
	}
}

// write puts each case on a line of its own, so that a change of the server's answers can be read as a diff.
func write(t *testing.T, answers map[string][]conformance.Step) {
	t.Helper()
	var out bytes.Buffer
	before := "{\n"
	for _, name := range slices.Sorted(maps.Keys(answers)) {
		steps, err := json.Marshal(map[string]any{name: answers[name]})
		if err != nil {
			t.Fatal(err)
		}
		out.WriteString(before)
		out.Write(steps[1 : len(steps)-1])
		before = ",\n"
	}
	out.WriteString("\n}\n")
	if err := os.WriteFile(answersFile, out.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}
