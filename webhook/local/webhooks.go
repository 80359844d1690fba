// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/client/log"
	"github.com/wherry-dev/wherry/webhook"
)

const (
	// startInterval is how often the server is asked whether it serves.
	startInterval = 20 * time.Millisecond
	// removeTimeout bounds how long taking the configurations back may hold the end of the process.
	removeTimeout = 5 * time.Second
)

// Webhooks are webhook configurations that hold while a process runs: as a runnable of a manager they are written when the server
// serves, and deleted when the manager stops. Several replicas are no use here: the one that wrote last is called.
//
// A process that is killed, or that cannot write any more because it lost its lease, leaves them behind, until it starts again.
// Let FailurePolicy be Ignore, and the selectors narrow, where nobody but the process itself should suffer from that.
type Webhooks struct {
	// Client writes the configurations.
	Client client.Client

	// Server serves the webhooks. Nothing is written before it has started.
	Server webhook.Server

	// Address is where the API server reaches Server, "host:port". A loopback address is right for an API server on this machine,
	// and wrong for one in a container on it.
	Address string

	// CABundle is what trusts the server's certificate, PEM; that of a webhook.SelfSigned for instance.
	CABundle []byte

	// Configurations are of type *MutatingWebhookConfiguration or *ValidatingWebhookConfiguration, as they are for a cluster: of a
	// webhook's Service, or of its URL, the path counts. They are not changed. One that the API server has already is overwritten.
	Configurations []client.Object
}

// NeedLeaderElection is false: webhooks are served by whoever runs.
func (*Webhooks) NeedLeaderElection() bool { return false }

// String names the runnable in a manager's errors.
func (*Webhooks) String() string { return "local webhook configurations" }

// Start writes the configurations, and deletes them when ctx ends. One that somebody else has written meanwhile stays.
func (w *Webhooks) Start(ctx context.Context) error {
	configurations, err := w.redirected()
	if err != nil {
		return err
	}
	if !awaitServer(ctx, w.Server) {
		return nil
	}
	defer w.remove(ctx, configurations)
	for _, c := range configurations {
		if err := w.write(ctx, c); err != nil {
			return fmt.Errorf("write %T %s: %w", c, c.GetName(), err)
		}
	}
	log.FromContext(ctx).Info("The API server calls the webhooks of this process", "address", w.Address)
	<-ctx.Done()
	return nil
}

// redirected are copies of the configurations whose webhooks are reached at w.Address.
func (w *Webhooks) redirected() ([]client.Object, error) {
	var all []client.Object
	for _, c := range w.Configurations {
		switch c := c.DeepCopyObject().(type) {
		case *admissionregistrationv1.MutatingWebhookConfiguration:
			for i := range c.Webhooks {
				c.Webhooks[i].ClientConfig = w.reach(c.Webhooks[i].ClientConfig)
			}
			all = append(all, c)
		case *admissionregistrationv1.ValidatingWebhookConfiguration:
			for i := range c.Webhooks {
				c.Webhooks[i].ClientConfig = w.reach(c.Webhooks[i].ClientConfig)
			}
			all = append(all, c)
		default:
			return nil, fmt.Errorf("a %T is no webhook configuration: want one of admissionregistration.k8s.io/v1", c)
		}
	}
	return all, nil
}

// reach is how the API server is to reach the path of config.
func (w *Webhooks) reach(config admissionregistrationv1.WebhookClientConfig) admissionregistrationv1.WebhookClientConfig {
	path := "/"
	switch {
	case config.Service != nil && config.Service.Path != nil:
		path = *config.Service.Path
	case config.URL != nil:
		if given, err := url.Parse(*config.URL); err == nil { // the API server refuses a URL that is none
			path = cmp.Or(given.Path, "/")
		}
	}
	text := urlAt(w.Address, path)
	return admissionregistrationv1.WebhookClientConfig{URL: &text, CABundle: w.CABundle}
}

func urlAt(address, path string) string {
	return (&url.URL{Scheme: "https", Host: address, Path: path}).String()
}

// awaitServer blocks until server serves. It returns false if ctx ended first.
func awaitServer(ctx context.Context, server webhook.Server) bool {
	started := server.StartedChecker()
	tick := time.NewTicker(startInterval)
	defer tick.Stop()
	for started(nil) != nil {
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
	}
	return ctx.Err() == nil
}

// write creates c, or overwrites its webhooks. It reads nothing: a read through a manager's client would watch the kind.
func (w *Webhooks) write(ctx context.Context, c client.Object) error {
	patch, err := json.Marshal(c)
	if err != nil {
		return err
	}
	err = w.Client.Create(ctx, c)
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	return w.Client.Patch(ctx, c, client.RawPatch(types.MergePatchType, patch)) // a merge patch replaces lists
}

// remove deletes those of the configurations that were written, and that are as they were written.
func (w *Webhooks) remove(ctx context.Context, configurations []client.Object) {
	logger := log.FromContext(ctx)
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeTimeout)
	defer cancel()
	for _, c := range configurations {
		version, uid := c.GetResourceVersion(), c.GetUID()
		if version == "" {
			continue
		}
		err := w.Client.Delete(limit, c, client.Preconditions{UID: &uid, ResourceVersion: &version})
		switch {
		case apierrors.IsConflict(err):
			logger.Info("A webhook configuration is left: somebody else has written it", "name", c.GetName())
		case client.IgnoreNotFound(err) != nil:
			logger.Error(err, "A webhook configuration is left behind", "name", c.GetName())
		}
	}
}
