// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package program_test

import (
	"bufio"
	"fmt"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	apps "k8s.io/api/apps/v1"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestControllersMakeAClusterMove(t *testing.T) {
	p := start(t, "--data-dir", t.TempDir())
	cmd := command(t, "controllers", "--only", "replicaset,deployment,job", "--kubeconfig", p.KubeconfigFile)
	out, err := cmd.StdoutPipe()
	must(t, err, cmd.Start())
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "running replicaset,deployment,job\n" {
		t.Fatalf("it said %q, %v", line, err)
	}
	c := p.client(t)
	template := core.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
		Spec:       core.PodSpec{Containers: []core.Container{{Name: "c", Image: "i"}}},
	}
	three := int32(3)
	_, err = c.AppsV1().Deployments("default").Create(t.Context(), &apps.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec:       apps.DeploymentSpec{Replicas: &three, Selector: &metav1.LabelSelector{MatchLabels: template.Labels}, Template: template},
	}, metav1.CreateOptions{})
	must(t, err)
	once := template.DeepCopy()
	once.Labels = nil
	once.Spec.RestartPolicy = core.RestartPolicyNever
	_, err = c.BatchV1().Jobs("default").Create(t.Context(), &batch.Job{ObjectMeta: metav1.ObjectMeta{Name: "once"}, Spec: batch.JobSpec{Template: *once}}, metav1.CreateOptions{})
	must(t, err)
	for selector, want := range map[string]int{"app=web": 3, "job-name=once": 1} {
		eventually(t, 15*time.Second, func() string {
			pods, err := c.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{LabelSelector: selector})
			if err != nil || len(pods.Items) != want {
				return fmt.Sprintf("%d pods of %s, %v; want %d", len(pods.Items), selector, err, want)
			}
			return ""
		})
	}
	must(t, cmd.Process.Signal(syscall.SIGTERM))
	if err := cmd.Wait(); err != nil {
		t.Errorf("it did not stop in good order: %v", err)
	}
}

func TestControllersRefuse(t *testing.T) {
	none := filepath.Join(t.TempDir(), "none")
	refused(t, 2, []string{"controllers"}, "--only")
	refused(t, 1, []string{"controllers", "--only", "replicaset", "--kubeconfig", none}, none)
}
