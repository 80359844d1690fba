// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	stdjson "encoding/json"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/json"
)

type (
	zooKey   string
	zooBytes []byte
	zooByte  uint8
	zooFlag  bool
	// zooText reads itself from text.
	zooText struct{ Text string }
	// zooSelf reads itself, and remembers what it was given.
	zooSelf struct{ Given string }
	zooMap  map[string]string

	ZooInline struct { // exported, as what is inlined mostly is
		Inlined string `json:"inlined,omitempty"`
		Name    string
	}
	zooNamed struct {
		Deep int `json:"deep"`
	}
	ZooPointed struct {
		Pointed string `json:"pointed"`
	}
	zooHidden struct {
		Promoted string `json:"promoted"`
	}
	zooQuoted struct {
		Number int `json:"number,string"`
	}
	zooTwice struct {
		zooHidden
		A string `json:"promoted"`
		B string `json:"b"`
	}
	zooPointer struct {
		*ZooPointed
	}
)

func (z *zooText) UnmarshalText(text []byte) error { z.Text = "text " + string(text); return nil }
func (z *zooSelf) UnmarshalJSON(text []byte) error { z.Given = "given " + string(text); return nil }
func (z zooMap) UnmarshalJSON([]byte) error        { return nil }

// zoo has a field of every sort that a type of an API may have.
type zoo struct {
	ZooInline `json:",inline"`
	Named     zooNamed `json:"named"`
	Bool      bool     `json:"bool"`
	Flag      zooFlag  `json:"flag"`
	Int       int      `json:"int"`
	Int8      int8     `json:"int8"`
	Int64     int64    `json:"int64"`
	Uint16    uint16   `json:"uint16"`
	Float32   float32  `json:"float32"`
	Float64   float64  `json:"float64"`
	String    string   `json:"string"`
	Key       zooKey   `json:"key"`
	Untagged  string
	Dash      string `json:"-,"`
	Skipped   string `json:"-"`
	hidden    string

	Pointer  *string                        `json:"pointer"`
	Pointers **int                          `json:"pointers"`
	Strings  []string                       `json:"strings"`
	Lists    [][]int                        `json:"lists"`
	Structs  []zooNamed                     `json:"structs"`
	PStructs []*zooNamed                    `json:"pstructs"`
	Bytes    []byte                         `json:"bytes"`
	OwnBytes zooBytes                       `json:"ownBytes"`
	ByteList []zooByte                      `json:"byteList"`
	Array    [2]int                         `json:"array"`
	Map      map[string]string              `json:"map"`
	KeyMap   map[zooKey]zooNamed            `json:"keyMap"`
	Maps     map[string]map[string][]string `json:"maps"`
	IntMap   map[int]string                 `json:"intMap"`
	TextMap  map[zooText]string             `json:"textMap"`
	Any      any                            `json:"any"`
	Anys     map[string]any                 `json:"anys"`

	Text     zooText               `json:"text"`
	PText    *zooText              `json:"ptext"`
	Self     zooSelf               `json:"self"`
	PSelf    *zooSelf              `json:"pself"`
	SelfMap  map[string]zooSelf    `json:"selfMap"`
	Own      zooMap                `json:"own"`
	Number   stdjson.Number        `json:"number"`
	Raw      stdjson.RawMessage    `json:"raw"`
	Quoted   zooQuoted             `json:"quoted"`
	Twice    zooTwice              `json:"twice"`
	PInline  zooPointer            `json:"pinline"`
	Unnamed  struct{ metav1.Time } `json:"unnamed"`
	Time     metav1.Time           `json:"time"`
	PTime    *metav1.Time          `json:"ptime"`
	Duration metav1.Duration       `json:"duration"`
	Quantity resource.Quantity     `json:"quantity"`
	IntStr   intstr.IntOrString    `json:"intstr"`
	Ext      runtime.RawExtension  `json:"ext"`
	Self2    *zoo                  `json:"self2"`
	Selves   []zoo                 `json:"selves"`
	SelfMap2 map[string]zoo        `json:"selfMap2"`
}

