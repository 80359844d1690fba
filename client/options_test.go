// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"reflect"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// A struct of options hands on every field that is set, and none that is not.
func TestOptionStructsAreApplied(t *testing.T) {
	yes, grace, policy := true, int64(3), metav1.DeletePropagationOrphan
	get := &GetOptions{Raw: &metav1.GetOptions{}, UnsafeDisableDeepCopy: &yes, DisableReadYourWritesConsistency: true}
	list := &ListOptions{
		LabelSelector: labels.Nothing(), FieldSelector: fields.Nothing(), Namespace: "n", Limit: 1, Continue: "c",
		UnsafeDisableDeepCopy: &yes, DisableReadYourWritesConsistency: true, Raw: &metav1.ListOptions{},
	}
	create := &CreateOptions{DryRun: []string{"All"}, FieldManager: "m", FieldValidation: "Strict", DisableReadYourWritesConsistency: true, Raw: &metav1.CreateOptions{}}
	update := &UpdateOptions{DryRun: []string{"All"}, FieldManager: "m", FieldValidation: "Strict", DisableReadYourWritesConsistency: true, Raw: &metav1.UpdateOptions{}}
	patch := &PatchOptions{DryRun: []string{"All"}, Force: &yes, FieldManager: "m", FieldValidation: "Strict", DisableReadYourWritesConsistency: true, Raw: &metav1.PatchOptions{}}
	apply := &ApplyOptions{DryRun: []string{"All"}, Force: &yes, FieldManager: "m", DisableReadYourWritesConsistency: true}
	del := &DeleteOptions{
		GracePeriodSeconds: &grace, Preconditions: &metav1.Preconditions{}, PropagationPolicy: &policy,
		DryRun: []string{"All"}, DisableReadYourWritesConsistency: true, Raw: &metav1.DeleteOptions{},
	}
	all := &DeleteAllOfOptions{ListOptions: *list, DeleteOptions: *del}
	subGet := &SubResourceGetOptions{Raw: &metav1.GetOptions{}}
	subCreate := &SubResourceCreateOptions{CreateOptions: *create}
	subUpdate := &SubResourceUpdateOptions{UpdateOptions: *update, SubResourceBody: pod("p")}
	subPatch := &SubResourcePatchOptions{PatchOptions: *patch, SubResourceBody: pod("p")}
	subApply := &SubResourceApplyOptions{ApplyOptions: *apply, SubResourceBody: ApplyConfigurationFromUnstructured(nil)}
	for _, test := range []struct{ given, got any }{
		{get, new(GetOptions).ApplyOptions([]GetOption{get, &GetOptions{}})},
		{list, new(ListOptions).ApplyOptions([]ListOption{list, &ListOptions{}})},
		{create, new(CreateOptions).ApplyOptions([]CreateOption{create, &CreateOptions{}})},
		{update, new(UpdateOptions).ApplyOptions([]UpdateOption{update, &UpdateOptions{}})},
		{patch, new(PatchOptions).ApplyOptions([]PatchOption{patch, &PatchOptions{}})},
		{apply, new(ApplyOptions).ApplyOptions([]ApplyOption{apply, &ApplyOptions{}})},
		{del, new(DeleteOptions).ApplyOptions([]DeleteOption{del, &DeleteOptions{}})},
		{all, new(DeleteAllOfOptions).ApplyOptions([]DeleteAllOfOption{all, &DeleteAllOfOptions{}})},
		{subGet, new(SubResourceGetOptions).ApplyOptions([]SubResourceGetOption{subGet, &SubResourceGetOptions{}})},
		{subCreate, new(SubResourceCreateOptions).ApplyOptions([]SubResourceCreateOption{subCreate, &SubResourceCreateOptions{}})},
		{subUpdate, new(SubResourceUpdateOptions).ApplyOptions([]SubResourceUpdateOption{subUpdate, &SubResourceUpdateOptions{}})},
		{subPatch, new(SubResourcePatchOptions).ApplyOptions([]SubResourcePatchOption{subPatch, &SubResourcePatchOptions{}})},
		{subApply, new(SubResourceApplyOptions).ApplyOpts([]SubResourceApplyOption{subApply, &SubResourceApplyOptions{}})},
	} {
		everyFieldSet(t, reflect.ValueOf(test.given).Elem(), reflect.TypeOf(test.given).String())
		if !reflect.DeepEqual(test.given, test.got) {
			t.Errorf("%T: %+v became %+v", test.given, test.given, test.got)
		}
	}
}

// everyFieldSet fails for a field that the test has left out, so that a new one is noticed.
func everyFieldSet(t *testing.T, v reflect.Value, path string) {
	for i := range v.NumField() {
		field := v.Type().Field(i)
		if field.Anonymous {
			everyFieldSet(t, v.Field(i), path+"."+field.Name)
		} else if v.Field(i).IsZero() {
			t.Errorf("%s.%s is not set in this test", path, field.Name)
		}
	}
}

