// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package behaviour

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	certutil "k8s.io/client-go/util/cert"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	"sigs.k8s.io/controller-runtime/pkg/webhook/authentication"
	"sigs.k8s.io/controller-runtime/pkg/webhook/conversion"
)

// review is an admission review of a ConfigMap's text.
func review(operation admissionv1.Operation, object, old string) []byte {
	r := admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
		Request: &admissionv1.AdmissionRequest{
			UID: "u", Kind: metav1.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Resource: metav1.GroupVersionResource{Version: "v1", Resource: "configmaps"},
			Name: "a", Namespace: "ns", Operation: operation,
		},
	}
	if object != "" {
		r.Request.Object.Raw = []byte(object)
	}
	if old != "" {
		r.Request.OldObject.Raw = []byte(old)
	}
	b, err := json.Marshal(r)
	if err != nil {
		panic(err)
	}
	return b
}

const aConfigMap = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"ns"},"data":{"key":"value"}}`

// asked posts a body to a handler and gives the answer.
func asked(h http.Handler, contentType string, body []byte) (int, []byte) {
	r := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(body))
	r.Header.Set("Content-Type", contentType)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code, w.Body.Bytes()
}

// answered posts an admission review and gives the response in the answer.
func answered(t *testing.T, hook *admission.Webhook, body []byte) *admissionv1.AdmissionResponse {
	t.Helper()
	status, b := asked(standalone(t, hook), "application/json", body)
	var r admissionv1.AdmissionReview
	if err := json.Unmarshal(b, &r); err != nil || status != 200 || r.Response == nil {
		t.Fatalf("status %d: %s", status, b)
	}
	return r.Response
}

func standalone(t *testing.T, hook *admission.Webhook) http.Handler {
	t.Helper()
	h, err := admission.StandaloneWebhook(hook, admission.StandaloneOptions{})
	must(t, err)
	return h
}

func noteResponse(o *outcome, r *admissionv1.AdmissionResponse) {
	o.note("allowed", r.Allowed)
	o.note("UID", string(r.UID))
	if r.Result != nil {
		o.note("code", r.Result.Code)
		o.note("reason", string(r.Result.Reason))
		o.note("message", r.Result.Message)
	}
	if len(r.Warnings) > 0 {
		o.note("warnings", r.Warnings)
	}
	if len(r.Patch) > 0 {
		o.note("patch", operations(r.Patch))
	}
}

// operations is a JSON patch with its operations sorted: their order is none
// of a caller's business here.
func operations(patch []byte) string {
	var ops []jsonpatch.Operation
	if err := json.Unmarshal(patch, &ops); err != nil {
		return "broken: " + string(patch)
	}
	var lines []string
	for _, op := range ops {
		b, _ := json.Marshal(op.Value)
		lines = append(lines, fmt.Sprint(op.Operation, " ", op.Path, " ", string(b)))
	}
	slices.Sort(lines)
	return strings.Join(lines, ", ")
}

// judge is a validator that answers with what it was made of.
type judge struct {
	warnings admission.Warnings
	err      error
	saw      *sequence
}

func (j judge) ValidateCreate(ctx context.Context, cm *corev1.ConfigMap) (admission.Warnings, error) {
	j.saw.add("create " + cm.Name)
	return j.warnings, j.err
}

func (j judge) ValidateUpdate(ctx context.Context, old, cm *corev1.ConfigMap) (admission.Warnings, error) {
	j.saw.add("update " + old.Name + " to " + cm.Name)
	return j.warnings, j.err
}

func (j judge) ValidateDelete(ctx context.Context, cm *corev1.ConfigMap) (admission.Warnings, error) {
	j.saw.add("delete " + cm.Name)
	return j.warnings, j.err
}

// defaults is a defaulter made of a function.
type defaults func(*corev1.ConfigMap) error

func (d defaults) Default(_ context.Context, cm *corev1.ConfigMap) error { return d(cm) }

func handled(f func(context.Context, admission.Request) admission.Response) *admission.Webhook {
	return &admission.Webhook{Handler: admission.HandlerFunc(f)}
}

func webhookCases() []testCase {
	return slices.Concat(answerCases(), validatorCases(), defaulterCases(), requestCases(), joinedCases(), tokenCases(), conversionCases(), serverCases())
}

func hooked(name, why string, run func(t *testing.T, o *outcome)) testCase {
	return testCase{"webhook", name, why, run}
}

func answerCases() []testCase {
	answer := func(name, why string, r admission.Response) testCase {
		return hooked("answer: "+name, why, func(t *testing.T, o *outcome) {
			noteResponse(o, answered(t, handled(func(context.Context, admission.Request) admission.Response { return r }), review(admissionv1.Create, aConfigMap, "")))
		})
	}
	return []testCase{
		answer("allowed", "", admission.Allowed("fine")),
		answer("denied", "", admission.Denied("no")),
		answer("errored", "", admission.Errored(http.StatusBadRequest, errors.New("broken"))),
		answer("with warnings", "", admission.Allowed("").WithWarnings("one", "two")),
		answer("patched", "", admission.Patched("done", jsonpatch.NewOperation("add", "/data/new", "1"))),
		answer("by two texts", "", admission.PatchResponseFromRaw([]byte(`{"a":1,"b":[1,2]}`), []byte(`{"a":2,"b":[1]}`))),
		answer("by two equal texts", "", admission.PatchResponseFromRaw([]byte(`{"a":1}`), []byte(`{"a":1}`))),
		answer("with a UID of its own", "", admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{Allowed: true, UID: "mine"}}),
		hooked("answer: a panic", "the text of a panic is in the log and not sent to the user", func(t *testing.T, o *outcome) {
			r := answered(t, handled(func(context.Context, admission.Request) admission.Response { panic("secret") }), review(admissionv1.Create, aConfigMap, ""))
			o.note("allowed", r.Allowed)
			o.note("code", r.Result.Code)
			o.note("tells the text", strings.Contains(r.Result.Message, "secret"))
		}),
		hooked("answer: v1beta1 to v1beta1", "", func(t *testing.T, o *outcome) {
			h := standalone(t, handled(func(context.Context, admission.Request) admission.Response { return admission.Allowed("") }))
			status, b := asked(h, "application/json", bytes.Replace(review(admissionv1.Create, aConfigMap, ""), []byte("admission.k8s.io/v1"), []byte("admission.k8s.io/v1beta1"), 1))
			var r metav1.TypeMeta
			must(t, json.Unmarshal(b, &r))
			o.note("status", status)
			o.note("version", r.APIVersion)
		}),
		hooked("the request in the context", "", func(t *testing.T, o *outcome) {
			hook := &admission.Webhook{Handler: admission.HandlerFunc(func(ctx context.Context, r admission.Request) admission.Response {
				o.note("context function", ctx.Value(contextKey{}))
				o.note("request", fmt.Sprint(r.Operation, r.Name, r.Namespace, r.Kind.Kind))
				return admission.Allowed("")
			}), WithContextFunc: func(ctx context.Context, _ *http.Request) context.Context {
				return context.WithValue(ctx, contextKey{}, "value")
			}}
			answered(t, hook, review(admissionv1.Create, aConfigMap, ""))
		}),
	}
}

type contextKey struct{}

func validatorCases() []testCase {
	validated := func(name, why string, j judge, operation admissionv1.Operation, object, old string) testCase {
		return hooked("validator: "+name, why, func(t *testing.T, o *outcome) {
			j.saw = &sequence{}
			noteResponse(o, answered(t, admission.WithValidator(scheme.Scheme, admission.Validator[*corev1.ConfigMap](j)), review(operation, object, old)))
			o.note("saw", j.saw)
		})
	}
	other := strings.Replace(aConfigMap, `"name":"a"`, `"name":"b"`, 1)
	invalid := apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "a", errors.New("not today"))
	return []testCase{
		validated("create", "", judge{}, admissionv1.Create, aConfigMap, ""),
		validated("update", "", judge{}, admissionv1.Update, aConfigMap, other),
		validated("delete", "", judge{}, admissionv1.Delete, "", aConfigMap),
		validated("connect", "", judge{}, admissionv1.Connect, aConfigMap, ""),
		validated("an error", "", judge{err: errors.New("broken")}, admissionv1.Create, aConfigMap, ""),
		validated("an API error", "", judge{err: invalid}, admissionv1.Create, aConfigMap, ""),
		validated("a wrapped API error", "the wrapper's words are not lost", judge{err: fmt.Errorf("while looking: %w", invalid)}, admissionv1.Create, aConfigMap, ""),
		validated("warnings with an error", "", judge{warnings: admission.Warnings{"w"}, err: errors.New("broken")}, admissionv1.Create, aConfigMap, ""),
		hooked("validator: no object", "", func(t *testing.T, o *outcome) {
			r := answered(t, admission.WithValidator(scheme.Scheme, admission.Validator[*corev1.ConfigMap](judge{saw: &sequence{}})), review(admissionv1.Create, "", ""))
			o.note("allowed", r.Allowed)
			o.note("code", r.Result.Code)
		}),
	}
}

func defaulterCases() []testCase {
	defaulted := func(name, why, object string, d defaults, opts ...admission.DefaulterOption) testCase {
		return hooked("defaulter: "+name, why, func(t *testing.T, o *outcome) {
			noteResponse(o, answered(t, admission.WithDefaulter(scheme.Scheme, admission.Defaulter[*corev1.ConfigMap](d), opts...), review(admissionv1.Create, object, "")))
		})
	}
	set := func(cm *corev1.ConfigMap) error { cm.Data = map[string]string{"key": "value", "new": "1"}; return nil }
	nothing := func(*corev1.ConfigMap) error { return nil }
	unknown := strings.Replace(aConfigMap, `"data":`, `"unknown":{"a":1},"data":`, 1)
	return []testCase{
		defaulted("sets a field", "", aConfigMap, set),
		defaulted("does nothing", "", aConfigMap, nothing),
		defaulted("keeps what the type does not know", "", unknown, set),
		defaulted("drops what the type does not know, if asked", "", unknown, set, admission.DefaulterRemoveUnknownOrOmitableFields),
		defaulted("removes a field", "", aConfigMap, func(cm *corev1.ConfigMap) error { delete(cm.Data, "key"); cm.Data["other"] = "1"; return nil }),
		defaulted("fails", "", aConfigMap, func(*corev1.ConfigMap) error { return errors.New("broken") }),
		hooked("defaulter: a large number beside a change", "integers above 2^53 keep their value: controller-runtime compares float64", func(t *testing.T, o *outcome) {
			hook := admission.WithDefaulter(scheme.Scheme, admission.Defaulter[*corev1.Pod](numbers{}))
			body := review(admissionv1.Create, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"containers":[],"terminationGracePeriodSeconds":9007199254740992}}`, "")
			noteResponse(o, answered(t, hook, body))
		}),
		hooked("defaulter: a delete", "", func(t *testing.T, o *outcome) {
			var saw sequence
			d := defaults(func(*corev1.ConfigMap) error { saw.add("called"); return nil })
			r := answered(t, admission.WithDefaulter(scheme.Scheme, admission.Defaulter[*corev1.ConfigMap](d)), review(admissionv1.Delete, "", aConfigMap))
			o.note("allowed", r.Allowed)
			o.note("saw", &saw)
		}),
	}
}