// comparePlan reads text in both ways, and tells whether the plan read it.
func comparePlan[T any](t *testing.T, text []byte) bool {
	t.Helper()
	var full, planned T
	err := json.Unmarshal(text, &full)
	ok := decodeByPlan(text, reflect.ValueOf(&planned))
	if !ok && !reflect.ValueOf(planned).IsZero() {
		t.Errorf("%.200q: something is left behind: %+v", text, planned)
	}
	if ok && (err != nil || !reflect.DeepEqual(planned, full)) {
		t.Errorf("%.200q:\ngot  %+v\nwant %+v, %v", text, planned, full, err)
	}
	return ok
}

// documents are texts of a zoo, and whether a plan reads them.
var documents = map[string]bool{
	`{}`: true,
	` { "named" : { "deep" : 1 } , "bool" : true } `:                                            true,
	`{"inlined":"a","Name":"b","Untagged":"d","-":"e","Skipped":"f","hidden":"g"}`:              true,
	`{"BOOL":true,"name":"x","untagged":"x","unknown":{"bool":[1,2,{}]}}`:                       true,
	`{"bool":false,"flag":true,"int":-5,"int8":127,"int64":9223372036854775807,"uint16":65535}`: true,
	`{"int":-0,"float32":1.5,"float64":-1e-7,"string":"\u00e4\n\ud800","key":"k"}`:              true,
	`{"int":null,"bool":null,"string":null,"named":null,"pointer":null,"strings":null,"map":null,"any":null,"bytes":null,"self":null,"pself":null,"time":null,"ptime":null,"quantity":null,"number":null,"ext":null,"text":null}`: true,
	`{"pointer":"p","pointers":3,"strings":["a",null,""],"lists":[[1],[],null],"structs":[{"deep":1},{},null],"pstructs":[{"deep":1},null]}`:                                                                                      true,
	`{"strings":[],"map":{},"structs":[],"bytes":"","keyMap":{},"lists":[[]]}`:                                                                                                                                                    true,
	`{"bytes":"aGVsbG8=","ownBytes":"aGk=","byteList":[1,2],"array":[1]}`:                                                                                                                                                         true,
	`{"map":{"a":"1","b":"2","a":"3"},"keyMap":{"k":{"deep":4},"l":{}},"maps":{"a":{"b":["c"]},"d":null}}`:                                                                                                                        true,
	`{"keyMap":{"k":{"deep":4},"k":{}},"selfMap":{"a":{},"b":1},"intMap":{"1":"a"},"textMap":{"x":"y"}}`:                                                                                                                          true,
	`{"map":{"\u0061":"\"","` + "\xff" + `":"` + "\xff" + `"}}`:                                                                                                                                                                   true,
	`{"any":{"a":[1,1.5,"x",null,true]},"anys":{"a":1,"b":{"c":2}}}`:                                                                                                                                                              true,
	`{"text":"x","ptext":"y","self":{"a": 1},"pself":[ ],"own":{"a":"b"},"number":1.50,"raw":{"a" :1}}`:                                                                                                                           true,
	`{"quoted":{"number":"5"},"twice":{"promoted":"x","b":"y"},"pinline":{"pointed":"z"}}`:                                                                                                                                        true,
	`{"time":"2026-01-02T03:04:05Z","ptime":"2026-01-02T03:04:05Z","duration":"3s","quantity":"100m","intstr":"80%","ext":{"a":[1]}}`:                                                                                             true,
	`{"quantity":12,"intstr":80}`:                                   true,
	`{"self2":{"selves":[{"int":1},{"selfMap2":{"a":{"int":2}}}]}}`: true,
	`{"int":1,"int":2}`:                                             false,
	`{"named":{"deep":1},"named":{}}`:                               false,
	`{"b\u006fol":true}`:                                            false,
	`{"bytes":"aGVsbG8"}`:                                           false,
	`{"bytes":"aGVs\nbG8="}`:                                        false,
	`{"bytes":[1,2]}`:                                               false,
	`{"int":1.0}`:                                                   false,
	`{"int":1e2}`:                                                   false,
	`{"int8":128}`:                                                  false,
	`{"int64":9223372036854775808}`:                                 false,
	`{"uint16":-1}`:                                                 false,
	`{"bool":"true"}`:                                               false,
	`{"bool":1}`:                                                    false,
	`{"string":1}`:                                                  false,
	`{"string":{}}`:                                                 false,
	`{"strings":{}}`:                                                false,
	`{"strings":"a"}`:                                               false,
	`{"strings":[1]}`:                                               false,
	`{"map":[]}`:                                                    false,
	`{"map":{"a":1}}`:                                               false,
	`{"map":{null:"a"}}`:                                            false,
	`{"named":[]}`:                                                  false,
	`{"named":7}`:                                                   false,
	`{"unnamed":"2026-01-02T03:04:05Z"}`:                            false, // only a type with a name reads itself
	`{"quantity":"x"}`:                                              false,
	`{"time":"x"}`:                                                  false,
	`{"quoted":{"number":5}}`:                                       false,
	`{"self2":` + strings.Repeat(`{"self2":`, maxDepth) + "null" + strings.Repeat("}", maxDepth) + `}`: false,
	`null`: false, `[]`: false, `7`: false, ``: false, `{}x`: false, `{"int":1,}`: false, `{"int":1`: false, `{"strings":["a",]}`: false,
	`{"strings":["a" "b"]}`: false, `{"map":{"a":"b",}}`: false, `{"map":{"a" "b"}}`: false, `{"self":{"a":}}`: false, `{"any":tru}`: false,
}

