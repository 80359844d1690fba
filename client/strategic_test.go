// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

// oddity is an object of shapes that no built-in kind has.
type oddity struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	*outer            `json:",inline"`
	Spec              string                    `json:"spec"`
	Lists             [][]string                `json:"lists" patchStrategy:"merge"`
	Objects           []oddity                  `json:"objects" patchStrategy:"merge"`
	ByKind            []metav1.TypeMeta         `json:"byKind" patchStrategy:"merge" patchMergeKey:"kind"`
	Raw               []runtime.RawExtension    `json:"raw" patchStrategy:"merge" patchMergeKey:"id"`
	Deep              map[string]map[string]int `json:"deep"`
}

type outer struct {
	Inner *outer `json:"inner"`
	*outer
	Spec  map[string]int `json:"spec"` // hidden
	Ports *[]corev1.Lifecycle
}

func (o *oddity) DeepCopyObject() runtime.Object { return o }

func TestStrategicDiff(t *testing.T) {
	const container, order = `{"name":"a","image":"i"}`, `"$setElementOrder/containers":[{"name":"a"},{"name":"b"}]`
	for name, test := range map[string]struct {
		obj                  Object
		before, after, patch string
	}{
		"nothing": {&corev1.Pod{}, `{"spec":{"containers":[{"name":"a"}]}}`, `{"spec":{"containers":[{"name":"a"}]}}`, `{}`},
		"changed, gone and new fields": {&corev1.ConfigMap{}, `{"data":{"a":"1","b":"2"}}`, `{"data":{"a":"3","c":"4"}}`,
			`{"data":{"b":null,"a":"3","c":"4"}}`},
		"number or text": {&corev1.Service{}, `{"spec":{"ports":[{"port":1,"targetPort":2}]}}`, `{"spec":{"ports":[{"port":1,"targetPort":"x"}]}}`,
			`{"spec":{"ports":[{"port":1,"targetPort":"x"}],"$setElementOrder/ports":[{"port":1}]}}`},
		"element of a list": {&corev1.Pod{}, `{"spec":{"containers":[` + container + `,{"name":"b"}]}}`, `{"spec":{"containers":[{"name":"a","image":"j"},{"name":"b"}]}}`,
			`{"spec":{"containers":[{"name":"a","image":"j"}],` + order + `}}`},
		"element gone":      {&corev1.Pod{}, `{"spec":{"containers":[{"name":"a"},{"name":"c"},{"name":"b"}]}}`, `{"spec":{"containers":[{"name":"a"},{"name":"b"}]}}`, `{"spec":{"containers":[{"name":"c","$patch":"delete"}],` + order + `}}`},
		"element new":       {&corev1.Pod{}, `{"spec":{"containers":[{"name":"b"}]}}`, `{"spec":{"containers":[` + container + `,{"name":"b"}]}}`, `{"spec":{"containers":[` + container + `],` + order + `}}`},
		"elements in order": {&corev1.Pod{}, `{"spec":{"containers":[{"name":"b"},{"name":"a"}]}}`, `{"spec":{"containers":[{"name":"a"},{"name":"b"}]}}`, `{"spec":{` + order + `}}`},
		"no element left":   {&corev1.Pod{}, `{"spec":{"containers":[{"name":"a"}]}}`, `{"spec":{"containers":[]}}`, `{"spec":{"containers":[{"name":"a","$patch":"delete"}]}}`},
		"first element":     {&corev1.Pod{}, `{"spec":{"containers":[]}}`, `{"spec":{"containers":[{"name":"a"}]}}`, `{"spec":{"containers":[{"name":"a"}]}}`},
		"null for a list":   {&corev1.Pod{}, `{"spec":{"containers":[{"name":"a"}]}}`, `{"spec":{"containers":null}}`, `{"spec":{"containers":null}}`},
		"list of no strategy": {&corev1.Pod{}, `{"spec":{"containers":[{"name":"a","args":["1","2"]}]}}`, `{"spec":{"containers":[{"name":"a","args":["1"]}]}}`,
			`{"spec":{"containers":[{"name":"a","args":["1"]}],"$setElementOrder/containers":[{"name":"a"}]}}`},
		"set": {&corev1.Pod{}, `{"metadata":{"finalizers":["c","a"]}}`, `{"metadata":{"finalizers":["b","a"]}}`,
			`{"metadata":{"finalizers":["b"],"$deleteFromPrimitiveList/finalizers":["c"],"$setElementOrder/finalizers":["b","a"]}}`},
		"set in order":     {&corev1.Pod{}, `{"metadata":{"finalizers":["b","a"]}}`, `{"metadata":{"finalizers":["a","b"]}}`, `{"metadata":{"$setElementOrder/finalizers":["a","b"]}}`},
		"set out of order": {&corev1.Pod{}, `{"metadata":{"name":"x","finalizers":["b","a"]}}`, `{"metadata":{"name":"y","finalizers":["b","a"]}}`, `{"metadata":{"name":"y"}}`},
		"set with a value twice": {&corev1.Pod{}, `{"metadata":{"finalizers":["a","a","b","b"]}}`, `{"metadata":{"finalizers":["a","c","c"]}}`,
			`{"metadata":{"finalizers":["c"],"$deleteFromPrimitiveList/finalizers":["b"],"$setElementOrder/finalizers":["a","c","c"]}}`},
		"set emptied": {&corev1.Node{}, `{"spec":{"podCIDRs":["a"]}}`, `{"spec":{"podCIDRs":[]}}`, `{"spec":{"$deleteFromPrimitiveList/podCIDRs":["a"]}}`},
		"set filled":  {&corev1.Node{}, `{"spec":{"podCIDRs":[]}}`, `{"spec":{"podCIDRs":["a"]}}`, `{"spec":{"podCIDRs":["a"]}}`},
		"fields that stay": {&appsv1.Deployment{}, `{"spec":{"strategy":{"type":"RollingUpdate","rollingUpdate":{"maxSurge":1}}}}`, `{"spec":{"strategy":{"type":"Recreate","rollingUpdate":null}}}`,
			`{"spec":{"strategy":{"type":"Recreate","rollingUpdate":null,"$retainKeys":["type"]}}}`},
		"no field stays": {&appsv1.Deployment{}, `{"spec":{"strategy":{"type":"Recreate"}}}`, `{"spec":{"strategy":{}}}`, `{"spec":{"strategy":{"type":null}}}`},
		"fields that stay in an element": {&corev1.Pod{}, `{"spec":{"volumes":[{"name":"a","emptyDir":{}}]}}`, `{"spec":{"volumes":[{"name":"a","hostPath":{"path":"/"}}]}}`,
			`{"spec":{"volumes":[{"name":"a","emptyDir":null,"hostPath":{"path":"/"},"$retainKeys":["name","hostPath"]}],"$setElementOrder/volumes":[{"name":"a"}]}}`},
		"object that is replaced": {&policyv1.PodDisruptionBudget{}, `{"spec":{"selector":{"matchLabels":{"a":"1","b":"2"}}}}`, `{"spec":{"selector":{"matchLabels":{"a":"1"}}}}`,
			`{"spec":{"selector":{"matchLabels":{"a":"1"}}}}`},
		"merge key twice": {&corev1.Service{}, `{"spec":{"ports":[{"port":53,"protocol":"TCP"},{"port":53,"protocol":"UDP"}]}}`, `{"spec":{"ports":[{"port":53,"protocol":"TCP"},{"port":53,"protocol":"UDP","name":"dns"}]}}`,
			`{"spec":{"ports":[{"$patch":"replace"},{"port":53,"protocol":"TCP"},{"port":53,"protocol":"UDP","name":"dns"}]}}`},
		"merge key twice, then gone": {&corev1.Service{}, `{"spec":{"ports":[{"port":53,"protocol":"TCP"},{"port":53,"protocol":"UDP"}]}}`, `{"spec":{"ports":[]}}`, `{"spec":{"ports":[{"$patch":"replace"}]}}`},
		"raw, plain":                 {&appsv1.ControllerRevision{}, `{"data":{"a":1}}`, `{"data":{"a":2}}`, `{"data":{"a":2}}`},
		"raw, deep":                  {&appsv1.ControllerRevision{}, `{"data":{"a":{"b":1},"c":2}}`, `{"data":{"a":{"b":2},"c":2}}`, `{"data":{"$patch":"replace","a":{"b":2},"c":2}}`},
		"map of lists": {&authorizationv1.SubjectAccessReview{}, `{"spec":{"extra":{"a":["1"],"b":["1"]}}}`, `{"spec":{"extra":{"a":["2"],"b":["1"]}}}`,
			`{"spec":{"extra":{"$patch":"replace","a":["2"],"b":["1"]}}}`},
		"map of maps":              {&oddity{}, `{"deep":{"a":{"b":1}}}`, `{"deep":{"a":{}}}`, `{"deep":{"$patch":"replace","a":{}}}`},
		"opaque element":           {&oddity{}, `{"raw":[{"id":1,"x":[1]}]}`, `{"raw":[{"id":1,"x":[]}]}`, `{"raw":[{"$patch":"replace"},{"id":1,"x":[]}]}`},
		"embedded, then by name":   {&oddity{}, `{"inner":{"inner":{"spec":{"a":1}}}}`, `{"inner":{"inner":{"spec":{"a":2}}}}`, `{"inner":{"inner":{"spec":{"a":2}}}}`},
		"hidden by an outer field": {&oddity{}, `{"spec":{"a":{"b":1}}}`, `{"spec":{"a":{"b":2}}}`, `{"spec":{"$patch":"replace","a":{"b":2}}}`},
		"pointer to a list":        {&oddity{}, `{"Ports":[{}]}`, `{"Ports":[{},{}]}`, `{"Ports":[{},{}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			patch, err := strategicDiff([]byte(test.before), []byte(test.after), test.obj)
			if err != nil || string(patch) != test.patch {
				t.Errorf("got %s, %v, want %s", patch, err, test.patch)
			}
		})
	}
}

func TestStrategicDiffRefuses(t *testing.T) {
	for name, test := range map[string]struct{ before, after, says string }{
		"list":                 {`[]`, `{}`, "not written as JSON objects"},
		"broken":               {`{"byKind":[}`, `{"byKind":[]}`, errSyntax.Error()},
		"broken list":          {`{"byKind":[{"kind":"a"}}`, `{"byKind":[]}`, errSyntax.Error()},
		"broken element":       {`{"byKind":[{"kind"}]}`, `{"byKind":[]}`, errSyntax.Error()},
		"opaque at the top":    {`{"nowhere":{"a":1}}`, `{"nowhere":{"a":2}}`, errWhole.Error()},
		"lists of lists":       {`{"lists":[["a"]]}`, `{"lists":[["b"]]}`, errWhole.Error()},
		"objects without keys": {`{"objects":[{"spec":"a"}]}`, `{"objects":[{"spec":"b"}]}`, "no merge key"},
		"old key missing":      {`{"byKind":[{"apiVersion":"a"}]}`, `{"byKind":[{"kind":"b"}]}`, `lacks the merge key "kind"`},
		"new key missing":      {`{"byKind":[{"kind":"b"}]}`, `{"byKind":[{"kind":"b"},{"apiVersion":"a"}]}`, `lacks the merge key "kind"`},
		"plain element":        {`{"byKind":[{"kind":"b"}]}`, `{"byKind":[{"kind":"b"},null]}`, `merged by "kind" holds null`},
	} {
		t.Run(name, func(t *testing.T) {
			patch, err := strategicDiff([]byte(test.before), []byte(test.after), &oddity{})
			if err == nil || patch != nil || !strings.Contains(err.Error(), test.says) {
				t.Errorf("got %s, %v, want an error with %q", patch, err, test.says)
			}
		})
	}
}

// patched are the kinds that the fuzz target patches, and whether strategicpatch makes what we make: it always has the
// selector of a PodDisruptionBudget in a patch, and does not know what to do with maps of lists and raw JSON.
var patched = []struct {
	obj   Object
	exact bool
}{
	{&corev1.Pod{}, true}, {&corev1.Service{}, true}, {&corev1.Node{}, true}, {&corev1.ServiceAccount{}, true}, {&corev1.Secret{}, true},
	{&corev1.PersistentVolume{}, true}, {&appsv1.Deployment{}, true}, {&appsv1.StatefulSet{}, true}, {&batchv1.CronJob{}, true},
	{&networkingv1.NetworkPolicy{}, true}, {&policyv1.PodDisruptionBudget{}, false}, {&appsv1.ControllerRevision{}, false},
	{&authorizationv1.SubjectAccessReview{}, false},
}

// A patch of random objects, applied by apimachinery, gives the wanted object; and it is what strategicpatch makes, unless
// the objects are wild: with merge keys that come twice, and sets out of order.
func FuzzStrategicDiff(f *testing.F) {
	for seed := range uint64(150) {
		f.Add(seed, seed%3 == 0)
	}
	f.Fuzz(func(t *testing.T, seed uint64, wild bool) {
		for _, kind := range patched {
			fill := filler{rand.New(rand.NewPCG(seed, 0)), wild}
			was := reflect.New(reflect.TypeOf(kind.obj).Elem()).Interface().(Object)
			fill.fill(reflect.ValueOf(was).Elem(), "", 0)
			is := was.DeepCopyObject().(Object)
			fill.change(reflect.ValueOf(is).Elem(), "", 0)
			before, after := marshal(t, was), marshal(t, is)
			patch, err := strategicDiff(before, after, is)
			if err != nil {
				t.Fatalf("%T: %s to %s: %v", is, before, after, err)
			}
			got, err := strategicpatch.StrategicMergePatch(before, patch, is)
			if err != nil {
				t.Fatalf("%T: %s to %s: apply %s: %v", is, before, after, patch, err)
			}
			if got, want := tidy(exact(t, got)), tidy(exact(t, after)); !reflect.DeepEqual(got, want) {
				t.Fatalf("%T: %s to %s: patch %s gives %v, want %v", is, before, after, patch, got, want)
			}
			if !kind.exact || wild {
				continue
			}
			theirs, err := strategicpatch.CreateTwoWayMergePatch(before, after, is)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := sorted(exact(t, patch)), sorted(exact(t, theirs)); !reflect.DeepEqual(got, want) {
				t.Fatalf("%T: %s to %s: got %s, want %s", is, before, after, patch, theirs)
			}
		}
	})
}

func marshal(t *testing.T, obj any) []byte {
	t.Helper()
	data, err := json.Marshal(obj)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// tidy drops fields that are null, which a server drops, at any depth.
func tidy(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for key, field := range value {
			if value[key] = tidy(field); field == nil {
				delete(value, key)
			}
		}
	case []any:
		for i, element := range value {
			value[i] = tidy(element)
		}
	}
	return value
}

// sorted brings what has no order in a patch into one: names of fields that stay, and elements that are to go.
func sorted(value any) any {
	text := func(v any) string { return fmt.Sprint(v) }
	switch value := value.(type) {
	case map[string]any:
		for key, field := range value {
			value[key] = sorted(field)
			if names, ok := field.([]any); ok && (key == "$retainKeys" || strings.HasPrefix(key, "$delete")) {
				slices.SortFunc(names, func(a, b any) int { return cmp.Compare(text(a), text(b)) })
			}
		}
	case []any:
		gone := func(v any) bool { m, ok := v.(map[string]any); return ok && m["$patch"] == "delete" }
		for i, element := range value {
			value[i] = sorted(element)
		}
		slices.SortStableFunc(value, func(a, b any) int {
			if gone(a) && gone(b) {
				return cmp.Compare(text(a), text(b))
			}
			return 0
		})
	}
	return value
}

// A filler fills objects at random.
type filler struct {
	*rand.Rand
	wild bool
}

var vocabulary = []string{"a", "b", "web", "a<b", "$x/y", "é\"", "0"}

func (f filler) word() string { return vocabulary[f.IntN(len(vocabulary))] }

// fill fills a value; tag is that of its field.
func (f filler) fill(v reflect.Value, tag reflect.StructTag, depth int) {
	switch p := v.Addr().Interface().(type) {
	case *metav1.Time:
		*p = metav1.NewTime(time.Unix(f.Int64N(9)+1, 0))
		return
	case *metav1.MicroTime:
		*p = metav1.NewMicroTime(time.Unix(f.Int64N(9)+1, 0))
		return
	case *apiresource.Quantity:
		*p = apiresource.MustParse(fmt.Sprint(f.IntN(5), []string{"", "m", "Gi"}[f.IntN(3)]))
		return
	case *intstr.IntOrString:
		*p = []intstr.IntOrString{intstr.FromInt32(f.Int32N(3)), intstr.FromString(f.word())}[f.IntN(2)]
		return
	case *metav1.FieldsV1:
		p.Raw = fmt.Appendf(nil, `{"f:%d":{}}`, f.IntN(3))
		return
	case *runtime.RawExtension:
		p.Raw = fmt.Appendf(nil, `{"a":{"b":%d},"c":[%d],"d":%d}`, f.IntN(2), f.IntN(2), f.IntN(2))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if f.IntN(5) < 3 {
				f.fill(v.Field(i), v.Type().Field(i).Tag, depth+1)
			}
		}
	case reflect.Pointer:
		if f.IntN(depth+1) < 3 {
			v.Set(reflect.New(v.Type().Elem()))
			f.fill(v.Elem(), tag, depth+1)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), f.IntN(4), 4))
		for i := range v.Len() {
			f.fill(v.Index(i), "", depth+1)
		}
		f.settle(v, tag)
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range f.IntN(4) {
			value := reflect.New(v.Type().Elem()).Elem()
			f.fill(value, "", depth+1)
			v.SetMapIndex(reflect.ValueOf(f.word()).Convert(v.Type().Key()), value)
		}
	case reflect.String:
		v.SetString(f.word())
	case reflect.Bool:
		v.SetBool(f.IntN(2) == 0)
	case reflect.Int32, reflect.Int64:
		v.SetInt(f.Int64N(5))
	case reflect.Uint8:
		v.SetUint(f.Uint64N(256))
	default:
		panic(v.Type().String() + " is not filled")
	}
}

// change changes some of a value.
func (f filler) change(v reflect.Value, tag reflect.StructTag, depth int) {
	leaf := v.Type().PkgPath() == "k8s.io/apimachinery/pkg/apis/meta/v1" && v.Kind() == reflect.Struct && v.NumField() == 1 ||
		slices.Contains([]string{"Quantity", "IntOrString", "RawExtension"}, v.Type().Name())
	switch kind := v.Kind(); {
	case f.IntN(12) == 0:
		v.SetZero()
		f.fill(v, tag, depth)
	case f.IntN(12) == 0:
		v.SetZero()
	case leaf:
	case kind == reflect.Struct:
		for i := range v.NumField() {
			if f.IntN(3) == 0 {
				f.change(v.Field(i), v.Type().Field(i).Tag, depth+1)
			}
		}
	case kind == reflect.Pointer && !v.IsNil():
		f.change(v.Elem(), tag, depth)
	case kind == reflect.Slice:
		f.changeList(v, depth)
		f.settle(v, tag)
	case kind == reflect.Map:
		for _, key := range slices.SortedFunc(slices.Values(v.MapKeys()), func(a, b reflect.Value) int { return cmp.Compare(a.String(), b.String()) }) {
			value := reflect.New(v.Type().Elem()).Elem()
			value.Set(v.MapIndex(key))
			f.change(value, "", depth+1)
			v.SetMapIndex(key, value)
		}
	}
}

func (f filler) changeList(v reflect.Value, depth int) {
	for i := range v.Len() {
		if f.IntN(2) == 0 {
			f.change(v.Index(i), "", depth+1)
		}
	}
	if v.Len() > 0 && f.IntN(3) == 0 { // one gone
		i := f.IntN(v.Len())
		v.Set(reflect.AppendSlice(v.Slice3(0, i, i), v.Slice(i+1, v.Len())))
	}
	if f.IntN(3) == 0 { // one new
		element := reflect.New(v.Type().Elem()).Elem()
		f.fill(element, "", depth+1)
		v.Set(reflect.Append(v, element))
	}
	if f.IntN(3) == 0 {
		f.Shuffle(v.Len(), reflect.Swapper(v.Interface()))
	}
}

// settle makes a list that is merged one that can be: all elements have their key, once unless it is wild, and sets have no
// value twice. strategicpatch cannot tell a set's order if it is not that of the alphabet.
func (f filler) settle(v reflect.Value, tag reflect.StructTag) {
	if !strings.Contains(tag.Get("patchStrategy"), "merge") {
		return
	}
	key, seen := tag.Get("patchMergeKey"), map[any]bool{}
	if key == "" {
		values := slices.Clone(v.Interface().([]string))
		if !f.wild {
			slices.Sort(values)
		}
		values = slices.DeleteFunc(values, func(s string) bool { had := seen[s]; seen[s] = true; return had })
		v.Set(reflect.ValueOf(values))
		return
	}
	twice := f.wild && f.IntN(3) == 0
	for i := range v.Len() {
		field := keyField(v.Index(i), key)
		for n := 0; field.IsZero() || seen[field.Interface()] && !twice; n++ {
			if field.Kind() == reflect.String {
				field.SetString(vocabulary[n])
			} else {
				field.SetInt(int64(n))
			}
		}
		seen[field.Interface()] = true
	}
	if twice { // a server brings those with the same key together
		sort.SliceStable(v.Interface(), func(i, j int) bool {
			return fmt.Sprint(keyField(v.Index(i), key)) < fmt.Sprint(keyField(v.Index(j), key))
		})
	}
}

// keyField is the field of a struct that has the name in JSON.
func keyField(v reflect.Value, name string) reflect.Value {
	for _, field := range reflect.VisibleFields(v.Type()) {
		if tagged, _, _ := strings.Cut(field.Tag.Get("json"), ","); tagged == name {
			return v.FieldByIndex(field.Index)
		}
	}
	panic(v.Type().String() + " has no " + name)
}
