// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"fmt"
	"reflect"
	"sync"
	"unsafe"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/wherry-dev/wherry/client/apiutil"
)

// shape knows how to copy objects of one Go struct type from one place in memory to another. It is made
// once per type.
type shape struct {
	typ reflect.Type // the struct
	ptr uintptr      // the first of words of a pointer to it
	// deepInto is the type's generated DeepCopyInto, bound once; nil when the type has none.
	deepInto func(in, out unsafe.Pointer)
}

var shapes sync.Map // reflect.Type of the struct → *shape

// shapeOf returns the shape of the struct type t.
func shapeOf(t reflect.Type) *shape {
	if s, ok := shapes.Load(t); ok {
		return s.(*shape)
	}
	ptr, _ := words(reflect.Zero(reflect.PointerTo(t)).Interface())
	s, _ := shapes.LoadOrStore(t, &shape{typ: t, ptr: ptr, deepInto: bindDeepCopyInto(t)})
	return s.(*shape)
}

// bindDeepCopyInto finds func (*T) DeepCopyInto(*T) and returns it as a function of two pointers, or nil.
//
// NB: this file is the one unsafe spot of the package. A method expression of a
// pointer receiver takes two pointers and gives nothing back, so the function value may be called through
// a type that says just that. Through reflect.Value.Call it would cost three allocations for each copy.
func bindDeepCopyInto(t reflect.Type) func(in, out unsafe.Pointer) {
	ptr := reflect.PointerTo(t)
	m, ok := ptr.MethodByName("DeepCopyInto")
	if !ok || m.Type.NumIn() != 2 || m.Type.NumOut() != 0 || m.Type.In(0) != ptr || m.Type.In(1) != ptr || m.Type.IsVariadic() {
		return nil
	}
	fn := reflect.New(m.Func.Type())
	fn.Elem().Set(m.Func)
	return *(*func(in, out unsafe.Pointer))(fn.UnsafePointer())
}

// deep copies in over out, whatever out held. Both point to values of the shape's type.
func (s *shape) deep(in any, inPtr, out unsafe.Pointer) {
	if s.deepInto != nil {
		s.deepInto(inPtr, out)
		return
	}
	reflect.NewAt(s.typ, out).Elem().Set(reflect.ValueOf(in.(runtime.Object).DeepCopyObject()).Elem())
}

// flat makes *out, of the same Go type, a copy of the struct *in that shares everything below it.
func flat(in, out any) { reflect.ValueOf(out).Elem().Set(reflect.ValueOf(in).Elem()) }

// isOf reports whether v is a pointer to the shape's type.
func (s *shape) isOf(v any) bool {
	typ, _ := words(v)
	return typ == s.ptr
}

// words are the two words of an interface value: the address of the type's description, which is one for each type and
// stays where it is, and, if the type is a pointer, the pointer. Through package reflect they cost more than a read's
// look-up.
func words(v any) (typ uintptr, ptr unsafe.Pointer) {
	w := *(*struct {
		typ uintptr
		ptr unsafe.Pointer
	})(unsafe.Pointer(&v))
	return w.typ, w.ptr
}

// pointerTo returns the pointer that an interface holding a pointer holds.
func pointerTo(v any) unsafe.Pointer {
	_, ptr := words(v)
	return ptr
}

// copyTo copies a stored object into the caller's object: deeply, or sharing what is below the top when
// shared is set. Both have the same Go type, or out asks for metadata only.
func copyTo(stored runtime.Object, out runtime.Object, gvk schema.GroupVersionKind, shared bool) error {
	st, ot := reflect.TypeOf(stored), reflect.TypeOf(out)
	if st != ot {
		if apiutil.FormOf(out) == apiutil.Metadata {
			return metadataInto(stored, out.(*metav1.PartialObjectMetadata), gvk, shared)
		}
		return fmt.Errorf("the cache holds %s as %T, it cannot be read into a %T", gvk, stored, out)
	}
	if shared {
		flat(stored, out)
	} else {
		shapeOf(st.Elem()).deep(stored, pointerTo(stored), pointerTo(out))
	}
	return nil
}

// metadataInto makes out the metadata of any object.
func metadataInto(stored runtime.Object, out *metav1.PartialObjectMetadata, gvk schema.GroupVersionKind, shared bool) error {
	m, err := objectMeta(stored)
	if err != nil {
		return err
	}
	out.TypeMeta = typeMetaOf(gvk)
	if shared {
		out.ObjectMeta = *m
	} else {
		m.DeepCopyInto(&out.ObjectMeta)
	}
	return nil
}

