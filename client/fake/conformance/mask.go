// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Failure is an error, without what differs from run to run.
type Failure struct {
	// Plain is set for an error that is no answer of an API server; its text is not compared.
	Plain   bool                 `json:"plain,omitempty"`
	Code    int32                `json:"code,omitempty"`
	Reason  metav1.StatusReason  `json:"reason,omitempty"`
	Group   string               `json:"group,omitempty"`
	Kind    string               `json:"kind,omitempty"`
	Name    string               `json:"name,omitempty"`
	Causes  []metav1.StatusCause `json:"causes,omitempty"`
	Message string               `json:"message,omitempty"`
}

// mask takes out of answers what no two runs have in common.
type mask struct {
	names    map[string]string // unique name → what the case calls it
	uids     map[string]string
	versions map[string]string
}

func newMask() *mask {
	return &mask{names: map[string]string{}, uids: map[string]string{}, versions: map[string]string{}}
}

func (m *mask) name(unique, called string) { m.names[unique] = called }

// number gives the mask of a value, which tells which of the values seen it is.
func number(seen map[string]string, prefix, value string) string {
	if value == "" {
		return ""
	}
	if _, ok := seen[value]; !ok {
		seen[value] = fmt.Sprint(prefix, len(seen)+1)
	}
	return seen[value]
}

// text masks what stands in the middle of a text.
func (m *mask) text(s string) string {
	for _, seen := range []map[string]string{m.names, m.uids} {
		for _, value := range slices.SortedFunc(maps.Keys(seen), func(a, b string) int { return len(b) - len(a) }) {
			s = strings.ReplaceAll(s, value, seen[value])
		}
	}
	for _, r := range rewrites {
		s = r.find.ReplaceAllString(s, r.put)
	}
	for value, masked := range m.versions {
		s = strings.ReplaceAll(s, "("+value+")", "("+masked+")")
	}
	return s
}

var rewrites = []struct {
	find *regexp.Regexp
	put  string
}{
	{regexp.MustCompile(`StorageError: invalid object, Code: \d+, Key: \S+, ResourceVersion: \d+, AdditionalErrorMsg: `), ""},
	{regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z| \+0000 UTC)( m=\S+)?`), "time"},
	{regexp.MustCompile(`of type \S+( \{\})?`), "of type T"},
	{regexp.MustCompile(`Invalid value: "\{.*\}": `), "Invalid value: the document: "},
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), "uid"},
}

// generated is how long the suffix of a generated name is.
const generated = 5

// failure masks an error.
func (m *mask) failure(err error) *Failure {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		if meta.IsNoMatchError(err) {
			return &Failure{Plain: true, Reason: "NoMatch"}
		}
		return &Failure{Plain: true}
	}
	s := status.Status()
	f := &Failure{Code: s.Code, Reason: s.Reason, Message: m.text(s.Message)}
	if s.Details != nil {
		f.Group, f.Kind, f.Name = s.Details.Group, s.Details.Kind, m.text(s.Details.Name)
		for _, c := range s.Details.Causes {
			c.Message = m.text(c.Message)
			if !slices.Contains(f.Causes, c) { // for custom kinds the server names each twice
				f.Causes = append(f.Causes, c)
			}
		}
	}
	return f
}

// object masks an object or list.
func (m *mask) object(t testing.TB, obj runtime.Object, hide []string) any {
	t.Helper()
	v := m.value(t, obj)
	if tree, ok := v.(map[string]any); ok {
		hidden(tree, hide)
		for _, item := range slicesOf(tree["items"]) {
			hidden(item, hide)
		}
	}
	return v
}

func slicesOf(v any) []map[string]any {
	var all []map[string]any
	items, _ := v.([]any)
	for _, item := range items {
		if tree, ok := item.(map[string]any); ok {
			all = append(all, tree)
		}
	}
	return all
}

func hidden(tree map[string]any, paths []string) {
	for _, path := range paths {
		at := tree
		steps := strings.Split(path, ".")
		for _, step := range steps[:len(steps)-1] {
			at, _ = at[step].(map[string]any)
		}
		delete(at, steps[len(steps)-1])
	}
}

// value masks anything that can be written as JSON.
func (m *mask) value(t testing.TB, v any) any {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var tree any
	if err := json.Unmarshal(data, &tree); err != nil {
		t.Fatal(err)
	}
	return m.walk(tree, false)
}

func (m *mask) walk(v any, list bool) any {
	switch v := v.(type) {
	case string:
		return m.text(v)
	case []any:
		if len(v) == 0 {
			return nil
		}
		for i := range v {
			v[i] = m.walk(v[i], false)
		}
	case map[string]any:
		_, hasItems := v["items"]
		m.fields(v, list)
		// In a fixed order, as the first appearance of a UID or version decides on its number.
		for _, key := range slices.Sorted(maps.Keys(v)) {
			v[key] = m.walk(v[key], hasItems && key == "metadata")
		}
	}
	return v
}

// fields masks the fields of one level that are known by name.
func (m *mask) fields(v map[string]any, list bool) {
	if prefix, ok := v["generateName"].(string); ok {
		if name, ok := v["name"].(string); ok && len(name) > generated && strings.HasPrefix(prefix, name[:len(name)-generated]) {
			m.name(name, name[:len(name)-generated]+"#")
		}
	}
	if uid, ok := v["uid"].(string); ok {
		v["uid"] = number(m.uids, "uid", uid)
	}
	if version, ok := v["resourceVersion"].(string); ok {
		if list {
			delete(v, "resourceVersion")
		} else {
			v["resourceVersion"] = number(m.versions, "version", version)
		}
	}
	if token, ok := v["continue"].(string); ok && list {
		v["continue"] = "token"
		if token == "" {
			delete(v, "continue")
		}
	}
	for _, field := range []string{"creationTimestamp", "deletionTimestamp", "lastTransitionTime"} {
		if _, ok := v[field].(string); ok {
			v[field] = "time"
		}
	}
	managed, _ := v["managedFields"].([]any)
	for _, entry := range managed {
		if e, ok := entry.(map[string]any); ok {
			delete(e, "time")
		}
	}
	// They are ordered by time, in whole seconds, and by manager where that is equal.
	slices.SortFunc(managed, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
}
