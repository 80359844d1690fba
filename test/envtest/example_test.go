// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package envtest_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/test/envtest"
)

func ExampleEnvironment() {
	env := &envtest.Environment{}
	cfg, err := env.Start()
	if err != nil {
		panic(err)
	}
	defer func() { _ = env.Stop() }()

	c, err := client.New(cfg, client.Options{})
	if err != nil {
		panic(err)
	}
	var ns corev1.Namespace
	fmt.Println(c.Get(context.Background(), client.ObjectKey{Name: "default"}, &ns), ns.Status.Phase)
	// Output: <nil> Active
}

func ExampleEnvironment_Restore() {
	ctx := context.Background()
	env := &envtest.Environment{}
	cfg, err := env.Start()
	if err != nil {
		panic(err)
	}
	defer func() { _ = env.Stop() }()
	c, err := client.New(cfg, client.Options{})
	if err != nil {
		panic(err)
	}

	clean, err := env.Snapshot(ctx) // once, after Start
	if err != nil {
		panic(err)
	}
	fmt.Println("create:", c.Create(ctx, configMap("leftover", "x"))) // what a test does
	fmt.Println("restore:", env.Restore(ctx, clean))                  // after each test
	err = c.Get(ctx, client.ObjectKey{Namespace: "default", Name: "leftover"}, &corev1.ConfigMap{})
	fmt.Println("still there:", !apierrors.IsNotFound(err))
	// Output:
	// create: <nil>
	// restore: <nil>
	// still there: false
}

func ExampleEnvironment_AddUser() {
	env := &envtest.Environment{}
	if _, err := env.Start(); err != nil {
		panic(err)
	}
	defer func() { _ = env.Stop() }()

	user, err := env.AddUser(envtest.User{Name: "ann", Groups: []string{"developers"}}, nil)
	if err != nil {
		panic(err)
	}
	c, err := client.New(user.Config(), client.Options{})
	if err != nil {
		panic(err)
	}
	err = c.List(context.Background(), &corev1.SecretList{})
	fmt.Println("forbidden:", apierrors.IsForbidden(err))
	// Output: forbidden: true
}

func ExampleAPIServer_Configure() {
	env := &envtest.Environment{}
	env.ControlPlane.GetAPIServer().Configure().Append("enable-admission-plugins", "AlwaysPullImages")
	cfg, err := env.Start()
	if err != nil {
		panic(err)
	}
	defer func() { _ = env.Stop() }()

	c, err := client.New(cfg, client.Options{})
	if err != nil {
		panic(err)
	}
	pod := plainPod("p")
	pod.Namespace = "default"
	fmt.Println(c.Create(context.Background(), pod), pod.Spec.Containers[0].ImagePullPolicy)
	// Output: <nil> Always
}

func ExampleReadCRDFiles() {
	options := envtest.CRDInstallOptions{Paths: []string{"no/such/folder"}, ErrorIfPathMissing: true}
	fmt.Println(envtest.ReadCRDFiles(&options))
	// Output: CRD path: stat no/such/folder: no such file or directory; it is looked up from the test's own folder
}
