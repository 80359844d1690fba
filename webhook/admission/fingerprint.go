// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"encoding/binary"
	"hash/maphash"
	"math"
	"reflect"
	"sync"
	"time"
)

// maxReach is how many values may lie in each other for a fingerprint. A loop of pointers ends there.
const maxReach = 1000

// fingerprint gives a number that stands for all that can be reached from obj: as long as it is the same, reflect.DeepEqual
// could not tell obj from a copy made before. The opposite error has a chance of 1 in 2^64, and the hash has a secret that is
// drawn for each process. It costs neither a copy nor, as a rule, an allocation.
//
// It is not ok if obj holds what must not be looked into: functions, and references in fields that are not exported, behind
// which anything may be that others use at the same time.
func fingerprint(obj any) (sum uint64, ok bool) {
	f := fingerprinters.Get().(*fingerprinter)
	defer fingerprinters.Put(f)
	return f.of(obj)
}

var (
	fingerprintSeed = maphash.MakeSeed()
	fingerprinters  = sync.Pool{New: func() any { return newFingerprinter() }}
	locationType    = reflect.TypeFor[*time.Location]()
)

// A fingerprinter walks an object.
type fingerprinter struct {
	ok    bool
	rooms map[reflect.Type]*room // by the type of a map
}

// A room holds an entry of a map while it is looked at, and nothing afterwards.
type room struct {
	taken      bool
	key, value reflect.Value
	hash       maphash.Hash
}

func newFingerprinter() *fingerprinter { return &fingerprinter{rooms: map[reflect.Type]*room{}} }

func (f *fingerprinter) of(obj any) (sum uint64, ok bool) {
	f.ok = true
	var h maphash.Hash
	h.SetSeed(fingerprintSeed)
	f.value(&h, reflect.ValueOf(obj), maxReach)
	return h.Sum64(), f.ok
}

// value takes in v, which must not have more than depth values in each other.
func (f *fingerprinter) value(h *maphash.Hash, v reflect.Value, depth int) {
	if f.ok = f.ok && depth > 0; !f.ok {
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		if v.Bool() {
			number(h, 1)
		} else {
			number(h, 0)
		}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		number(h, uint64(v.Int()))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		number(h, v.Uint())
	case reflect.Float32, reflect.Float64:
		number(h, math.Float64bits(v.Float()))
	case reflect.String:
		number(h, uint64(v.Len()))
		h.WriteString(v.String())
	case reflect.Struct:
		f.fields(h, v, depth-1)
	case reflect.Array:
		f.items(h, v, depth-1)
	case reflect.Pointer, reflect.Interface, reflect.Slice, reflect.Map:
		f.reference(h, v, depth-1)
	default:
		f.ok = false
	}
}

func number(h *maphash.Hash, n uint64) {
	var b [8]byte
	binary.NativeEndian.PutUint64(b[:], n)
	h.Write(b[:])
}

// fields takes in the fields of a struct that are set, which are few in most.
func (f *fingerprinter) fields(h *maphash.Hash, v reflect.Value, depth int) {
	for i := range v.NumField() {
		if field := v.Field(i); !field.IsZero() {
			number(h, uint64(i))
			f.value(h, field, depth)
		}
	}
	number(h, math.MaxUint64)
}

func (f *fingerprinter) items(h *maphash.Hash, v reflect.Value, depth int) {
	for i := range v.Len() {
		f.value(h, v.Index(i), depth)
	}
}

// reference takes in what lies behind v, which may be nil.
func (f *fingerprinter) reference(h *maphash.Hash, v reflect.Value, depth int) {
	if v.IsNil() {
		h.WriteByte(0)
		return
	}
	h.WriteByte(1)
	if v.Type() == locationType { // in a time.Time; a location never changes
		number(h, uint64(v.Pointer()))
		return
	}
	if !v.CanInterface() {
		f.ok = false
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		f.value(h, v.Elem(), depth)
	case reflect.Interface:
		number(h, uint64(reflect.ValueOf(v.Elem().Type()).Pointer()))
		f.value(h, v.Elem(), depth)
	case reflect.Slice:
		number(h, uint64(v.Len()))
		f.items(h, v, depth)
	case reflect.Map:
		f.entries(h, v, depth)
	}
}

// entries takes in a map, whose entries come in any order.
func (f *fingerprinter) entries(h *maphash.Hash, v reflect.Value, depth int) {
	r := f.rooms[v.Type()]
	if r == nil || r.taken { // a map may lie in one of its own type
		r = &room{key: reflect.New(v.Type().Key()).Elem(), value: reflect.New(v.Type().Elem()).Elem()}
		r.hash.SetSeed(fingerprintSeed)
		f.rooms[v.Type()] = r
	}
	r.taken = true
	sum := uint64(0)
	for all := v.MapRange(); all.Next(); {
		r.key.SetIterKey(all)
		r.value.SetIterValue(all)
		r.hash.Reset()
		f.value(&r.hash, r.key, depth)
		f.value(&r.hash, r.value, depth)
		sum += r.hash.Sum64()
	}
	r.key.SetZero()
	r.value.SetZero()
	r.taken = false
	number(h, uint64(v.Len()))
	number(h, sum)
}
