// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package komega

import (
	"context"

	"github.com/wherry-dev/wherry/client"
)

// Komega makes functions for gomega's Eventually, Consistently and Expect. Each
// reads or writes when it is called, not when it is made, and blocks no longer
// than the client and the context let it. The key of an object is settled when
// the function is made; the object itself is overwritten at every call.
type Komega interface {
	// Get makes a function that reads obj.
	Get(client.Object) func() error

	// List makes a function that reads a list.
	List(client.ObjectList, ...client.ListOption) func() error

	// Update makes a function that reads an object, calls the given function to
	// change it, and writes it. A conflict is its error: polled, it reads afresh.
	Update(client.Object, func(), ...client.UpdateOption) func() error

	// UpdateStatus is Update for an object's status.
	UpdateStatus(client.Object, func(), ...client.SubResourceUpdateOption) func() error

	// Object makes a function that reads an object and returns it, for matchers
	// that look into it. Beside an error the object is as the last read left it.
	Object(client.Object) func() (client.Object, error)

	// ObjectList is Object for a list.
	ObjectList(client.ObjectList, ...client.ListOption) func() (client.ObjectList, error)

	// WithContext returns a Komega whose requests have this context. The receiver
	// stays as it is.
	WithContext(context.Context) Komega
}

// komega holds its context because gomega calls functions without one.
type komega struct {
	ctx    context.Context
	client client.Client
}

// New makes a Komega of a client, with the background context.
func New(c client.Client) Komega { return &komega{context.Background(), c} }

func (k *komega) WithContext(ctx context.Context) Komega { return &komega{ctx, k.client} }

func (k *komega) Get(obj client.Object) func() error {
	key := client.ObjectKeyFromObject(obj)
	return func() error { return k.client.Get(k.ctx, key, obj) }
}

func (k *komega) List(list client.ObjectList, opts ...client.ListOption) func() error {
	return func() error { return k.client.List(k.ctx, list, opts...) }
}

func (k *komega) Update(obj client.Object, change func(), opts ...client.UpdateOption) func() error {
	return k.change(obj, change, func() error { return k.client.Update(k.ctx, obj, opts...) })
}

func (k *komega) UpdateStatus(obj client.Object, change func(), opts ...client.SubResourceUpdateOption) func() error {
	return k.change(obj, change, func() error { return k.client.Status().Update(k.ctx, obj, opts...) })
}

// change makes a function that reads obj, changes and writes it.
func (k *komega) change(obj client.Object, change func(), write func() error) func() error {
	get := k.Get(obj)
	return func() error {
		if err := get(); err != nil {
			return err
		}
		change()
		return write()
	}
}

func (k *komega) Object(obj client.Object) func() (client.Object, error) {
	get := k.Get(obj)
	return func() (client.Object, error) { return obj, get() }
}

func (k *komega) ObjectList(list client.ObjectList, opts ...client.ListOption) func() (client.ObjectList, error) {
	get := k.List(list, opts...)
	return func() (client.ObjectList, error) { return list, get() }
}