// metadataOf returns the metadata of a stored object as an object of its own that shares its maps and slices.
func metadataOf(stored runtime.Object, gvk schema.GroupVersionKind) (*metav1.PartialObjectMetadata, error) {
	if apiutil.FormOf(stored) == apiutil.Metadata {
		return stored.(*metav1.PartialObjectMetadata), nil
	}
	out := &metav1.PartialObjectMetadata{}
	return out, metadataInto(stored, out, gvk, true)
}

// objectMeta returns the ObjectMeta in an object, or one made of what its accessors tell.
func objectMeta(obj runtime.Object) (*metav1.ObjectMeta, error) {
	a, err := meta.Accessor(obj)
	if err != nil {
		return nil, err
	}
	if om, ok := a.(metav1.ObjectMetaAccessor); ok {
		if m, ok := om.GetObjectMeta().(*metav1.ObjectMeta); ok {
			return m, nil
		}
	}
	return &metav1.ObjectMeta{
		Name: a.GetName(), GenerateName: a.GetGenerateName(), Namespace: a.GetNamespace(),
		SelfLink: a.GetSelfLink(), UID: a.GetUID(), ResourceVersion: a.GetResourceVersion(),
		Generation: a.GetGeneration(), CreationTimestamp: a.GetCreationTimestamp(),
		DeletionTimestamp: a.GetDeletionTimestamp(), DeletionGracePeriodSeconds: a.GetDeletionGracePeriodSeconds(),
		Labels: a.GetLabels(), Annotations: a.GetAnnotations(), OwnerReferences: a.GetOwnerReferences(),
		Finalizers: a.GetFinalizers(), ManagedFields: a.GetManagedFields(),
	}, nil
}

func typeMetaOf(gvk schema.GroupVersionKind) metav1.TypeMeta {
	apiVersion, kind := gvk.ToAPIVersionAndKind()
	return metav1.TypeMeta{APIVersion: apiVersion, Kind: kind}
}

// stamp writes the kind into an object that is about to be stored, so that no read has to.
func stamp(obj runtime.Object, gvk schema.GroupVersionKind, tm metav1.TypeMeta) {
	if t, ok := obj.GetObjectKind().(*metav1.TypeMeta); ok {
		*t = tm // the same strings for all objects of a kind
		return
	}
	obj.GetObjectKind().SetGroupVersionKind(gvk)
}

// fillList makes the items of list copies of objs, which are stored objects, and nothing else. Items that
// are structs are copied in place.
func fillList(list runtime.Object, objs []stored, gvk schema.GroupVersionKind, shared bool) error {
	ptr, err := meta.GetItemsPtr(list)
	if err != nil {
		return err
	}
	items := reflect.ValueOf(ptr).Elem()
	elem := items.Type().Elem()
	switch {
	case elem.Kind() == reflect.Struct && elem != rawExtensionType:
		made := reflect.MakeSlice(items.Type(), len(objs), len(objs))
		if err := fillStructs(made, elem, objs, gvk, shared); err != nil {
			return err
		}
		items.Set(made)
		return nil
	default:
		return fillPointers(list, elem, objs, gvk, shared)
	}
}

var rawExtensionType = reflect.TypeFor[runtime.RawExtension]()

func fillStructs(made reflect.Value, elem reflect.Type, objs []stored, gvk schema.GroupVersionKind, shared bool) error {
	s, base := shapeOf(elem), made.UnsafePointer()
	for i := range objs {
		in := objs[i].obj
		switch {
		case !s.isOf(in):
			obj, ok := made.Index(i).Addr().Interface().(runtime.Object)
			if !ok {
				return fmt.Errorf("the items of a list of %s are %s, which is no object", gvk, elem)
			}
			if err := copyTo(in.(runtime.Object), obj, gvk, shared); err != nil {
				return err
			}
		case shared:
			made.Index(i).Set(reflect.ValueOf(in).Elem())
		default:
			s.deep(in, pointerTo(in), unsafe.Add(base, uintptr(i)*elem.Size()))
		}
	}
	return nil
}

// fillPointers fills lists whose items are pointers or interfaces.
func fillPointers(list runtime.Object, elem reflect.Type, objs []stored, gvk schema.GroupVersionKind, shared bool) error {
	out := make([]runtime.Object, len(objs))
	for i := range objs {
		in := objs[i].obj.(runtime.Object)
		if elem.Kind() == reflect.Pointer && reflect.TypeOf(in) != elem {
			obj, ok := reflect.New(elem.Elem()).Interface().(runtime.Object)
			if !ok {
				return fmt.Errorf("the items of a list of %s are %s, which is no object", gvk, elem)
			}
			if err := copyTo(in, obj, gvk, shared); err != nil {
				return err
			}
			out[i] = obj
			continue
		}
		if shared {
			out[i] = in
		} else {
			out[i] = in.DeepCopyObject()
		}
	}
	return meta.SetList(list, out)
}
