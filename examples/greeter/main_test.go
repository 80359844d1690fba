// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"
	"time"

	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	ctrl "github.com/wherry-dev/wherry"
	metricsserver "github.com/wherry-dev/wherry/manager/metrics/server"
	"github.com/wherry-dev/wherry/test/envtest"
	"github.com/wherry-dev/wherry/test/envtest/komega"
)

func TestGreeting(t *testing.T) {
	g, env := gomega.NewWithT(t), &envtest.Environment{}
	cfg, err := env.Start()
	g.Expect(err).NotTo(gomega.HaveOccurred())
	t.Cleanup(func() { g.Expect(env.Stop()).To(gomega.Succeed()) })
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{Metrics: metricsserver.Options{BindAddress: "0"}})
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(setup(mgr)).To(gomega.Succeed())
	stopped := make(chan error)
	go func() { stopped <- mgr.Start(t.Context()) }()
	t.Cleanup(func() { g.Expect(<-stopped).To(gomega.Succeed()) })

	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "hello"}, Data: map[string]string{"name": "world"}}
	g.Expect(mgr.GetClient().Create(t.Context(), cm)).To(gomega.Succeed())
	g.Eventually(komega.New(mgr.GetClient()).Object(cm), time.Minute).Should(gomega.HaveField("Data", gomega.HaveKeyWithValue("greeting", "Hello, world!")))
}
