// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package fake

import (
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured/unstructuredscheme"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/wherry-dev/wherry/client"
)

// unknownManager is the name of a manager who gives none.
const unknownManager = "unknown"

// maxPending bounds how many writes an object keeps for its field management to be worked out later.
const maxPending = 32

// pendingWrite is a write whose effect on managedFields is not worked out yet. The schema of the built-in kinds takes a
// seventh of a second to parse, once in a process, and most tests never look at managed fields nor apply anything: so the
// writes are kept, and gone through when somebody asks.
type pendingWrite struct {
	manager     string
	subresource string
	before      client.Object // nil for a create
	after       client.Object // with the managedFields that the writer sent
}

// managers works out who owns which field.
type managers struct {
	kinds      *kinds
	resetOn    bool // creates lose their status, so nobody owns it
	converters []managedfields.TypeConverter

	once      sync.Once
	converter managedfields.TypeConverter

	mu    sync.Mutex
	byKey map[managerKey]*managedfields.FieldManager // guarded by mu
}

type managerKey struct {
	gvk         schema.GroupVersionKind
	subresource string
	create      bool
}

// of gives the field manager for writes of a kind to a sub-resource.
func (m *managers) of(k *kind, subresource string, create bool) (*managedfields.FieldManager, error) {
	m.once.Do(func() {
		if len(m.converters) == 0 {
			m.converters = []managedfields.TypeConverter{
				applyconfigurations.NewTypeConverter(m.kinds.scheme),
				customConverter{},
			}
		}
		m.converter = firstConverter(m.converters)
	})
	m.mu.Lock()
	defer m.mu.Unlock()
	key := managerKey{k.gvk, subresource, create}
	if fm, ok := m.byKey[key]; ok {
		return fm, nil
	}
	reset := m.resetFields(k, subresource, create)
	var fm *managedfields.FieldManager
	var err error
	if k.typed {
		s := m.kinds.scheme
		fm, err = managedfields.NewDefaultFieldManager(m.converter, s, s, s, k.gvk, k.gvk.GroupVersion(), subresource, reset)
	} else {
		fm, err = managedfields.NewDefaultCRDFieldManager(m.converter, asIs{}, unstructuredscheme.NewUnstructuredDefaulter(),
			unstructuredscheme.NewUnstructuredCreator(), k.gvk, k.gvk.GroupVersion(), subresource, reset)
	}
	if err != nil {
		return nil, fmt.Errorf("manage the fields of %s: %w", k.gvk, err)
	}
	m.byKey[key] = fm
	return fm, nil
}

// resetFields names what a write cannot set, so that its writer does not come to own it.
func (m *managers) resetFields(k *kind, subresource string, create bool) map[fieldpath.APIVersion]fieldpath.Filter {
	if !k.has(hasStatus) || (create && !m.resetOn) {
		return nil
	}
	version := fieldpath.APIVersion(k.gvk.GroupVersion().String())
	if subresource == statusField {
		return map[fieldpath.APIVersion]fieldpath.Filter{
			version: fieldpath.NewIncludeMatcherFilter(fieldpath.MakePrefixMatcherOrDie(statusField)),
		}
	}
	return map[fieldpath.APIVersion]fieldpath.Filter{
		version: fieldpath.NewExcludeSetFilter(fieldpath.NewSet(fieldpath.MakePathOrDie(statusField))),
	}
}

// settle works out what the writes kept in r have done to managedFields.
func (m *managers) settle(k *kind, r *record) error {
	if len(r.pending) == 0 {
		return nil
	}
	var fields []metav1.ManagedFieldsEntry
	var obj client.Object
	for i, p := range r.pending {
		fm, err := m.of(k, p.subresource, p.before == nil)
		if err != nil {
			return err
		}
		before := p.before
		if before == nil {
			if before, err = m.kinds.newStored(k); err != nil {
				return err
			}
		}
		before = before.DeepCopyObject().(client.Object) // the field manager may write to both
		if i > 0 {
			before.SetManagedFields(fields)
		}
		obj = fm.UpdateNoErrors(before, p.after.DeepCopyObject(), p.manager).(client.Object)
		fields = obj.GetManagedFields()
	}
	settled := r.obj.DeepCopyObject().(client.Object)
	settled.SetManagedFields(fields)
	r.obj, r.pending = settled, nil
	return nil
}

// firstConverter is the first of several converters that knows the type.
type firstConverter []managedfields.TypeConverter

func (c firstConverter) ObjectToTyped(obj runtime.Object, opts ...typed.ValidationOptions) (*typed.TypedValue, error) {
	var first error
	for _, converter := range c {
		value, err := converter.ObjectToTyped(obj, opts...)
		if err == nil {
			return value, nil
		}
		if first == nil {
			first = err
		}
	}
	return nil, first
}

func (c firstConverter) TypedToObject(value *typed.TypedValue) (runtime.Object, error) {
	var first error
	for _, converter := range c {
		obj, err := converter.TypedToObject(value)
		if err == nil {
			return obj, nil
		}
		if first == nil {
			first = err
		}
	}
	return nil, first
}

// asIs converts unstructured objects between the one version they have.
type asIs struct{}

func (asIs) Convert(in, out, _ any) error {
	return fmt.Errorf("convert %T to %T: there is only one version", in, out)
}

func (asIs) ConvertToVersion(in runtime.Object, _ runtime.GroupVersioner) (runtime.Object, error) {
	return in, nil
}

func (asIs) ConvertFieldLabel(_ schema.GroupVersionKind, label, value string) (string, string, error) {
	return label, value, nil
}
