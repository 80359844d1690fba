// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	stdbytes "bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/rest"
)

// canned answers requests in process with bodies made beforehand, so that what
// is measured is the client alone: no socket, no TLS, no server.
type canned struct {
	object, list map[string][]byte // by content type
}

const (
	typeJSON  = "application/json"
	typeProto = "application/vnd.kubernetes.protobuf"
)

// newCanned answers each request for a pod with pod, and each list with n of
// them.
func newCanned(n int) (*canned, error) {
	pod := referencePod(0)
	list := &corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, ListMeta: metav1.ListMeta{ResourceVersion: "9"}}
	for i := range n {
		list.Items = append(list.Items, *referencePod(i))
	}
	c := &canned{object: map[string][]byte{}, list: map[string][]byte{}}
	for _, body := range []struct {
		obj  runtime.Object
		into map[string][]byte
	}{{pod, c.object}, {list, c.list}} {
		var proto stdbytes.Buffer
		if err := protobuf.NewSerializer(nil, nil).Encode(body.obj, &proto); err != nil {
			return nil, err
		}
		asJSON, err := json.Marshal(body.obj)
		if err != nil {
			return nil, err
		}
		body.into[typeProto], body.into[typeJSON] = proto.Bytes(), asJSON
	}
	return c, nil
}

// RoundTrip answers with the content type the client prefers.
func (c *canned) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body != nil {
		_, _ = io.Copy(io.Discard, req.Body)
		req.Body.Close()
	}
	bodies := c.object
	if req.Method == http.MethodGet && strings.HasSuffix(req.URL.Path, "/pods") {
		bodies = c.list
	}
	contentType := typeJSON
	if strings.HasPrefix(req.Header.Get("Accept"), typeProto) {
		contentType = typeProto
	}
	body := bodies[contentType]
	return &http.Response{
		StatusCode:    http.StatusOK,
		Status:        "200 OK",
		Proto:         "HTTP/1.1",
		ProtoMajor:    1,
		ProtoMinor:    1,
		Header:        http.Header{"Content-Type": {contentType}},
		Body:          io.NopCloser(stdbytes.NewReader(body)),
		ContentLength: int64(len(body)),
		Request:       req,
	}, nil
}

// config is a client configuration that reaches c.
func (c *canned) config() *rest.Config {
	return &rest.Config{Host: "http://canned.invalid", Transport: c, QPS: -1}
}

// referencePod is a pod as a busy cluster has them: labels, owner, environment,
// volumes, conditions, managed fields; about 5 kB of JSON.
func referencePod(i int) *corev1.Pod {
	yes, root := true, int64(65532)
	name := fmt.Sprintf("web-%05d", i)
	pod := &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: fmt.Sprintf("team-%02d", i%100), GenerateName: "web-", UID: "0b0e9a52-7f3e-4d3a-a6c1-2f6e3d1c5b7a",
			ResourceVersion: fmt.Sprint(1000 + i), Generation: 1,
			Labels:      map[string]string{"app": "web", "tier": "front", "pod-template-hash": "7c9f", "release": "stable", "shard": fmt.Sprint(i % 100)},
			Annotations: map[string]string{"example.com/scrape": "true", "example.com/port": "8080", "example.com/checksum": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "11111111-2222-3333-4444-555555555555", Controller: &yes, BlockOwnerDeletion: &yes,
			}},
		},
		Spec: corev1.PodSpec{
			NodeName: fmt.Sprintf("node-%03d", i%500), ServiceAccountName: "web", RestartPolicy: corev1.RestartPolicyAlways,
			SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: &yes, RunAsUser: &root},
			Volumes: []corev1.Volume{
				{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "web"}}}},
				{Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
			},
			Containers: []corev1.Container{{
				Name: "web", Image: "example.com/web:1.2.3", Args: []string{"--listen=:8080", "--verbose"},
				Env:          []corev1.EnvVar{{Name: "MODE", Value: "production"}, {Name: "POD", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}}},
				Ports:        []corev1.ContainerPort{{Name: "http", ContainerPort: 8080, Protocol: corev1.ProtocolTCP}},
				VolumeMounts: []corev1.VolumeMount{{Name: "config", MountPath: "/etc/web"}, {Name: "scratch", MountPath: "/tmp"}},
			}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, HostIP: "10.0.0.1", PodIP: "10.1.2.3"},
	}
	for _, t := range []corev1.PodConditionType{corev1.PodScheduled, corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady, "PodReadyToStartContainers"} {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: t, Status: corev1.ConditionTrue})
	}
	for _, manager := range []string{"kube-controller-manager", "kubelet"} {
		pod.ManagedFields = append(pod.ManagedFields, metav1.ManagedFieldsEntry{
			Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", FieldsType: "FieldsV1",
			FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:metadata":{"f:annotations":{".":{},"f:example.com/scrape":{},"f:example.com/port":{}},"f:labels":{".":{},"f:app":{},"f:tier":{},"f:release":{}}},"f:spec":{"f:containers":{"k:{\"name\":\"web\"}":{".":{},"f:args":{},"f:env":{".":{}},"f:image":{},"f:name":{},"f:ports":{".":{}}}}}}`)},
		})
	}
	return pod
}
