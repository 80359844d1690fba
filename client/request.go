// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/wherry-dev/wherry/client/apiutil"
)

// A call is one request, in any form and with any verb.
type call struct {
	does      string // what it does, for errors: "get", "update scale of"
	verb      Verb   // of a write; empty for a read
	method    string // of HTTP
	form      apiutil.Form
	kind      schema.GroupVersionKind
	namespace string
	name      string
	// subResource is empty if the object itself is meant.
	subResource string
	// collection is set if the call is about many objects: it has no name, and need not have a namespace.
	collection bool
	params     url.Values
	body       []byte
	bodyType   string
	accept     string
	// into is filled with the answer; nil if the caller does not want it.
	into     runtime.Object
	intoKind schema.GroupVersionKind
	// intoConfig is filled instead of into by an apply.
	intoConfig runtime.ApplyConfiguration
	// For the gates.
	uid    types.UID
	dryRun bool
	noRYW  bool
	list   *ListOptions
}

// An answer is what the server sent back.
type answer struct {
	code        int
	contentType string
	body        []byte
}

// requestPath is the one path that every request of a client takes.
type requestPath struct {
	rest      rest.Interface
	resources *resources
	gates     gates
	// plain is set if the config asks for another content type than protobuf.
	plain   bool
	watcher watcher
}

// errorCodecs read a Status; the objects themselves are read by the table of codecs.
var errorCodecs = serializer.NewCodecFactory(newStatusScheme()).WithoutConversion()

func newStatusScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	metav1.AddToGroupVersion(s, schema.GroupVersion{Version: "v1"})
	return s
}

// do sends a call, tells the gates and fills call.into with the answer.
func (p *requestPath) do(ctx context.Context, c *call) error {
	found, err := p.resources.find(c.kind)
	if err != nil {
		return fmt.Errorf("%s: %w", c, err)
	}
	if err := c.check(found); err != nil {
		return fmt.Errorf("%s: %w", c, err)
	}
	settle := func(Outcome) {}
	if c.verb != "" && len(p.gates) > 0 {
		ctx, settle, err = p.gates.begin(ctx, c.write(found))
		if err != nil {
			return fmt.Errorf("%s: refused before it was sent: %w", c, err)
		}
	}
	answer, err := p.send(ctx, c, found)
	settle(Outcome{Err: err, Sent: answer.code != 0 || sent(err), StatusCode: answer.code, ContentType: answer.contentType, Body: answer.body})
	if err != nil {
		return p.explain(c, found, err)
	}
	switch {
	case c.intoConfig != nil:
		err = decodeConfig(answer, c.intoConfig)
	case c.into != nil:
		err = decodeAnswer(answer, c.into, c.intoKind)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", c, err)
	}
	return nil
}

// send sends a call and returns the answer as it came. An answer with another status than success comes with an error of
// package apierrors.
func (p *requestPath) send(ctx context.Context, c *call, found *resource) (answer, error) {
	if err := ctx.Err(); err != nil {
		return answer{}, notSent{context.Cause(ctx)}
	}
	result := requestFor(p.rest, c, found).Do(ctx)
	var a answer
	result.StatusCode(&a.code).ContentType(&a.contentType)
	err := result.Error()
	a.body, _ = result.Raw()
	return a, err
}

// requestFor writes a call as a request of a REST client.
func requestFor(client rest.Interface, c *call, found *resource) *rest.Request {
	name := c.name
	if c.verb == VerbCreate && c.subResource == "" {
		name = "" // the name of a new object is in its body
	}
	request := client.Verb(c.method).AbsPath(found.path(c.namespace, name, c.subResource)...)
	for key, values := range c.params {
		for _, value := range values {
			request.Param(key, value)
		}
	}
	if c.body != nil {
		request.SetHeader("Content-Type", c.bodyType).Body(c.body)
	}
	return request.SetHeader("Accept", c.accept)
}

// notSent marks an error of a request that cannot have reached the server.
type notSent struct{ error }

func (e notSent) Unwrap() error { return e.error }

func sent(err error) bool {
	var not notSent
	return err != nil && !errors.As(err, &not)
}

// check refuses what the server would misunderstand: a missing name would make a request for one object one for all of them.
func (c *call) check(found *resource) error {
	if !found.namespaced {
		c.namespace = ""
	}
	switch {
	case c.collection:
		return nil
	case found.namespaced && c.namespace == "":
		return errors.New("the kind lives in a namespace: set the namespace of the key or object")
	case c.name == "" && (c.verb != VerbCreate || c.subResource != ""):
		return errors.New("resource name may not be empty: set the name of the key or object")
	}
	return errors.Join(segmentError("name", c.name), segmentError("namespace", c.namespace), segmentError("sub-resource", c.subResource))
}

func segmentError(what, value string) error {
	if value == "" {
		return nil
	}
	if wrong := rest.IsValidPathSegmentName(value); len(wrong) > 0 {
		return fmt.Errorf("invalid %s %q: %s", what, value, strings.Join(wrong, ", "))
	}
	return nil
}

// write tells the gates about a call.
func (c *call) write(found *resource) Write {
	return Write{
		Verb:                  c.verb,
		GroupVersionKind:      found.kind,
		Form:                  c.form,
		SubResource:           c.subResource,
		Namespace:             c.namespace,
		Name:                  c.name,
		UID:                   c.uid,
		DryRun:                c.dryRun,
		DisableReadYourWrites: c.noRYW,
		List:                  c.list,
	}
}

// explain adds what an error lacks: kind and key to those that are not the server's, and a remedy where a common mistake
// has a puzzling answer. The server's own errors keep their type, so that type assertions go on working.
func (p *requestPath) explain(c *call, found *resource, err error) error {
	var status *apierrors.StatusError
	if !errors.As(err, &status) {
		return fmt.Errorf("%s: %w", c, err)
	}
	if apierrors.IsNotFound(err) && (status.ErrStatus.Details == nil || status.ErrStatus.Details.Name == "") {
		p.resources.forget(c.kind)
	}
	if c.verb == VerbDeleteAllOf && (apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err)) {
		told := status.ErrStatus
		told.Message += fmt.Sprintf(" (%s: ", c)
		if found.namespaced && c.namespace == "" {
			told.Message += "the server deletes within one namespace only: use InNamespace)"
		} else {
			told.Message += "the server does not delete collections of this kind: list the objects and delete each)"
		}
		return &apierrors.StatusError{ErrStatus: told}
	}
	return err
}

// String says in words what the call does: get Pod "ns/name".
func (c *call) String() string {
	kind := c.kind.Kind
	if c.kind.Group != "" {
		kind += "." + c.kind.Group
	}
	switch key := strings.TrimPrefix(c.namespace+"/"+c.name, "/"); {
	case c.collection && c.namespace == "":
		return fmt.Sprintf("%s %s", c.does, kind)
	case c.collection:
		return fmt.Sprintf("%s %s in namespace %q", c.does, kind, c.namespace)
	default:
		return fmt.Sprintf("%s %s %q", c.does, kind, key)
	}
}

// method names of HTTP by verb of a write.
var methods = map[Verb]string{
	VerbCreate:      http.MethodPost,
	VerbUpdate:      http.MethodPut,
	VerbPatch:       http.MethodPatch,
	VerbApply:       http.MethodPatch,
	VerbDelete:      http.MethodDelete,
	VerbDeleteAllOf: http.MethodDelete,
}
