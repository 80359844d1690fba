// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"errors"
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/client/interceptor"
)

var errReached = errors.New("the client was reached")

// base is a client that says that it was reached; its embedded interface is nil, so anything else panics.
type base struct{ client.WithWatch }

func (base) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return errReached
}
func (base) List(context.Context, client.ObjectList, ...client.ListOption) error { return errReached }
func (base) Create(context.Context, client.Object, ...client.CreateOption) error { return errReached }
func (base) Delete(context.Context, client.Object, ...client.DeleteOption) error { return errReached }
func (base) DeleteAllOf(context.Context, client.Object, ...client.DeleteAllOfOption) error {
	return errReached
}
func (base) Update(context.Context, client.Object, ...client.UpdateOption) error { return errReached }
func (base) Patch(context.Context, client.Object, client.Patch, ...client.PatchOption) error {
	return errReached
}
func (base) Apply(context.Context, runtime.ApplyConfiguration, ...client.ApplyOption) error {
	return errReached
}
func (base) Watch(context.Context, client.ObjectList, ...client.ListOption) (watch.Interface, error) {
	return nil, errReached
}
func (base) SubResource(string) client.SubResourceClient { return baseSub{} }

type baseSub struct{}

func (baseSub) Get(context.Context, client.Object, client.Object, ...client.SubResourceGetOption) error {
	return errReached
}
func (baseSub) Create(context.Context, client.Object, client.Object, ...client.SubResourceCreateOption) error {
	return errReached
}
func (baseSub) Update(context.Context, client.Object, ...client.SubResourceUpdateOption) error {
	return errReached
}
func (baseSub) Patch(context.Context, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
	return errReached
}
func (baseSub) Apply(context.Context, runtime.ApplyConfiguration, ...client.SubResourceApplyOption) error {
	return errReached
}

// calls has one call for each function of Funcs, by its name.
func calls(ctx context.Context, c client.WithWatch) map[string]func() error {
	obj, list := &corev1.Pod{}, &corev1.PodList{}
	return map[string]func() error{
		"Get":               func() error { return c.Get(ctx, client.ObjectKey{}, obj) },
		"List":              func() error { return c.List(ctx, list) },
		"Create":            func() error { return c.Create(ctx, obj) },
		"Delete":            func() error { return c.Delete(ctx, obj) },
		"DeleteAllOf":       func() error { return c.DeleteAllOf(ctx, obj) },
		"Update":            func() error { return c.Update(ctx, obj) },
		"Patch":             func() error { return c.Patch(ctx, obj, client.Merge) },
		"Apply":             func() error { return c.Apply(ctx, nil) },
		"Watch":             func() error { _, err := c.Watch(ctx, list); return err },
		"SubResourceGet":    func() error { return c.SubResource("status").Get(ctx, obj, obj) },
		"SubResourceCreate": func() error { return c.SubResource("status").Create(ctx, obj, obj) },
		"SubResourceUpdate": func() error { return c.Status().Update(ctx, obj) },
		"SubResourcePatch":  func() error { return c.Status().Patch(ctx, obj, client.Merge) },
		"SubResourceApply":  func() error { return c.Status().Apply(ctx, nil) },
	}
}

// Each function is called in the place of its verb and of no other; the client it is given is the one that was wrapped.
func TestEachFunctionTakesItsVerb(t *testing.T) {
	funcs := reflect.TypeFor[interceptor.Funcs]()
	ctx := t.Context()
	for i := range funcs.NumField() {
		name := funcs.Field(i).Name
		if name == "SubResource" {
			continue // below
		}
		errTaken := errors.New(name)
		var f interceptor.Funcs
		field := reflect.ValueOf(&f).Elem().Field(i)
		field.Set(reflect.MakeFunc(field.Type(), func(args []reflect.Value) []reflect.Value {
			if _, ok := args[1].Interface().(base); !ok {
				t.Errorf("%s was given a %T", name, args[1].Interface())
			}
			if field.Type().In(2).Kind() == reflect.String && args[2].String() != "status" {
				t.Errorf("%s was given the sub-resource %q", name, args[2])
			}
			out := []reflect.Value{reflect.ValueOf(errTaken)}
			if name == "Watch" {
				out = append([]reflect.Value{reflect.Zero(reflect.TypeFor[watch.Interface]())}, out...)
			}
			return out
		}))
		all := calls(ctx, interceptor.NewClient(base{}, f))
		if all[name] == nil {
			t.Fatalf("no call for %s", name)
		}
		for verb, call := range all {
			want := errReached
			if verb == name {
				want = errTaken
			}
			if err := call(); !errors.Is(err, want) {
				t.Errorf("%s with %s replaced: %v", verb, name, err)
			}
		}
	}
}

// SubResource replaces the whole client of a sub-resource, status included, and the functions for its verbs do not count.
func TestSubResource(t *testing.T) {
	var asked []string
	c := interceptor.NewClient(base{}, interceptor.Funcs{
		SubResource: func(c client.WithWatch, name string) client.SubResourceClient {
			asked = append(asked, name)
			return c.SubResource(name)
		},
		SubResourceUpdate: func(context.Context, client.Client, string, client.Object, ...client.SubResourceUpdateOption) error {
			return errors.New("must not be called")
		},
	})
	if err := c.Status().Update(t.Context(), &corev1.Pod{}); !errors.Is(err, errReached) {
		t.Error(err)
	}
	if err := c.SubResource("scale").Update(t.Context(), &corev1.Pod{}); !errors.Is(err, errReached) {
		t.Error(err)
	}
	if !reflect.DeepEqual(asked, []string{"status", "scale"}) {
		t.Errorf("asked for %v", asked)
	}
}