// Each single option reaches every verb that takes it.
func TestSingleOptions(t *testing.T) {
	for name, test := range map[string]struct{ got, want any }{
		"dry run":      {new(ApplyOptions).ApplyOptions([]ApplyOption{DryRunAll}), &ApplyOptions{DryRun: []string{"All"}}},
		"force":        {new(SubResourceApplyOptions).ApplyOpts([]SubResourceApplyOption{ForceOwnership}).Force, new(true)},
		"force patch":  {new(PatchOptions).ApplyOptions([]PatchOption{ForceOwnership}).Force, new(true)},
		"no copy":      {new(GetOptions).ApplyOptions([]GetOption{UnsafeDisableDeepCopy}).UnsafeDisableDeepCopy, new(true)},
		"copy":         {new(ListOptions).ApplyOptions([]ListOption{UnsafeDisableDeepCopyOption(false)}).UnsafeDisableDeepCopy, new(false)},
		"no RYW get":   {new(GetOptions).ApplyOptions([]GetOption{DisableReadYourWritesConsistency}).DisableReadYourWritesConsistency, true},
		"no RYW all":   {new(DeleteAllOfOptions).ApplyOptions([]DeleteAllOfOption{DisableReadYourWritesConsistency}).DeleteOptions.DisableReadYourWritesConsistency, true},
		"no RYW sub":   {new(SubResourcePatchOptions).ApplyOptions([]SubResourcePatchOption{DisableReadYourWritesConsistency}).DisableReadYourWritesConsistency, true},
		"grace":        {new(DeleteAllOfOptions).ApplyOptions([]DeleteAllOfOption{GracePeriodSeconds(0)}).AsDeleteOptions().GracePeriodSeconds, new(int64(0))},
		"namespace":    {InNamespace("a").AsSelector().String(), "metadata.namespace=a"},
		"no namespace": {InNamespace("").AsSelector().String(), ""},
		"nil options":  {(*ListOptions)(nil).AsListOptions(), &metav1.ListOptions{}},
		"owner, later": {new(CreateOptions).ApplyOptions([]CreateOption{FieldOwner("a"), FieldOwner("b")}).FieldManager, "b"},
	} {
		if !reflect.DeepEqual(test.got, test.want) {
			t.Errorf("%s: %v, want %v", name, test.got, test.want)
		}
	}
}

// A selector that selects nothing must not become one that selects everything on its way to the server.
func TestSelectorsOfNothing(t *testing.T) {
	for name, opts := range map[string][]ListOption{
		"labels.Nothing":   {MatchingLabelsSelector{Selector: labels.Nothing()}},
		"nil selector":     {MatchingLabelsSelector{}},
		"fields.Nothing":   {MatchingFieldsSelector{Selector: fields.Nothing()}, MatchingLabels{"a": "b"}},
		"nil fields":       {MatchingFieldsSelector{}},
		"no label":         {HasLabels{"a", "no label"}},
		"no label, others": {HasLabels{"no label"}, MatchingLabels{"a": "b"}},
	} {
		sent := new(ListOptions).ApplyOptions(opts).AsListOptions()
		selector, err := labels.Parse(sent.LabelSelector)
		if err != nil || sent.LabelSelector == "" || selector.Matches(labels.Set{"a": "b"}) || selector.Matches(labels.Set{"nothing": ""}) || selector.Matches(labels.Set{}) {
			t.Errorf("%s: sent %+v", name, sent)
		}
	}
	for name, opts := range map[string][]ListOption{
		"none":       {},
		"everything": {MatchingLabelsSelector{Selector: labels.Everything()}, MatchingFieldsSelector{Selector: fields.Everything()}},
		"empty sets": {MatchingLabels{}, MatchingFields{}, HasLabels{}},
	} {
		if sent := new(ListOptions).ApplyOptions(opts).AsListOptions(); sent.LabelSelector != "" || sent.FieldSelector != "" {
			t.Errorf("%s: sent %+v", name, sent)
		}
	}
}

// What a caller gives as Raw is the base of what is sent, and is not written to.
func TestRawIsTheBaseAndIsNotWrittenTo(t *testing.T) {
	raw := &metav1.CreateOptions{FieldManager: "raw", FieldValidation: "Warn"}
	sent := new(CreateOptions).ApplyOptions([]CreateOption{&CreateOptions{Raw: raw, FieldValidation: "Strict"}, DryRunAll}).AsCreateOptions()
	if sent.FieldManager != "raw" || sent.FieldValidation != "Strict" || len(sent.DryRun) != 1 {
		t.Errorf("sent %+v", sent)
	}
	if raw.FieldValidation != "Warn" || raw.DryRun != nil {
		t.Errorf("raw became %+v", raw)
	}
}
