// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package apiutil

import (
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
)

// agree compares the tree of a document with apimachinery's own decoder.
func agree(t *testing.T, data []byte) {
	t.Helper()
	var want map[string]any
	wantErr := json.Unmarshal(data, &want)
	got, err := decodeTree(data)
	if wantErr != nil || want == nil {
		if err == nil {
			t.Errorf("%q: read %v, apimachinery: %v, %v", data, got, want, wantErr)
		}
		return
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%q: %#v, %v, want %#v", data, got, err, want)
	}
}

var treeDocuments = []string{
	`{}`, ` { } `, `{"a":1}`, `{"a":-0,"b":0,"c":1.0,"d":1e2,"e":-1.5E-3,"f":9223372036854775807,"g":9223372036854775808,"h":-9223372036854775808}`,
	`{"a":[],"b":{},"c":[[],{},null,true,false,"x"]}`, `{"a":1,"a":2}`, `{"":""}`, `{"A":1,"a":2}`,
	`{"a":"\"\\\/\b\f\n\r\t\u0041\u00e9\ud83d\ude00"}`, `{"a":"\ud83d","b":"\ud83dx","c":"\ude00","d":"\ud83d\u0041","e":"\ud83d\ud83d\ude00"}`,
	"{\"a\":\"\xff\xfe é \xe2\x82\"}", "{\"\xff\":1,\"\\u0061\":2}", `{"a":1e999}`, `{"a":01}`, `{"a":.5}`, `{"a":1.}`, `{"a":1e}`, `{"a":+1}`, `{"a":--1}`, `{"a":-}`,
	`{"a":1,}`, `{,}`, `{"a"}`, `{"a":}`, `{"a" 1}`, `{"a":[1,]}`, `{"a":[1 2]}`, `{"a":tru}`, `{"a":nul}`, `{"a":truex}`, `{a:1}`, `{"a":'x'}`,
	"{\"a\":\"\n\"}", `{"a":"\x"}`, `{"a":"\u12"}`, `{"a":"\u12g4"}`, `{"a":"`, `{"a":"\`, `{"a":"\u`, `{`, ``, `[]`, `null`, `"x"`, `1`, `{} x`, `{}{}`, "{\"a\":1}\n\t ", "\x00",
	`{"a":{"b":{"c":[{"d":1},{"d":2}]}},"e":[1,[2,[3]]]}`, `{"a":"\ud83d\u"}`, `{"a":"\ud83d\uzzzz"}`, `{"a":"\u+123"}`,
}

func TestTreeAgreesWithApimachinery(t *testing.T) {
	for range 3 { // again, now with shared keys and values
		for _, document := range treeDocuments {
			agree(t, []byte(document))
		}
	}
	agree(t, []byte(strings.Repeat(`{"a":`, maxTreeDepth)+"1"+strings.Repeat("}", maxTreeDepth)))
	if _, err := decodeTree([]byte(strings.Repeat(`{"a":`, maxTreeDepth+1) + "1" + strings.Repeat("}", maxTreeDepth+1))); err == nil {
		t.Error("a document that is nested too deep was read")
	}
}

func FuzzTree(f *testing.F) {
	for _, document := range treeDocuments {
		f.Add([]byte(document))
	}
	f.Fuzz(func(t *testing.T, data []byte) { agree(t, data) })
}

func TestDecodeUnstructured(t *testing.T) {
	for _, document := range []string{
		`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"}}`,
		`{"apiVersion":"v1","kind":"PodList","metadata":{"resourceVersion":"1"},"items":[{"metadata":{"name":"p"}},{"apiVersion":"x/v1","kind":"Own"}]}`,
		`{"apiVersion":"v1","kind":"PodList","items":[]}`, `{"apiVersion":"v1","kind":"PodList","items":null}`, `{"apiVersion":"v1","kind":"PodList"}`,
		`{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"Pod"}]}`,
		`{"apiVersion":"v1","kind":"PodList","items":[{"kind":""}]}`, `{"apiVersion":"v1","kind":"PodList","items":[1]}`, `{"apiVersion":"v1","kind":"PodList","items":{}}`,
		`{"apiVersion":"v1","kind":"Odd","items":[{}]}`, `{"metadata":{}}`, `{"items":[]}`,
	} {
		for _, targets := range [][2]runtime.Object{
			{&unstructured.Unstructured{}, &unstructured.Unstructured{}},
			{&unstructured.UnstructuredList{}, &unstructured.UnstructuredList{}},
		} {
			_, _, wantErr := unstructured.UnstructuredJSONScheme.Decode([]byte(document), nil, targets[0])
			err := DecodeUnstructured([]byte(document), targets[1])
			if (err != nil) != (wantErr != nil) || runtime.IsMissingKind(err) != runtime.IsMissingKind(wantErr) {
				t.Errorf("%s into %T: %v, want %v", document, targets[0], err, wantErr)
			}
			if wantErr == nil && !reflect.DeepEqual(targets[1], targets[0]) {
				t.Errorf("%s: %#v, want %#v", document, targets[1], targets[0])
			}
		}
	}
}
