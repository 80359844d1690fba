// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"

	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/client/log"
	"github.com/wherry-dev/wherry/webhook"
)

const (
	// convertPath is where a process converts, if the definition does not say it.
	convertPath = "/convert"
	// beforeAnnotation keeps a definition's own conversion while another holds, also beyond the end of a process that is killed.
	beforeAnnotation = "webhook-local/conversion-before"
)

// Conversions lets an API server call this process to convert between the versions of custom resources, while it runs: as a
// runnable of a manager it changes their definitions when the server serves, before the caches are filled, and changes them back
// when the manager stops. What else is in a definition stays. Several replicas are no use here: the one that wrote last is called.
//
// After a process was killed the resources can be read only in the version that they are stored in, until it starts again.
type Conversions struct {
	// Client writes the definitions. It needs the right to patch them.
	Client client.Client

	// Server converts. Nothing is written before it has started.
	Server webhook.Server

	// Address is where the API server reaches Server, "host:port", as in Webhooks.
	Address string

	// CABundle is what trusts the server's certificate, PEM.
	CABundle []byte

	// Definitions are names of CustomResourceDefinitions, "widgets.example.com", that the API server has. One that names a
	// conversion webhook, by its Service or URL, is converted at that path, the others at /convert.
	Definitions []string

	setUp   sync.Once
	written chan struct{} // closed when all definitions are written
}

// NeedLeaderElection is false: objects are converted by whoever runs.
func (*Conversions) NeedLeaderElection() bool { return false }

// String names the runnable in a manager's errors.
func (*Conversions) String() string { return "local conversion webhooks" }

// WaitForConversions blocks until the definitions are written. It returns false if ctx ended first.
func (c *Conversions) WaitForConversions(ctx context.Context) bool {
	select {
	case <-c.done():
		return true
	case <-ctx.Done():
		return false
	}
}

func (c *Conversions) done() chan struct{} {
	c.setUp.Do(func() { c.written = make(chan struct{}) })
	return c.written
}

// Start changes the definitions, and changes them back when ctx ends. It can be called once. A definition whose conversion
// somebody else has changed meanwhile stays.
func (c *Conversions) Start(ctx context.Context) error {
	if !awaitServer(ctx, c.Server) {
		return nil
	}
	for _, name := range c.Definitions {
		if err := c.divert(ctx, name); err != nil {
			return fmt.Errorf("conversion of %s: %w", name, err)
		}
		defer c.putBack(ctx, name)
	}
	close(c.done())
	log.FromContext(ctx).Info("The API server has this process convert custom resources", "address", c.Address)
	<-ctx.Done()
	return nil
}

// divert has the definition's objects converted here.
func (c *Conversions) divert(ctx context.Context, name string) error {
	was, err := c.read(ctx, name)
	if err != nil {
		return err
	}
	own, err := ownConversion(was)
	if err != nil {
		return err
	}
	before, err := json.Marshal(own)
	if err != nil {
		return err
	}
	is := was.DeepCopy()
	annotations := is.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[beforeAnnotation] = string(before)
	is.SetAnnotations(annotations)
	if err := setConversion(is, c.conversion(own)); err != nil {
		return err
	}
	return c.Client.Patch(ctx, is, client.MergeFrom(was))
}

// putBack gives the definition the conversion back that it had.
func (c *Conversions) putBack(ctx context.Context, name string) {
	logger := log.FromContext(ctx).WithValues("name", name)
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeTimeout)
	defer cancel()
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		was, err := c.read(limit, name)
		if err != nil {
			return client.IgnoreNotFound(err)
		}
		if text, _, _ := unstructured.NestedString(was.Object, "spec", "conversion", "webhook", "clientConfig", "caBundle"); text != c.bundle() {
			logger.Info("A conversion is left: somebody else has written it")
			return nil
		}
		own, err := ownConversion(was)
		if err != nil {
			return err
		}
		is := was.DeepCopy()
		unstructured.RemoveNestedField(is.Object, "metadata", "annotations", beforeAnnotation)
		if err := setConversion(is, own); err != nil {
			return err
		}
		return c.Client.Patch(limit, is, client.MergeFromWithOptions(was, client.MergeFromWithOptimisticLock{}))
	})
	if err != nil {
		logger.Error(err, "A conversion is left behind")
	}
}

// read gives the definition as the server has it. It asks for a change of nothing: a read might go through a cache, which is not
// filled yet.
func (c *Conversions) read(ctx context.Context, name string) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
	u.SetName(name)
	return u, c.Client.Patch(ctx, u, client.RawPatch(types.MergePatchType, []byte("{}")))
}

// conversion is own, at this process.
func (c *Conversions) conversion(own map[string]any) map[string]any {
	path, versions := convertPath, []any{"v1"}
	if hook, ok := own["webhook"].(map[string]any); ok {
		path = pathOf(hook, path)
		if given, _ := hook["conversionReviewVersions"].([]any); len(given) > 0 {
			versions = given
		}
	}
	at := map[string]any{"url": urlAt(c.Address, path), "caBundle": c.bundle()}
	return map[string]any{"strategy": "Webhook", "webhook": map[string]any{"conversionReviewVersions": versions, "clientConfig": at}}
}

func (c *Conversions) bundle() string { return base64.StdEncoding.EncodeToString(c.CABundle) }

// ownConversion is the definition's conversion when no process like this one is there.
func ownConversion(definition *unstructured.Unstructured) (map[string]any, error) {
	own, _, err := unstructured.NestedMap(definition.Object, "spec", "conversion")
	if err != nil {
		return nil, err
	}
	// The annotation alone may have outlived the conversion that it belongs to: somebody applied a manifest since.
	kept := definition.GetAnnotations()[beforeAnnotation]
	if at, _, _ := unstructured.NestedString(own, "webhook", "clientConfig", "url"); at != "" && kept != "" {
		own = nil
		if err := json.Unmarshal([]byte(kept), &own); err != nil {
			return nil, fmt.Errorf("annotation %s: %w", beforeAnnotation, err)
		}
	}
	if len(own) == 0 {
		own = map[string]any{"strategy": "None"}
	}
	return own, nil
}

func setConversion(definition *unstructured.Unstructured, conversion map[string]any) error {
	return unstructured.SetNestedMap(definition.Object, conversion, "spec", "conversion")
}

// pathOf is the path of a conversion webhook's Service or URL, or the given one.
func pathOf(hook map[string]any, path string) string {
	if of, _, _ := unstructured.NestedString(hook, "clientConfig", "service", "path"); of != "" {
		return of
	}
	text, _, _ := unstructured.NestedString(hook, "clientConfig", "url")
	if given, err := url.Parse(text); err == nil && given.Path != "" {
		return given.Path
	}
	return path
}
