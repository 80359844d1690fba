// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package local_test

import (
	"context"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/client/fake"
	"github.com/wherry-dev/wherry/client/interceptor"
	"github.com/wherry-dev/wherry/webhook"
	"github.com/wherry-dev/wherry/webhook/local"
)

// The configuration is the one of the cluster; only how the server is reached is replaced. A manager would start it.
func ExampleWebhooks() {
	certificate, err := webhook.NewSelfSigned()
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	c := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		Create: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.CreateOption) error {
			fmt.Println(*o.(*admissionregistrationv1.ValidatingWebhookConfiguration).Webhooks[0].ClientConfig.URL)
			stop() // this example has seen enough
			return nil
		},
	})
	w := &local.Webhooks{
		Client: c, Address: "127.0.0.1:9443", CABundle: certificate.CABundle,
		Server: webhook.NewServer(webhook.Options{Port: -1}), // in real life mgr.GetWebhookServer()
		Configurations: []client.Object{&admissionregistrationv1.ValidatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: "greeter"},
			Webhooks: []admissionregistrationv1.ValidatingWebhook{{
				Name: "configmaps.greeter.example.com",
				ClientConfig: admissionregistrationv1.WebhookClientConfig{
					Service: &admissionregistrationv1.ServiceReference{Namespace: "greeter", Name: "webhooks", Path: ptr.To("/validate--v1-configmap")},
				},
			}},
		}},
	}
	fmt.Println(w.Start(ctx))
	// Output:
	// https://127.0.0.1:9443/validate--v1-configmap
	// <nil>
}

// The definition is in the cluster already. While the manager runs, this process converts its objects.
func ExampleConversions() {
	certificate, err := webhook.NewSelfSigned()
	if err != nil {
		fmt.Println(err)
		return
	}
	definition := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": "widgets.example.com"},
	}}
	c := fake.NewClientBuilder().WithObjects(definition).Build()
	ctx, stop := context.WithCancel(context.Background())
	w := &local.Conversions{
		Client: c, Address: "127.0.0.1:9443", CABundle: certificate.CABundle,
		Server:      webhook.NewServer(webhook.Options{Port: -1}), // in real life mgr.GetWebhookServer()
		Definitions: []string{"widgets.example.com"},
	}
	ended := make(chan error)
	go func() { ended <- w.Start(ctx) }() // in real life mgr.Add(w)
	show := func() {
		err := c.Get(ctx, client.ObjectKeyFromObject(definition), definition)
		strategy, _, _ := unstructured.NestedString(definition.Object, "spec", "conversion", "strategy")
		url, _, _ := unstructured.NestedString(definition.Object, "spec", "conversion", "webhook", "clientConfig", "url")
		fmt.Println(strategy, url, err)
	}
	w.WaitForConversions(ctx)
	show()
	stop()
	fmt.Println(<-ended)
	ctx = context.Background()
	show()
	// Output:
	// Webhook https://127.0.0.1:9443/convert <nil>
	// <nil>
	// None  <nil>
}
