// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/test/envtest"
	"github.com/wherry-dev/wherry/test/envtest/program"
)

// What the ReplicaSet row does, and how long it waits for anything.
const (
	setsMade    = 200
	podsPerSet  = 10
	setWorkers  = 5
	setRounds   = 7
	usersAtOnce = 10
	setLimit    = 2 * time.Minute
	// stillFor is how long no request has to come until all is done: events are
	// sent after the fact.
	stillFor = 2 * time.Second
)

func replicaSetRows() []row {
	return []row{{
		name:    fmt.Sprintf("ReplicaSet: %d sets of %d pods, then of 0", setsMade, podsPerSet),
		targets: map[unit]float64{wall: 1, requests: 1, cpu: 0.8},
		fixed:   replicaSetFigures,
	}}
}

// replicaSetFigures runs the example's controller and Kubernetes' own in turns,
// each time on a new server.
func replicaSetFigures(rounds int) (map[unit][2]float64, error) {
	dir, err := os.MkdirTemp("", "replicaset")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	ours, kubeconfig := filepath.Join(dir, "replicaset"), filepath.Join(dir, "kubeconfig")
	if out, err := exec.Command("go", "build", "-o", ours, "./replicaset").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build ours: %w: %s", err, out)
	}
	theirs, err := program.Find(context.Background(), os.Stderr)
	if err != nil {
		return nil, err
	}
	samples := map[unit]*[2][]float64{cpu: {}, wall: {}, requests: {}}
	for range min(rounds, setRounds) {
		for side, command := range [][]string{
			{ours, "--workers", strconv.Itoa(setWorkers), "--kubeconfig", kubeconfig},
			{theirs, "controllers", "--only", "replicaset", "--kubeconfig", kubeconfig}, // it has five
		} {
			one, err := keepSets(kubeconfig, command)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", filepath.Base(command[0]), err)
			}
			for u, v := range one {
				samples[u][side] = append(samples[u][side], v)
			}
		}
	}
	figures := map[unit][2]float64{}
	for u, both := range samples {
		figures[u] = [2]float64{median(both[0]), median(both[1])}
	}
	return figures, nil
}

// keepSets starts a server and a controller, has the sets made and emptied, and
// tells what that cost.
func keepSets(kubeconfig string, command []string) (figures map[unit]float64, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), setLimit)
	defer cancel()
	env := &envtest.Environment{}
	cfg, err := env.Start()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, env.Stop()) }()
	cfg.QPS = -1
	scheme := runtime.NewScheme()
	if err := errors.Join(appsv1.AddToScheme(scheme), corev1.AddToScheme(scheme), writeKubeconfig(cfg, kubeconfig)); err != nil {
		return nil, err
	}
	c, err := client.NewWithWatch(cfg, client.Options{Scheme: scheme})
	if err != nil {
		return nil, err
	}
	controller, err := startController(ctx, command)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, controller.stop()) }()
	server := &counter{cfg: cfg}
	if _, err := server.still(ctx); err != nil {
		return nil, err
	}
	return measureSets(ctx, c, server, controller)
}

// measureSets is the measured part.
func measureSets(ctx context.Context, c client.WithWatch, server *counter, controller *process) (map[unit]float64, error) {
	requestsBefore, err := server.total(ctx)
	if err != nil {
		return nil, err
	}
	cpuBefore, err := controller.cpu()
	if err != nil {
		return nil, err
	}
	began := time.Now()
	err = errors.Join(
		allAtOnce(func(i int) error { return c.Create(ctx, newSet(i)) }), await(ctx, c, podsPerSet),
		allAtOnce(func(i int) error {
			return c.Patch(ctx, newSet(i), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":0}}`)))
		}), await(ctx, c, 0),
	)
	took := time.Since(began)
	if err != nil {
		return nil, err
	}
	requestsAfter, err := server.still(ctx)
	if err != nil {
		return nil, err
	}
	cpuAfter, err := controller.cpu()
	if err != nil {
		return nil, err
	}
	const own = 2 * setsMade // what this program sent; its watches are counted by no one
	if least := own + 2*setsMade*podsPerSet; requestsAfter-requestsBefore < least {
		return nil, fmt.Errorf("the server counted %d requests, and it cannot be done with less than %d: do its metrics have other names?", requestsAfter-requestsBefore, least)
	}
	return map[unit]float64{
		wall:     float64(took.Milliseconds()),
		requests: float64(requestsAfter - requestsBefore - own),
		cpu:      float64((cpuAfter - cpuBefore).Microseconds()) / setsMade,
	}, nil
}

func newSet(i int) *appsv1.ReplicaSet {
	n, labels := int32(podsPerSet), map[string]string{"app": fmt.Sprintf("web-%03d", i)}
	return &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: labels["app"]},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: &n, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "example.com/c:1"}}},
			},
		},
	}
}