func TestPlansReadAsTheFullDecoder(t *testing.T) {
	for text, planned := range documents {
		if got := comparePlan[zoo](t, []byte(text)); got != planned {
			t.Errorf("%.200q: read by a plan: %v, want %v", text, got, planned)
		}
	}
	pod := fullPod()
	pod.Spec.Containers[0].LivenessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromString("http")}}}
	pod.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "m", Time: &pod.CreationTimestamp, FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:a":{}}`)}}}
	pod.DeletionTimestamp = &metav1.Time{Time: time.Now()}
	text, err := json.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	if !comparePlan[corev1.Pod](t, text) {
		t.Errorf("no plan for %s", text)
	}
}

// A plan fills what is empty: what a caller has put into the object stays, as it always did.
func TestDecodingIntoWhatIsThere(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"a": "b"}}, Spec: corev1.PodSpec{NodeName: "n"}}
	text := []byte(`{"metadata":{"labels":{"c":"d"}},"spec":{}}`)
	if err := NewDecoder(nil).DecodeRaw(runtime.RawExtension{Raw: text}, pod); err != nil {
		t.Fatal(err)
	}
	if len(pod.Labels) != 2 || pod.Spec.NodeName != "n" {
		t.Errorf("got %+v", pod)
	}
}

// Many goroutines may be the first to need a type, and one that has itself inside.
func TestPlansAreMadeOnce(t *testing.T) {
	type leaf struct{ Next *zooTree }
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			comparePlan[zooTree](t, []byte(`{"left":{"right":{"name":"x"}},"more":[{"left":{"name":"y"}}]}`))
			comparePlan[leaf](t, []byte(`{"Next":{"left":{}}}`))
		})
	}
	all.Wait()
}

type zooTree struct {
	Name   string             `json:"name"`
	Left   *zooTree           `json:"left"`
	Right  *zooTree           `json:"right"`
	More   []zooTree          `json:"more"`
	ByName map[string]zooTree `json:"byName"`
}

// FuzzPlan reads anything in both ways.
func FuzzPlan(f *testing.F) {
	for text := range documents {
		f.Add([]byte(text))
	}
	text, err := json.Marshal(fullPod())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Fuzz(func(t *testing.T, text []byte) {
		comparePlan[zoo](t, text)
		comparePlan[corev1.Pod](t, text)
		comparePlan[metav1.PartialObjectMetadata](t, text)
	})
}