// numbers is a defaulter that raises a number by one.
type numbers struct{}

func (numbers) Default(_ context.Context, p *corev1.Pod) error {
	*p.Spec.TerminationGracePeriodSeconds++
	return nil
}

func requestCases() []testCase {
	refused := func(name, why, contentType string, body []byte) testCase {
		return hooked("request: "+name, why, func(t *testing.T, o *outcome) {
			status, b := asked(standalone(t, handled(func(context.Context, admission.Request) admission.Response { return admission.Allowed("") })), contentType, body)
			o.note("status", status)
			var r admissionv1.AdmissionReview
			if json.Unmarshal(b, &r) == nil && r.Response != nil && r.Response.Result != nil {
				o.note("allowed", r.Response.Allowed)
				o.note("code", r.Response.Result.Code)
			}
		})
	}
	own := "what is no review is answered with an HTTP status of its own"
	return []testCase{
		refused("no body", own, "application/json", nil),
		refused("another content type", own, "application/yaml", review(admissionv1.Create, aConfigMap, "")),
		refused("no JSON", own, "application/json", []byte("{")),
		refused("another kind", own, "application/json", []byte(`{"apiVersion":"v1","kind":"Pod"}`)),
		refused("a review without a request", own, "application/json", []byte(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}`)),
		refused("too long", own, "application/json", bytes.Repeat([]byte(" "), 8<<20)),
		hooked("decoder", "", func(t *testing.T, o *outcome) {
			d := admission.NewDecoder(scheme.Scheme)
			var cm corev1.ConfigMap
			o.note("object", d.DecodeRaw(runtime.RawExtension{Raw: []byte(aConfigMap)}, &cm))
			o.note("name", cm.Name)
			o.note("nothing is refused", d.DecodeRaw(runtime.RawExtension{}, &cm) != nil)
			o.note("another kind is refused", d.DecodeRaw(runtime.RawExtension{Raw: []byte(aConfigMap)}, &corev1.Pod{}) != nil)
			w := widget("", "")
			o.note("unstructured", d.DecodeRaw(runtime.RawExtension{Raw: []byte(aConfigMap)}, w))
			o.note("kind", w.GetKind())
		}),
	}
}

func joinedCases() []testCase {
	allow := admission.HandlerFunc(func(context.Context, admission.Request) admission.Response { return admission.Allowed("") })
	deny := admission.HandlerFunc(func(context.Context, admission.Request) admission.Response { return admission.Denied("no") })
	patch := func(path string) admission.Handler {
		return admission.HandlerFunc(func(context.Context, admission.Request) admission.Response {
			return admission.Patched("", jsonpatch.NewOperation("add", path, "1"))
		})
	}
	joined := func(name, why string, h admission.Handler) testCase {
		return hooked("joined: "+name, why, func(t *testing.T, o *outcome) {
			r := answered(t, &admission.Webhook{Handler: h}, review(admissionv1.Create, aConfigMap, ""))
			o.note("allowed", r.Allowed)
			o.note("code", r.Result.Code)
			if len(r.Patch) > 0 {
				o.note("patch", operations(r.Patch))
			}
		})
	}
	counts := admission.HandlerFunc(func(_ context.Context, r admission.Request) admission.Response {
		var cm corev1.ConfigMap
		if err := json.Unmarshal(r.Object.Raw, &cm); err != nil {
			return admission.Errored(500, err)
		}
		return admission.Patched("", jsonpatch.NewOperation("add", "/data/count", fmt.Sprint(len(cm.Data))))
	})
	return []testCase{
		joined("validators that allow", "", admission.MultiValidatingHandler(allow, allow)),
		joined("validators, one denies", "", admission.MultiValidatingHandler(allow, deny)),
		joined("mutators", "", admission.MultiMutatingHandler(patch("/data/x"), patch("/data/y"))),
		joined("mutators, one denies", "", admission.MultiMutatingHandler(patch("/data/x"), deny)),
		joined("a mutator sees what those before it did", "each handler is shown the object as those before it have changed it", admission.MultiMutatingHandler(patch("/data/x"), counts)),
	}
}

func tokenCases() []testCase {
	token := func(name, why, contentType, body string, f func(authentication.Request) authentication.Response) testCase {
		return hooked("token review: "+name, why, func(t *testing.T, o *outcome) {
			hook := &authentication.Webhook{Handler: authentication.HandlerFunc(func(_ context.Context, r authentication.Request) authentication.Response { return f(r) })}
			var status int
			var b []byte
			o.note("call", tried(func() { status, b = asked(hook, contentType, []byte(body)) }))
			o.note("status", status)
			var r authenticationv1.TokenReview
			if json.Unmarshal(b, &r) == nil && r.Kind != "" {
				o.note("authenticated", r.Status.Authenticated)
				o.note("user", r.Status.User.Username)
			}
		})
	}
	own := "what is no review is answered with an HTTP status of its own"
	const body = `{"apiVersion":"authentication.k8s.io/v1","kind":"TokenReview","metadata":{"uid":"u"},"spec":{"token":"t"}}`
	yes := func(r authentication.Request) authentication.Response {
		return authentication.Authenticated("", authenticationv1.UserInfo{Username: "u-" + r.Spec.Token})
	}
	return []testCase{
		token("authenticated", "", "application/json", body, yes),
		token("not authenticated", "", "application/json", body, func(authentication.Request) authentication.Response {
			return authentication.Unauthenticated("no", authenticationv1.UserInfo{})
		}),
		token("a panic", "a panic is contained; controller-runtime cuts the connection", "application/json", body, func(authentication.Request) authentication.Response { panic("secret") }),
		token("no body", own, "application/json", "", yes),
		token("no token", own, "application/json", strings.Replace(body, `"t"`, `""`, 1), yes),
	}
}

// gauge is a kind in two versions; v1 is the hub.
type gauge struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Value             int `json:"value,omitempty"`
}

func (g *gauge) DeepCopyObject() runtime.Object { c := *g; return &c }

type gaugeV1 struct{ gauge }

func (*gaugeV1) Hub()                             {}
func (g *gaugeV1) DeepCopyObject() runtime.Object { c := *g; return &c }

type gaugeV2 struct{ gauge }

func (g *gaugeV2) DeepCopyObject() runtime.Object { c := *g; return &c }

func gaugeScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	s.AddKnownTypeWithName(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Gauge"}, &gaugeV1{})
	s.AddKnownTypeWithName(schema.GroupVersionKind{Group: "example.com", Version: "v2", Kind: "Gauge"}, &gaugeV2{})
	return s
}

func conversionCases() []testCase {
	converted := func(name, why, body string) testCase {
		return hooked("conversion: "+name, why, func(t *testing.T, o *outcome) {
			s, registry := gaugeScheme(t), conversion.NewRegistry()
			spoke := conversion.NewSpokeConverter(&gaugeV2{}, func(_ context.Context, hub *gaugeV1, spoke *gaugeV2) error {
				spoke.Value = hub.Value * 10
				return nil
			}, func(_ context.Context, spoke *gaugeV2, hub *gaugeV1) error {
				if spoke.Value%10 != 0 {
					return errors.New("odd")
				}
				hub.Value = spoke.Value / 10
				return nil
			})
			c, err := conversion.NewHubSpokeConverter(&gaugeV1{}, spoke)(s)
			must(t, err)
			must(t, registry.RegisterConverter(schema.GroupKind{Group: "example.com", Kind: "Gauge"}, c))
			status, b := asked(conversion.NewWebhookHandler(s, registry), "application/json", []byte(body))
			o.note("status", status)
			var r struct {
				Response struct {
					UID              string
					Result           metav1.Status
					ConvertedObjects []struct {
						APIVersion string
						Value      int
					}
				}
			}
			if json.Unmarshal(b, &r) != nil {
				return
			}
			o.note("result", r.Response.Result.Status)
			o.note("UID", r.Response.UID)
			o.note("objects", fmt.Sprint(r.Response.ConvertedObjects))
		})
	}
	ask := func(to string, objects ...string) string {
		return `{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","request":{"uid":"u","desiredAPIVersion":"example.com/` + to + `","objects":[` + strings.Join(objects, ",") + `]}}`
	}
	in := func(version string, value int) string {
		return fmt.Sprintf(`{"apiVersion":"example.com/%s","kind":"Gauge","metadata":{"name":"g"},"value":%d}`, version, value)
	}
	return []testCase{
		converted("hub to spoke", "", ask("v2", in("v1", 1), in("v1", 2))),
		converted("spoke to hub", "", ask("v1", in("v2", 30))),
		converted("a spoke that cannot be converted", "", ask("v1", in("v2", 31))),
		converted("a kind that nobody converts", "", ask("v2", `{"apiVersion":"example.com/v1","kind":"Other","metadata":{"name":"g"}}`)),
		converted("no request", "", `{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview"}`),
		converted("no JSON", "", "{"),
		hooked("conversion: what is convertible", "", func(t *testing.T, o *outcome) {
			ok, err := conversion.IsConvertible(gaugeScheme(t), &gaugeV1{})
			o.note("a hub without a Go spoke", fmt.Sprint(ok, " ", verdict(err)))
		}),
	}
}

// certificates writes a self-signed pair into a folder.
func certificates(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	cert, key, err := certutil.GenerateSelfSignedCertKey("127.0.0.1", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	must(t, err)
	must(t, os.WriteFile(filepath.Join(dir, "tls.crt"), cert, 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "tls.key"), key, 0o600))
	return dir
}

// givenPorts are those that freePort has given: cases run side by side.
var givenPorts sync.Map

// freePort is a port that is free, and stays so for a while: it is none of those that systems hand out to connections and
// listeners by themselves, and no other case's.
func freePort(t *testing.T) int {
	t.Helper()
	var err error
	for range 100 {
		port := 20000 + rand.IntN(10000)
		if _, given := givenPorts.LoadOrStore(port, true); given {
			continue
		}
		var free net.Listener
		if free, err = net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			must(t, free.Close())
			return port
		}
	}
	t.Fatalf("no port is free: %v", err)
	return 0
}

// serving starts a webhook server that ends with the case.
func serving(t *testing.T, prepare func(webhook.Server)) (s webhook.Server, url string) {
	t.Helper()
	port := freePort(t)
	s = webhook.NewServer(webhook.Options{Host: "127.0.0.1", Port: port, CertDir: certificates(t)})
	prepare(s)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	if !within(patience, func() bool { return s.StartedChecker()(nil) == nil }) {
		t.Fatal("the webhook server does not start")
	}
	return s, fmt.Sprintf("https://127.0.0.1:%d", port)
}

func trusting(http2 bool) *http.Client {
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: http2, DisableKeepAlives: true}}
}

