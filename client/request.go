// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
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
	query      string
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

// methods gives the method of HTTP by the verb of a write.
var methods = map[Verb]string{
	VerbCreate:      http.MethodPost,
	VerbUpdate:      http.MethodPut,
	VerbPatch:       http.MethodPatch,
	VerbApply:       http.MethodPatch,
	VerbDelete:      http.MethodDelete,
	VerbDeleteAllOf: http.MethodDelete,
}

// An answer is what the server sent back.
type answer struct {
	code        int
	contentType string
	body        []byte
}

func (a answer) failed() bool { return a.code < http.StatusOK || a.code > http.StatusPartialContent }

// requestPath is the one path that every request of a client takes.
type requestPath struct {
	transport *transport
	resources *resources
	gates     gates
	// plain is set if the config asks for another content type than protobuf.
	plain   bool
	watcher watcher
}

// buffers are what the answers of reads are read into. Decoders copy what they keep, so a buffer is free again when the
// call returns. Answers of writes are not read into them: gates may keep those.
var buffers = sync.Pool{New: func() any { return &bytes.Buffer{} }}

// maxPooledBuffer keeps the buffer of one huge list from staying for ever.
const maxPooledBuffer = 1 << 20

// do sends a call, tells the gates and fills the call's target with the answer.
func (p *requestPath) do(ctx context.Context, c *call) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%s: %w", c, causeOf(ctx))
	}
	found, err := p.resources.find(ctx, c.kind)
	if err != nil {
		return fmt.Errorf("%s: %w", c, err)
	}
	if err := c.check(found); err != nil {
		return fmt.Errorf("%s: %w", c, err)
	}
	if c.verb != "" {
		return p.write(ctx, c, found)
	}
	buffer := buffers.Get().(*bytes.Buffer)
	defer func() {
		if buffer.Cap() <= maxPooledBuffer {
			buffers.Put(buffer)
		}
	}()
	last, _ := p.transport.send(ctx, c, found, buffer)
	return p.finish(c, found, last)
}

// write sends a call that changes something.
func (p *requestPath) write(ctx context.Context, c *call, found *resource) error {
	if len(p.gates) == 0 {
		last, _ := p.transport.send(ctx, c, found, nil)
		return p.finish(c, found, last)
	}
	ctx, settle, err := p.gates.begin(ctx, c.write(found))
	if err != nil {
		return fmt.Errorf("%s: refused before it was sent: %w", c, err)
	}
	last, unsure := p.transport.send(ctx, c, found, nil)
	outcome := Outcome{
		Err: last.err, Sent: true,
		StatusCode: last.answer.code, ContentType: last.answer.contentType, Body: last.answer.body,
	}
	if last.err == nil && last.answer.failed() {
		outcome.Err = errorIn(c, found, last)
	}
	var not notSent
	outcome.Sent = unsure || !errors.As(last.err, &not)
	outcome.Unknown = outcome.Err != nil && outcome.Sent && (unsure || outcome.StatusCode == 0 || outcome.StatusCode >= http.StatusInternalServerError)
	settle(outcome)
	return p.finish(c, found, last)
}

// finish turns what a call came to into what its caller gets.
func (p *requestPath) finish(c *call, found *resource, last attempt) error {
	if last.err != nil {
		return fmt.Errorf("%s: %w", c, last.err)
	}
	if last.answer.failed() {
		return p.explain(c, found, errorIn(c, found, last))
	}
	var err error
	switch {
	case c.intoConfig != nil:
		err = decodeConfig(last.answer, c.intoConfig)
	case c.into != nil:
		err = decodeAnswer(last.answer, c.into, c.intoKind)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", c, err)
	}
	return nil
}

// notSent marks an error of a request that cannot have reached the server.
type notSent struct{ error }

func (e notSent) Unwrap() error { return e.error }

// check refuses what the server would misunderstand: a missing name would make a request for one object one for all of them.
func (c *call) check(found *resource) error {
	if !found.namespaced {
		c.namespace = ""
	}
	switch {
	case c.collection:
		return segmentError("namespace", c.namespace)
	case found.namespaced && c.namespace == "":
		return errors.New("an empty namespace may not be set: the kind lives in a namespace, set that of the key or object")
	case c.name == "" && (c.verb != VerbCreate || c.subResource != ""):
		return errNoName
	case c.verb == VerbCreate && c.subResource == "":
		return segmentError("namespace", c.namespace) // a wrong name is the server's to judge: it knows the kind's rules
	}
	return errors.Join(segmentError("name", c.name), segmentError("namespace", c.namespace), segmentError("sub-resource", c.subResource))
}

var errNoName = errors.New("resource name may not be empty: set the name of the key or object")

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

// explain adds a remedy where a common mistake has a puzzling answer. The server's errors keep their type, so that type
// assertions go on working.
func (p *requestPath) explain(c *call, found *resource, err *apierrors.StatusError) error {
	if apierrors.IsNotFound(err) && !namesAnObject(err) {
		p.resources.forget(c.kind)
	}
	if c.verb == VerbDeleteAllOf && (apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err)) {
		remedy := "the server does not delete collections of this kind: list the objects and delete each"
		if found.namespaced && c.namespace == "" {
			remedy = "the server deletes within one namespace only: use InNamespace"
		}
		err.ErrStatus.Message += fmt.Sprintf(" (%s: %s)", c, remedy)
	}
	return err
}

// namesAnObject tells a 404 for an object from one for a path that the server does not serve: the latter is no Status, or
// one that names nothing.
func namesAnObject(err *apierrors.StatusError) bool {
	return err.ErrStatus.Details != nil && err.ErrStatus.Details.Name != "" && !apierrors.IsUnexpectedServerError(err)
}
