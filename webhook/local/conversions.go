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
	// divertedAnnotation keeps a definition's own conversion while another holds, also beyond the end of a process that is killed.
	divertedAnnotation = "webhook-local/conversion-before"
)

// diverted is what divertedAnnotation holds, as JSON.
type diverted struct {
	URL    string         `json:"url"`    // that the objects are converted at
	Before map[string]any `json:"before"` // the definition's own conversion
}

// Conversions lets an API server call this process to convert between the versions of custom resources, while it runs: as a
// runnable of a manager it changes their definitions when the server serves, before the caches are filled, and changes them back
// when the manager stops. What else is in a definition stays. Several replicas are no use here: the one that wrote last is called.
//
// After a process was killed, or could not write any more because it lost its lease, the resources can be read only in the version
// that they are stored in, until it starts again. As long as a definition is changed, kubectl apply fails for a manifest of it that
// names a Service: it leaves the URL there as well, and the API server refuses both.
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
	var begun []string
	defer func() { c.putBack(ctx, begun) }()
	for _, name := range c.Definitions {
		was, err := c.read(ctx, name)
		if err == nil {
			begun = append(begun, name) // a write that fails may get through all the same
			err = c.divert(ctx, was)
		}
		if err != nil {
			return fmt.Errorf("conversion of %s: %w", name, err)
		}
	}
	close(c.done())
	log.FromContext(ctx).Info("The API server has this process convert custom resources", "address", c.Address)
	<-ctx.Done()
	return nil
}

// divert has the definition's objects converted here.
func (c *Conversions) divert(ctx context.Context, was *unstructured.Unstructured) error {
	own, err := ownConversion(was)
	if err != nil {
		return err
	}
	kept, err := json.Marshal(diverted{URL: c.urlFor(own), Before: own})
	if err != nil {
		return err
	}
	is := was.DeepCopy()
	annotations := is.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[divertedAnnotation] = string(kept)
	is.SetAnnotations(annotations)
	if err := setConversion(is, c.conversion(own)); err != nil {
		return err
	}
	return c.Client.Patch(ctx, is, client.MergeFrom(was))
}

// putBack gives the definitions the conversions back that they had.
func (c *Conversions) putBack(ctx context.Context, names []string) {
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeTimeout)
	defer cancel()
	for _, name := range names {
		err := retry.RetryOnConflict(retry.DefaultRetry, func() error { return c.restore(limit, name) })
		if err != nil {
			log.FromContext(ctx).Error(err, "A conversion is left behind", "name", name)
		}
	}
}

// restore gives the definition the conversion back that it had, if it is converted here.
func (c *Conversions) restore(ctx context.Context, name string) error {
	was, err := c.read(ctx, name)
	if err != nil {
		return client.IgnoreNotFound(err)
	}
	own, err := ownConversion(was)
	if err != nil {
		return err
	}
	if at := whereConverted(was); at.url != c.urlFor(own) || at.bundle != c.bundle() {
		log.FromContext(ctx).Info("A conversion is left as it is: somebody else has written it", "name", name)
		return nil
	}
	is := was.DeepCopy()
	unstructured.RemoveNestedField(is.Object, "metadata", "annotations", divertedAnnotation)
	if err := setConversion(is, own); err != nil {
		return err
	}
	return c.Client.Patch(ctx, is, client.MergeFromWithOptions(was, client.MergeFromWithOptimisticLock{}))
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
	versions := []any{"v1"}
	if given, _, _ := unstructured.NestedSlice(own, "webhook", "conversionReviewVersions"); len(given) > 0 {
		versions = given
	}
	at := map[string]any{"url": c.urlFor(own), "caBundle": c.bundle()}
	return map[string]any{"strategy": "Webhook", "webhook": map[string]any{"conversionReviewVersions": versions, "clientConfig": at}}
}

// urlFor is where this process converts in own's place.
func (c *Conversions) urlFor(own map[string]any) string { return urlAt(c.Address, pathOf(own)) }

func (c *Conversions) bundle() string { return base64.StdEncoding.EncodeToString(c.CABundle) }

// place is where a definition's objects are converted, if that is at a URL.
type place struct{ url, bundle string }

func whereConverted(definition *unstructured.Unstructured) (at place) {
	at.url, _, _ = unstructured.NestedString(definition.Object, "spec", "conversion", "webhook", "clientConfig", "url")
	at.bundle, _, _ = unstructured.NestedString(definition.Object, "spec", "conversion", "webhook", "clientConfig", "caBundle")
	return at
}

// ownConversion is the definition's conversion when no process like this one is there.
func ownConversion(definition *unstructured.Unstructured) (map[string]any, error) {
	own, _, err := unstructured.NestedMap(definition.Object, "spec", "conversion")
	if err != nil {
		return nil, err
	}
	if text, found := definition.GetAnnotations()[divertedAnnotation]; found {
		var kept diverted
		if err := json.Unmarshal([]byte(text), &kept); err != nil {
			return nil, fmt.Errorf("annotation %s: %w", divertedAnnotation, err)
		}
		// The annotation may have outlived the conversion that it belongs to: somebody applied a manifest since.
		if whereConverted(definition).url == kept.URL {
			own = kept.Before
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

// pathOf is the path of a conversion's Service or URL, or convertPath.
func pathOf(conversion map[string]any) string {
	if of, _, _ := unstructured.NestedString(conversion, "webhook", "clientConfig", "service", "path"); of != "" {
		return of
	}
	text, _, _ := unstructured.NestedString(conversion, "webhook", "clientConfig", "url")
	if given, err := url.Parse(text); err == nil && given.Path != "" {
		return given.Path
	}
	return convertPath
}
