// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package envtest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/client-go/rest"

	"github.com/wherry-dev/wherry/client"
)

// WebhookInstallOptions say which webhook configurations to install, and where
// this process serves the webhooks. Environment.Start prepares and installs them;
// the webhook server of the manager under test then takes LocalServingHost,
// LocalServingPort and LocalServingCertDir.
type WebhookInstallOptions struct {
	// Paths are files with webhook configurations, or folders whose files (.yaml,
	// .yml, .json) may hold them among other objects. Folders are not searched
	// deeper.
	Paths []string

	// MutatingWebhooks and ValidatingWebhooks are configurations to install beside
	// those found in Paths, which PrepWithoutInstalling puts here too. The objects
	// given stay as they are: it puts copies in their place.
	MutatingWebhooks   []*admissionregistrationv1.MutatingWebhookConfiguration
	ValidatingWebhooks []*admissionregistrationv1.ValidatingWebhookConfiguration

	// IgnoreSchemeConvertible makes every CRD convert in this process, also where
	// the scheme does not say so: for types that are unstructured.
	IgnoreSchemeConvertible bool

	// IgnoreErrorIfPathMissing passes over a path that does not exist; otherwise
	// that is an error.
	IgnoreErrorIfPathMissing bool

	// LocalServingHost is the address to serve webhooks on; empty means 127.0.0.1.
	LocalServingHost string

	// LocalServingPort is the port to serve them on; zero means a free one, which
	// is put here.
	LocalServingPort int

	// LocalServingCertDir is the folder with tls.crt and tls.key for the webhook
	// server; empty means a temporary one, which Cleanup removes.
	LocalServingCertDir string

	// LocalServingCAData is what the API server needs to trust that certificate,
	// PEM. Given together with LocalServingCertDir, the certificate is the caller's
	// and stays as it is; otherwise one is made.
	LocalServingCAData []byte

	// LocalServingHostExternalName is the host by which the API server reaches the
	// webhooks; empty means LocalServingHost.
	LocalServingHostExternalName string

	// MaxTime bounds the wait for what was installed; zero means 10 s.
	MaxTime time.Duration

	// PollInterval is how often is asked meanwhile; zero means 100 ms.
	PollInterval time.Duration

	madeCert bool   // the certificate was made here
	madeDir  string // LocalServingCertDir, if it was made here
}

// PrepWithoutInstalling makes the certificate, chooses the port, reads Paths and
// has all configurations call this process. It may be called again: certificate
// and port stay, until Cleanup.
func (o *WebhookInstallOptions) PrepWithoutInstalling() error {
	if err := o.certify(); err != nil {
		return fmt.Errorf("webhook certificate: %w", err)
	}
	if err := o.read(); err != nil {
		return err
	}
	return o.ModifyWebhookDefinitions()
}

// ModifyWebhookDefinitions has the configurations call this process: one that
// names a service gets the URL of its path here, and trusts LocalServingCAData.
// One that names a URL elsewhere keeps it, and its caBundle if it has one.
func (o *WebhookInstallOptions) ModifyWebhookDefinitions() error {
	address, err := o.address()
	if err != nil {
		return err
	}
	base := "https://" + address
	o.MutatingWebhooks = slices.Clone(o.MutatingWebhooks)
	for i, c := range o.MutatingWebhooks {
		c = c.DeepCopy()
		for j := range c.Webhooks {
			o.localise(&c.Webhooks[j].ClientConfig, base)
		}
		o.MutatingWebhooks[i] = c
	}
	o.ValidatingWebhooks = slices.Clone(o.ValidatingWebhooks)
	for i, c := range o.ValidatingWebhooks {
		c = c.DeepCopy()
		for j := range c.Webhooks {
			o.localise(&c.Webhooks[j].ClientConfig, base)
		}
		o.ValidatingWebhooks[i] = c
	}
	return nil
}

// localise has one webhook call this process.
func (o *WebhookInstallOptions) localise(c *admissionregistrationv1.WebhookClientConfig, base string) {
	if c.Service != nil {
		path := "/"
		if c.Service.Path != nil {
			path += strings.TrimLeft(*c.Service.Path, "/")
		}
		url := base + path
		c.Service, c.URL, c.CABundle = nil, &url, o.LocalServingCAData
	}
	if len(c.CABundle) == 0 || c.URL != nil && strings.HasPrefix(*c.URL, base+"/") {
		c.CABundle = o.LocalServingCAData
	}
}

// address returns host:port of the webhooks as the API server sees it, and
// chooses what was left open.
func (o *WebhookInstallOptions) address() (string, error) {
	if o.LocalServingHost == "" {
		o.LocalServingHost = loopback
	}
	if o.LocalServingPort == 0 {
		port, err := freePort(o.LocalServingHost)
		if err != nil {
			return "", fmt.Errorf("where to serve webhooks: %w", err)
		}
		o.LocalServingPort = port
	}
	host := o.LocalServingHostExternalName
	if host == "" {
		host = o.LocalServingHost
	}
	return net.JoinHostPort(host, strconv.Itoa(o.LocalServingPort)), nil
}

// Names of the files that a webhook server looks for by default.
const (
	webhookCert = "tls.crt"
	webhookKey  = "tls.key"
)

