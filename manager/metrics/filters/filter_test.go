// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package filters

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"go.uber.org/goleak"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// apiServer answers reviews in memory, and counts them.
type apiServer struct {
	mu             sync.Mutex
	tokens, access int
	allow          map[string]bool // by user; may change
	fail           func(req *http.Request) (*http.Response, error)
	last           authorizationv1.SubjectAccessReviewSpec
	delay          time.Duration
}

func (s *apiServer) RoundTrip(req *http.Request) (*http.Response, error) {
	time.Sleep(s.delay)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fail != nil {
		if resp, err := s.fail(req); resp != nil || err != nil {
			return resp, err
		}
	}
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	switch req.Method + " " + req.URL.Path {
	case "POST /apis/authentication.k8s.io/v1/tokenreviews":
		s.tokens++
		var r authenticationv1.TokenReview
		if err := json.Unmarshal(body, &r); err != nil {
			return nil, err
		}
		if user, good := strings.CutPrefix(r.Spec.Token, "token-of-"); good {
			r.Status.Authenticated = true
			r.Status.User = authenticationv1.UserInfo{Username: user, UID: "u", Groups: []string{"g"}, Extra: map[string]authenticationv1.ExtraValue{"k": {"v"}}}
		} else {
			r.Status.Error = "invalid bearer token"
		}
		return reply(req, 201, &r)
	case "POST /apis/authorization.k8s.io/v1/subjectaccessreviews":
		s.access++
		var r authorizationv1.SubjectAccessReview
		if err := json.Unmarshal(body, &r); err != nil {
			return nil, err
		}
		s.last = r.Spec
		r.Status.Allowed = s.allow[r.Spec.User]
		return reply(req, 201, &r)
	}
	return nil, errors.New("unexpected " + req.URL.Path)
}

func reply(req *http.Request, code int, obj any) (*http.Response, error) {
	b, err := json.Marshal(obj)
	return &http.Response{StatusCode: code, Request: req, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(string(b)))}, err
}

func status(code int32, reason metav1.StatusReason) func(*http.Request) (*http.Response, error) {
	return func(req *http.Request) (*http.Response, error) {
		return reply(req, int(code), &metav1.Status{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: "Failure", Code: code, Reason: reason, Message: "told so",
		})
	}
}

func handler(t *testing.T, s *apiServer) http.Handler {
	t.Helper()
	filter, err := WithAuthenticationAndAuthorization(&rest.Config{Host: "https://server"}, &http.Client{Transport: s})
	if err != nil {
		t.Fatal(err)
	}
	h, err := filter(logr.Discard(), http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Header.Get("Authorization") != "" {
			t.Error("the token reached the handler")
		}
		_, _ = io.WriteString(w, "metrics")
	}))
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func call(h http.Handler, authorization ...string) (int, string) {
	req := httptest.NewRequest(http.MethodGet, "/metrics", nil)
	for _, a := range authorization {
		req.Header.Add("Authorization", a)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, req)
	return w.Code, strings.TrimSpace(w.Body.String())
}

func TestFilter(t *testing.T) {
	for _, c := range []struct {
		name   string
		header []string
		fail   func(*http.Request) (*http.Response, error)
		code   int
		body   string
	}{
		{"allowed", []string{"Bearer token-of-ann"}, nil, 200, "metrics"},
		{"scheme in lower case", []string{"bearer  token-of-ann "}, nil, 200, "metrics"},
		{"denied", []string{"Bearer token-of-bob"}, nil, 403, "Authorization denied for user bob"},
		{"no header", nil, nil, 401, "Unauthorized"},
		{"other scheme", []string{"Basic token-of-ann"}, nil, 401, "Unauthorized"},
		{"no token", []string{"Bearer "}, nil, 401, "Unauthorized"},
		{"two headers", []string{"Bearer token-of-ann", "Bearer token-of-ann"}, nil, 401, "Unauthorized"},
		{"unknown token", []string{"Bearer x"}, nil, 401, "Unauthorized"},
		{"malformed token", []string{"Bearer a\x01b"}, nil, 401, "Unauthorized"},
		{"two words", []string{"Bearer token-of-ann x"}, nil, 401, "Unauthorized"},
		{"a token that the server cannot read", []string{"Bearer y"}, status(400, metav1.StatusReasonBadRequest), 401, "Unauthorized"},
		{"no right to review", []string{"Bearer y"}, status(403, metav1.StatusReasonForbidden), 500, "Authentication failed"},
		{"server down", []string{"Bearer y"}, status(500, metav1.StatusReasonInternalError), 500, "Authentication failed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &apiServer{allow: map[string]bool{"ann": true}, fail: c.fail}
				if code, body := call(handler(t, s), c.header...); code != c.code || body != c.body {
					t.Errorf("%d %q, want %d %q", code, body, c.code, c.body)
				}
			})
		})
	}
}

func TestWhatIsAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &apiServer{allow: map[string]bool{"ann": true}}
		call(handler(t, s), "Bearer token-of-ann")
		got, _ := json.Marshal(s.last)
		const want = `{"nonResourceAttributes":{"path":"/metrics","verb":"get"},"user":"ann","groups":["g"],"extra":{"k":["v"]},"uid":"u"}`
		if string(got) != want {
			t.Errorf("asked %s, want %s", got, want)
		}
	})
}

func TestAnswersAreRememberedForTheirTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &apiServer{allow: map[string]bool{"ann": true}}
		h := handler(t, s)
		step := func(after time.Duration, token string, code, tokens, access int) {
			t.Helper()
			time.Sleep(after)
			if got, _ := call(h, "Bearer "+token); got != code || s.tokens != tokens || s.access != access {
				t.Errorf("after %s, %s: %d with %d token and %d access reviews, want %d, %d, %d", after, token, got, s.tokens, s.access, code, tokens, access)
			}
		}
		step(0, "token-of-ann", 200, 1, 1)
		step(59*time.Second, "token-of-ann", 200, 1, 1)
		s.allow["ann"] = false
		step(time.Second, "token-of-ann", 200, 2, 1)               // the token's minute is over, the right's five are not
		step(4*time.Minute-time.Second, "token-of-ann", 200, 3, 1) // 4 min 59 s
		step(time.Second, "token-of-ann", 403, 3, 2)               // 5 min
		step(29*time.Second, "token-of-ann", 403, 3, 2)            // denied for 30 s
		s.allow["ann"] = true                                      //
		step(time.Second, "token-of-ann", 200, 3, 3)               //
		step(0, "bad", 401, 4, 3)                                  // bad tokens are remembered too
		step(59*time.Second, "bad", 401, 4, 3)                     //
		step(time.Second, "bad", 401, 5, 3)                        //
		step(0, "token-of-bob", 403, 6, 4)                         //
	})
}

func TestManyCallersAskOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &apiServer{allow: map[string]bool{"ann": true}, delay: time.Second}
		h := handler(t, s)
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				if code, _ := call(h, "Bearer token-of-ann"); code != 200 {
					t.Errorf("code %d", code)
				}
			})
		}
		wg.Wait()
		if s.tokens != 1 || s.access != 1 {
			t.Errorf("%d token and %d access reviews", s.tokens, s.access)
		}
	})
}

func TestTroubleThatPasses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, tries := &apiServer{allow: map[string]bool{"ann": true}}, 0
		s.fail = func(req *http.Request) (*http.Response, error) {
			if tries++; tries < 4 {
				return status(500, metav1.StatusReasonInternalError)(req)
			}
			return nil, nil
		}
		if code, body := call(handler(t, s), "Bearer token-of-ann"); code != 200 {
			t.Errorf("%d %s after %d tries", code, body, tries)
		}
	})
}

func TestHangingServerEndsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &apiServer{}
		s.fail = func(req *http.Request) (*http.Response, error) {
			<-req.Context().Done()
			return nil, req.Context().Err()
		}
		began := time.Now()
		code, _ := call(handler(t, s), "Bearer token-of-ann")
		if d := time.Since(began); code != 500 || d != reviewTimeout {
			t.Errorf("%d after %s", code, d)
		}
	})
}

func TestMemoryIsBounded(t *testing.T) {
	m := newMemory(func(int) time.Duration { return time.Hour })
	for i := range 3 * maxAnswers {
		key := digest{byte(i), byte(i >> 8), byte(i >> 16)}
		m.put(key, i)
		if n := len(m.answers); n > maxAnswers || m.answers[key].value != i {
			t.Fatalf("%d answers kept, the newest among them: %v", n, m.answers[key].value == i)
		}
	}
}

func FuzzBearer(f *testing.F) {
	for _, s := range []string{"Bearer x", "bearer", "Basic x", "Bearer \x00", " Bearer  a b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		token, ok := bearer(http.Header{"Authorization": {s}})
		if ok && (token == "" || strings.ContainsAny(token, " \t\r\n\x00")) {
			t.Errorf("%q gives the token %q", s, token)
		}
	})
}
