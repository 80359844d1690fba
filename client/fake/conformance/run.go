// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/client/fake"
)

// eventTimeout is how long a case waits for an event. The fake needs none of it.
const eventTimeout = 10 * time.Second

// Case is one story: some calls on a client whose answers are compared.
type Case struct {
	// Name is unique and stays: the kept answers are filed under it.
	Name string
	// Needs are the behaviours that the fake needs for it; with none, it must answer like the server by default.
	Needs fake.Behaviour
	// Run makes the calls.
	Run func(*Run)
}

// Step is one call and its answer.
type Step struct {
	Do     string   `json:"do"`
	Answer any      `json:"answer,omitempty"`
	Error  *Failure `json:"error,omitempty"`
}

// Run is one case being played.
type Run struct {
	// C is the client that is asked.
	C client.WithWatch

	t     testing.TB
	ctx   context.Context
	id    string
	mask  *mask
	hide  []string
	steps []Step
}

var runs atomic.Int64

// Play plays a case on a client and gives its steps. The namespaces "a" and "b" exist.
func Play(t testing.TB, c client.WithWatch, story Case) []Step {
	r := &Run{C: c, t: t, ctx: t.Context(), mask: newMask()}
	r.id = fmt.Sprintf("run%d-%x", runs.Add(1), time.Now().UnixNano()&0xffffff)
	for _, name := range []string{"a", "b"} {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: r.Name(name)}}
		if err := c.Create(r.ctx, ns); err != nil {
			t.Fatalf("create namespace: %v", err)
		}
	}
	story.Run(r)
	return r.steps
}

// Name gives a name that no other run uses.
func (r *Run) Name(name string) string {
	unique := r.id + "-" + name
	r.mask.name(unique, name)
	return unique
}

// Hide leaves fields, written with dots, out of all answers of the case: those that the server fills with defaults.
func (r *Run) Hide(fields ...string) { r.hide = append(r.hide, fields...) }

// note writes down an answer. On an error there is none.
func (r *Run) note(do string, err error, answer runtime.Object) error {
	step := Step{Do: do}
	if err != nil {
		step.Error = r.mask.failure(err)
	} else if answer != nil {
		step.Answer = r.mask.object(r.t, answer, r.hide)
	}
	r.steps = append(r.steps, step)
	return err
}

// Say writes down a fact.
func (r *Run) Say(what string, fact any) {
	r.steps = append(r.steps, Step{Do: what, Answer: r.mask.value(r.t, fact)})
}

func (r *Run) Get(obj client.Object) error {
	return r.note("get", r.C.Get(r.ctx, client.ObjectKeyFromObject(obj), obj), obj)
}

func (r *Run) List(list client.ObjectList, opts ...client.ListOption) error {
	return r.note("list", r.C.List(r.ctx, list, opts...), list)
}

func (r *Run) Create(obj client.Object, opts ...client.CreateOption) error {
	return r.note("create", r.C.Create(r.ctx, obj, opts...), obj)
}

func (r *Run) Update(obj client.Object, opts ...client.UpdateOption) error {
	return r.note("update", r.C.Update(r.ctx, obj, opts...), obj)
}

func (r *Run) Patch(obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	return r.note("patch", r.C.Patch(r.ctx, obj, patch, opts...), obj)
}

func (r *Run) Delete(obj client.Object, opts ...client.DeleteOption) error {
	return r.note("delete", r.C.Delete(r.ctx, obj, opts...), nil)
}

func (r *Run) DeleteAllOf(obj client.Object, opts ...client.DeleteAllOfOption) error {
	return r.note("delete all", r.C.DeleteAllOf(r.ctx, obj, opts...), nil)
}

func (r *Run) Apply(config *unstructured.Unstructured, opts ...client.ApplyOption) error {
	return r.note("apply", r.C.Apply(r.ctx, client.ApplyConfigurationFromUnstructured(config), opts...), config)
}

func (r *Run) UpdateStatus(obj client.Object, opts ...client.SubResourceUpdateOption) error {
	return r.note("update status", r.C.Status().Update(r.ctx, obj, opts...), obj)
}

func (r *Run) PatchStatus(obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
	return r.note("patch status", r.C.Status().Patch(r.ctx, obj, patch, opts...), obj)
}

func (r *Run) ApplyStatus(config *unstructured.Unstructured, opts ...client.SubResourceApplyOption) error {
	return r.note("apply status", r.C.Status().Apply(r.ctx, client.ApplyConfigurationFromUnstructured(config), opts...), config)
}

func (r *Run) GetSub(name string, obj, sub client.Object) error {
	return r.note("get "+name, r.C.SubResource(name).Get(r.ctx, obj, sub), sub)
}

func (r *Run) CreateSub(name string, obj, sub client.Object) error {
	return r.note("create "+name, r.C.SubResource(name).Create(r.ctx, obj, sub), sub)
}

func (r *Run) UpdateSub(name string, obj, sub client.Object) error {
	return r.note("update "+name, r.C.SubResource(name).Update(r.ctx, obj, client.WithSubResourceBody(sub)), sub)
}

// Made creates obj without writing it down: what the case begins with.
func (r *Run) Made(obj client.Object) {
	r.t.Helper()
	if err := r.C.Create(r.ctx, obj); err != nil {
		r.t.Fatalf("create what the case begins with: %v", err)
	}
}

// Watch opens a watch.
func (r *Run) Watch(list client.ObjectList, opts ...client.ListOption) watch.Interface {
	r.t.Helper()
	w, err := r.C.Watch(r.ctx, list, opts...)
	if r.note("watch", err, nil) != nil {
		return watch.NewEmptyWatch()
	}
	r.t.Cleanup(w.Stop)
	return w
}

// Events reads n events.
func (r *Run) Events(w watch.Interface, n int) {
	r.t.Helper()
	for range n {
		select {
		case e, ok := <-w.ResultChan():
			if !ok {
				r.t.Error("the watch has ended")
				return
			}
			_ = r.note("event "+string(e.Type), nil, e.Object)
		case <-time.After(eventTimeout):
			r.steps = append(r.steps, Step{Do: "no event came"})
			return
		}
	}
}