func serverCases() []testCase {
	hello := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") })
	return []testCase{
		hooked("server: serves what is registered", "", func(t *testing.T, o *outcome) {
			s, url := serving(t, func(s webhook.Server) { s.Register("/a", hello) })
			for _, path := range []string{"/a", "/b"} {
				resp, err := trusting(false).Get(url + path)
				must(t, err)
				resp.Body.Close()
				o.note(path, resp.StatusCode)
			}
			s.Register("/late", hello)
			resp, err := trusting(false).Get(url + "/late")
			must(t, err)
			resp.Body.Close()
			o.note("registered while it runs", resp.StatusCode)
		}),
		hooked("server: HTTP/2", "off unless TLSOpts ask for it: rapid resets cost more than an API server's requests gain", func(t *testing.T, o *outcome) {
			_, url := serving(t, func(s webhook.Server) { s.Register("/a", hello) })
			resp, err := trusting(true).Get(url + "/a")
			must(t, err)
			resp.Body.Close()
			o.note("protocol", resp.Proto)
		}),
		hooked("server: one path twice", "", func(t *testing.T, o *outcome) {
			s := webhook.NewServer(webhook.Options{})
			s.Register("/a", hello)
			o.note("second", tried(func() { s.Register("/a", hello) }))
		}),
		hooked("server: no certificate", "", func(t *testing.T, o *outcome) {
			s := webhook.NewServer(webhook.Options{Host: "127.0.0.1", Port: freePort(t), CertDir: t.TempDir()})
			ctx := soon(t, patience)
			o.note("start fails", s.Start(ctx) != nil && ctx.Err() == nil)
		}),
		hooked("server: started checker before the start", "", func(t *testing.T, o *outcome) {
			o.note("not started", webhook.NewServer(webhook.Options{Port: freePort(t)}).StartedChecker()(nil) != nil)
		}),
		hooked("server: needs no leader", "", func(t *testing.T, o *outcome) {
			o.note("needs one", webhook.NewServer(webhook.Options{}).NeedLeaderElection())
		}),
		hooked("builder: paths", "", func(t *testing.T, o *outcome) {
			mgr := idleManager(t)
			o.note("build", ctrl.NewWebhookManagedBy(mgr, &corev1.ConfigMap{}).WithValidator(judge{saw: &sequence{}}).WithDefaulter(defaults(func(*corev1.ConfigMap) error { return nil })).Complete())
			for _, path := range []string{"/validate--v1-configmap", "/mutate--v1-configmap", "/convert"} {
				_, pattern := mgr.GetWebhookServer().WebhookMux().Handler(httptest.NewRequest(http.MethodPost, path, nil))
				o.note(path, pattern != "")
			}
		}),
		hooked("builder: paths of one's own", "", func(t *testing.T, o *outcome) {
			mgr := idleManager(t)
			b := ctrl.NewWebhookManagedBy(mgr, &corev1.ConfigMap{}).WithValidator(judge{saw: &sequence{}}).WithValidatorCustomPath("/mine")
			o.note("build", b.Complete())
			_, pattern := mgr.GetWebhookServer().WebhookMux().Handler(httptest.NewRequest(http.MethodPost, "/mine", nil))
			o.note("/mine", pattern)
		}),
		hooked("builder: a type that the scheme does not know", "", func(t *testing.T, o *outcome) {
			o.note("refused", ctrl.NewWebhookManagedBy(idleManager(t), &foreign{}).Complete() != nil)
		}),
		hooked("builder: nothing to register", "", func(t *testing.T, o *outcome) {
			o.note("build", ctrl.NewWebhookManagedBy(idleManager(t), &corev1.ConfigMap{}).Complete())
		}),
	}
}
