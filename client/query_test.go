// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"net/url"
	"reflect"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/conversion/queryparams"
)

// fill sets every field of an option struct, so that a field which a later version adds is noticed.
func fill(v reflect.Value) {
	for i := range v.NumField() {
		switch f := v.Field(i); f.Kind() {
		case reflect.String:
			f.SetString("a=b&c é" + v.Type().Field(i).Name)
		case reflect.Bool:
			f.SetBool(true)
		case reflect.Int64:
			f.SetInt(-7)
		case reflect.Slice:
			f.Set(reflect.ValueOf([]string{"x", "y z"}))
		case reflect.Pointer:
			f.Set(reflect.New(f.Type().Elem()))
		}
	}
}

func TestQueriesHoldEveryField(t *testing.T) {
	for _, filled := range []bool{false, true} {
		get, list, create, update, patch := &metav1.GetOptions{}, &metav1.ListOptions{}, &metav1.CreateOptions{}, &metav1.UpdateOptions{}, &metav1.PatchOptions{}
		for _, test := range []struct {
			options any
			write   func() string
		}{
			{get, func() string { return getQuery(get) }},
			{list, func() string { return listQuery(list) }},
			{create, func() string { return createQuery(create) }},
			{update, func() string { return updateQuery(update) }},
			{patch, func() string { return patchQuery(patch) }},
		} {
			if filled {
				fill(reflect.ValueOf(test.options).Elem())
			}
			want, err := queryparams.Convert(test.options)
			if err != nil {
				t.Fatal(err)
			}
			// The kind in TypeMeta is no parameter: fill leaves it out, as it is a struct.
			if got := test.write(); got != want.Encode() {
				t.Errorf("%T: %s, want %s", test.options, got, want.Encode())
			}
		}
	}
	if _, err := url.ParseQuery(listQuery(&metav1.ListOptions{Continue: "%&=+"})); err != nil {
		t.Error(err)
	}
}