// certify makes the certificate, unless there is one.
func (o *WebhookInstallOptions) certify() error {
	if o.madeCert || len(o.LocalServingCAData) > 0 && o.LocalServingCertDir != "" {
		return nil
	}
	ca, err := newAuthority()
	if err != nil {
		return err
	}
	cert, key, err := ca.serving("localhost", loopback, o.LocalServingHost, o.LocalServingHostExternalName)
	if err != nil {
		return err
	}
	if o.LocalServingCertDir == "" {
		dir, err := os.MkdirTemp("", "envtest-webhook-")
		if err != nil {
			return err
		}
		o.LocalServingCertDir, o.madeDir = dir, dir
	}
	for name, content := range map[string][]byte{webhookCert: cert, webhookKey: key} {
		if err := os.WriteFile(filepath.Join(o.LocalServingCertDir, name), content, 0o600); err != nil {
			return errors.Join(err, o.Cleanup())
		}
	}
	o.LocalServingCAData, o.madeCert = ca.bundle(), true
	return nil
}

// read adds the configurations found in Paths; one of the same name takes the
// place of what was there.
func (o *WebhookInstallOptions) read() error {
	documents, err := readManifests("webhook", o.Paths, !o.IgnoreErrorIfPathMissing)
	if err != nil {
		return err
	}
	version := admissionregistrationv1.SchemeGroupVersion.String()
	for _, d := range documents {
		switch d.Kind {
		case "MutatingWebhookConfiguration":
			c := &admissionregistrationv1.MutatingWebhookConfiguration{}
			if err := d.into(c, version); err != nil {
				return err
			}
			o.MutatingWebhooks = put(o.MutatingWebhooks, c)
		case "ValidatingWebhookConfiguration":
			c := &admissionregistrationv1.ValidatingWebhookConfiguration{}
			if err := d.into(c, version); err != nil {
				return err
			}
			o.ValidatingWebhooks = put(o.ValidatingWebhooks, c)
		}
	}
	return nil
}

// put returns a list with obj in it, in place of one of its name.
func put[T client.Object](list []T, obj T) []T {
	list = slices.Clone(list)
	if i := slices.IndexFunc(list, func(o T) bool { return o.GetName() == obj.GetName() }); i >= 0 {
		list[i] = obj
		return list
	}
	return append(list, obj)
}

// Install prepares what was not prepared, creates or updates the configurations
// and waits until the server has them.
func (o *WebhookInstallOptions) Install(config *rest.Config) error {
	if len(o.LocalServingCAData) == 0 {
		if err := o.PrepWithoutInstalling(); err != nil {
			return err
		}
	}
	if len(o.MutatingWebhooks)+len(o.ValidatingWebhooks) == 0 {
		return nil
	}
	c, err := ownClient(config)
	if err != nil {
		return err
	}
	for _, w := range o.MutatingWebhooks {
		if err := createOrReplace(c, w, &admissionregistrationv1.MutatingWebhookConfiguration{}); err != nil {
			return fmt.Errorf("install mutating webhooks %s: %w", w.Name, err)
		}
	}
	for _, w := range o.ValidatingWebhooks {
		if err := createOrReplace(c, w, &admissionregistrationv1.ValidatingWebhookConfiguration{}); err != nil {
			return fmt.Errorf("install validating webhooks %s: %w", w.Name, err)
		}
	}
	return WaitForWebhooks(config, o.MutatingWebhooks, o.ValidatingWebhooks, *o)
}

// uninstall deletes the configurations. One that is gone already is no error.
func (o *WebhookInstallOptions) uninstall(config *rest.Config) error {
	c, err := ownClient(config)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
	defer cancel()
	for _, w := range o.installed() {
		if err := client.IgnoreNotFound(c.Delete(ctx, w)); err != nil {
			return fmt.Errorf("delete webhooks %s: %w", w.GetName(), err)
		}
	}
	return nil
}

// installed are empty objects with the names of all configurations.
func (o *WebhookInstallOptions) installed() []client.Object {
	return emptyWebhooks(o.MutatingWebhooks, o.ValidatingWebhooks)
}

func emptyWebhooks(mutating []*admissionregistrationv1.MutatingWebhookConfiguration, validating []*admissionregistrationv1.ValidatingWebhookConfiguration) []client.Object {
	var out []client.Object
	for _, w := range mutating {
		c := &admissionregistrationv1.MutatingWebhookConfiguration{}
		c.Name = w.Name
		out = append(out, c)
	}
	for _, w := range validating {
		c := &admissionregistrationv1.ValidatingWebhookConfiguration{}
		c.Name = w.Name
		out = append(out, c)
	}
	return out
}

// WaitForWebhooks waits until the server has all these configurations. That they
// are served is another matter: see WebhookInstallOptions.WaitUntilServed.
func WaitForWebhooks(config *rest.Config, mutatingWebhooks []*admissionregistrationv1.MutatingWebhookConfiguration, validatingWebhooks []*admissionregistrationv1.ValidatingWebhookConfiguration, options WebhookInstallOptions) error {
	c, err := ownClient(config)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), orDefault(options.MaxTime, defaultMaxTime))
	defer cancel()
	for _, w := range emptyWebhooks(mutatingWebhooks, validatingWebhooks) {
		get := func() error { return c.Get(ctx, client.ObjectKeyFromObject(w), w) }
		if err := poll(ctx, orDefault(options.PollInterval, defaultPollInterval), get); err != nil {
			return fmt.Errorf("webhooks %s are not installed: %w", w.GetName(), err)
		}
	}
	return nil
}

// Cleanup removes the certificate that PrepWithoutInstalling made, and its
// folder if that was made too. What the caller put there stays.
func (o *WebhookInstallOptions) Cleanup() error {
	var err error
	switch {
	case o.madeDir != "":
		err = os.RemoveAll(o.madeDir)
		o.LocalServingCertDir = ""
	case o.madeCert:
		err = errors.Join(os.Remove(filepath.Join(o.LocalServingCertDir, webhookCert)), os.Remove(filepath.Join(o.LocalServingCertDir, webhookKey)))
	}
	if o.madeCert {
		o.LocalServingCAData = nil
	}
	o.madeDir, o.madeCert = "", false
	return err
}
