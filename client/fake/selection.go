// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package fake

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	operator "k8s.io/apimachinery/pkg/selection"

	"github.com/wherry-dev/wherry/client"
)

// selection is what a list, a watch or a DeleteAllOf asks for.
type selection struct {
	namespace string
	labels    labels.Selector
	fields    []fieldTest
	nothing   bool
}

// fieldTest is one term of a field selector.
type fieldTest struct {
	values func(client.Object) []string
	want   string
	not    bool
}

func (s *selection) matches(obj client.Object) bool {
	if s.nothing || (s.namespace != "" && obj.GetNamespace() != s.namespace) {
		return false
	}
	if s.labels != nil && !s.labels.Matches(labels.Set(obj.GetLabels())) {
		return false
	}
	for _, f := range s.fields {
		if slices.Contains(f.values(obj), f.want) == f.not {
			return false
		}
	}
	return true
}

// selection makes a selection of list options.
func (e *engine) selection(k *kind, indexes *indexes, o *client.ListOptions) (*selection, error) {
	s := &selection{namespace: k.namespace(o.Namespace), labels: o.LabelSelector}
	if o.LabelSelector == nil && o.Raw != nil && o.Raw.LabelSelector != "" {
		parsed, err := labels.Parse(o.Raw.LabelSelector)
		if err != nil {
			return nil, badRequestf("unable to parse requirement: %v", err)
		}
		s.labels = parsed
	}
	selector := o.FieldSelector
	if selector == nil && o.Raw != nil && o.Raw.FieldSelector != "" {
		parsed, err := fields.ParseSelector(o.Raw.FieldSelector)
		if err != nil {
			return nil, badRequestf("%v", err)
		}
		selector = parsed
	}
	if selector == nil {
		return s, nil
	}
	requirements := selector.Requirements()
	if len(requirements) == 0 && !selector.Empty() {
		s.nothing = true
	}
	for _, r := range requirements {
		test := fieldTest{want: r.Value, not: r.Operator == operator.NotEquals, values: indexes.of(k.gvk, r.Field)}
		if test.values == nil {
			test.values = served(k, r.Field)
		}
		if test.values == nil {
			return nil, fmt.Errorf("List on GroupVersionKind %v specifies selector on field %s, but no index with name %s has been registered for GroupVersionKind %v",
				k.gvk, r.Field, r.Field, k.gvk)
		}
		s.fields = append(s.fields, test)
	}
	return s, nil
}

// selected gives the objects that s selects, ordered by namespace and name. They must not be changed.
func (e *engine) selected(k *kind, s *selection) ([]client.Object, error) {
	e.mu.RLock()
	records, err := e.rows.all(k, s.namespace)
	e.mu.RUnlock()
	if err != nil {
		return nil, err
	}
	// Outside of the lock, as indexes are functions of the test.
	var found []client.Object
	for _, r := range records {
		if s.matches(r.obj) {
			found = append(found, r.obj)
		}
	}
	return found, nil
}

// served gives the fields that the server selects by without anybody's index, nil if field is not one of them.
func served(k *kind, field string) func(client.Object) []string {
	switch field {
	case "metadata.name":
		return func(obj client.Object) []string { return []string{obj.GetName()} }
	case "metadata.namespace":
		return func(obj client.Object) []string { return []string{obj.GetNamespace()} }
	}
	read, ok := servedFields[k.gvk.GroupKind()][field]
	if !ok {
		return nil
	}
	return func(obj client.Object) []string { return []string{read(obj)} }
}

// servedFields are those of single kinds, for stored objects of the Go types of k8s.io/api.
var servedFields = map[schema.GroupKind]map[string]func(client.Object) string{
	{Kind: "Pod"}: {
		"spec.nodeName":           podField(func(p *corev1.Pod) string { return p.Spec.NodeName }),
		"spec.restartPolicy":      podField(func(p *corev1.Pod) string { return string(p.Spec.RestartPolicy) }),
		"spec.schedulerName":      podField(func(p *corev1.Pod) string { return p.Spec.SchedulerName }),
		"spec.serviceAccountName": podField(func(p *corev1.Pod) string { return p.Spec.ServiceAccountName }),
		"status.phase":            podField(func(p *corev1.Pod) string { return string(p.Status.Phase) }),
		"status.podIP":            podField(func(p *corev1.Pod) string { return p.Status.PodIP }),
	},
	{Kind: "Secret"}: {
		"type": func(obj client.Object) string {
			if s, ok := obj.(*corev1.Secret); ok {
				return string(s.Type)
			}
			return ""
		},
	},
	{Kind: "Namespace"}: {
		"status.phase": func(obj client.Object) string {
			if n, ok := obj.(*corev1.Namespace); ok {
				return string(n.Status.Phase)
			}
			return ""
		},
	},
}

func podField(read func(*corev1.Pod) string) func(client.Object) string {
	return func(obj client.Object) string {
		if p, ok := obj.(*corev1.Pod); ok {
			return read(p)
		}
		return ""
	}
}