// allAtOnce does something for each set, as so many users would.
func allAtOnce(do func(i int) error) error {
	errs := make([]error, setsMade)
	var users sync.WaitGroup
	for user := range usersAtOnce {
		users.Go(func() {
			for i := user; i < setsMade; i += usersAtOnce {
				errs[i] = do(i)
			}
		})
	}
	users.Wait()
	return errors.Join(errs...)
}

// await waits until every set says that it has as many pods as it should.
func await(ctx context.Context, c client.WithWatch, pods int32) error {
	w, err := c.Watch(ctx, &appsv1.ReplicaSetList{}, client.InNamespace(metav1.NamespaceDefault))
	if err != nil {
		return err
	}
	defer w.Stop()
	there := map[string]bool{}
	for event := range w.ResultChan() {
		rs, ok := event.Object.(*appsv1.ReplicaSet)
		if !ok {
			return fmt.Errorf("the watch said %+v", event.Object)
		}
		if there[rs.Name] = rs.Status.Replicas == pods && rs.Status.ObservedGeneration == rs.Generation && *rs.Spec.Replicas == pods; !there[rs.Name] {
			delete(there, rs.Name)
		}
		if len(there) == setsMade {
			return nil
		}
	}
	return fmt.Errorf("%d of %d sets had %d pods within %v", len(there), setsMade, pods, setLimit)
}

// counter reads from the server's metrics how many requests it had about what
// a ReplicaSet controller reads and writes.
type counter struct{ cfg *rest.Config }

var counted = regexp.MustCompile(`(?m)^apiserver_request_total\{.*resource="(?:pods|replicasets|events)",.*verb="(?:GET|LIST|POST|PUT|PATCH|APPLY|DELETE)".*\} (\d+)`)

func (c *counter) total(ctx context.Context) (n int, err error) {
	h, err := rest.HTTPClientFor(c.cfg)
	if err != nil {
		return 0, err
	}
	defer h.CloseIdleConnections()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(c.cfg.Host, "/")+"/metrics", nil)
	if err != nil {
		return 0, err
	}
	answer, err := h.Do(req)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("the server's metrics: %s", answer.Status)
	}
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if m := counted.FindStringSubmatch(lines.Text()); m != nil {
			one, err := strconv.Atoi(m[1])
			if err != nil {
				return 0, err
			}
			n += one
		}
	}
	return n, lines.Err()
}

// still waits until no more requests come and returns how many there were.
func (c *counter) still(ctx context.Context) (int, error) {
	for last := -1; ; {
		n, err := c.total(ctx)
		if err != nil || n == last {
			return n, err
		}
		last = n
		select {
		case <-time.After(stillFor):
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}
}

func writeKubeconfig(cfg *rest.Config, file string) error {
	return clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"c": {Server: cfg.Host, CertificateAuthorityData: cfg.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"u": {Token: cfg.BearerToken, ClientCertificateData: cfg.CertData, ClientKeyData: cfg.KeyData}},
		Contexts:       map[string]*clientcmdapi.Context{"c": {Cluster: "c", AuthInfo: "u"}},
		CurrentContext: "c",
	}, file)
}

// process is a running controller.
type process struct{ cmd *exec.Cmd }

// startController starts one and waits until it says that it is running.
func startController(ctx context.Context, command []string) (*process, error) {
	p := &process{cmd: exec.CommandContext(ctx, command[0], command[1:]...)}
	p.cmd.Stderr = os.Stderr
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if !strings.HasPrefix(line, "running") {
		return nil, errors.Join(fmt.Errorf("the controller said %q", line), err, p.stop())
	}
	return p, nil
}

func (p *process) stop() error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	return p.cmd.Wait()
}

// cpu is the CPU time the process has used so far; Linux alone tells it of a
// process that runs.
func (p *process) cpu() (time.Duration, error) {
	const ticks = 100 // a second, on every Linux there is
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	var sum time.Duration
	for _, at := range []int{11, 12} { // user, system
		n, err := strconv.Atoi(fields[at])
		if err != nil {
			return 0, err
		}
		sum += time.Duration(n) * time.Second / ticks
	}
	return sum, nil
}
