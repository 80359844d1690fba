// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package authentication_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"

	"github.com/wherry-dev/wherry/webhook/authentication"
)

type contextKey struct{}

// guard knows one token.
func guard(ctx context.Context, req authentication.Request) authentication.Response {
	switch req.Spec.Token {
	case "good":
		return authentication.ReviewResponse(true, authenticationv1.UserInfo{Username: fmt.Sprint("me", ctx.Value(contextKey{}))}, "", req.Spec.Audiences...)
	case "broken":
		return authentication.Errored(errors.New("no connection"))
	case "panic":
		panic("secret")
	}
	return authentication.Unauthenticated("unknown token", authenticationv1.UserInfo{})
}

func post(body string, headers ...string) *httptest.ResponseRecorder {
	hook := &authentication.Webhook{
		Handler: authentication.HandlerFunc(guard),
		WithContextFunc: func(ctx context.Context, r *http.Request) context.Context {
			return context.WithValue(ctx, contextKey{}, r.URL.Path)
		},
	}
	req := httptest.NewRequest(http.MethodPost, "/x", strings.NewReader(body))
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	rec := httptest.NewRecorder()
	hook.ServeHTTP(rec, req)
	return rec
}

func review(version, token string) string {
	return fmt.Sprintf(`{"apiVersion":"authentication.k8s.io/%s","kind":"TokenReview","metadata":{"uid":"u"},"spec":{"token":%q,"audiences":["a"]}}`, version, token)
}

func TestAnswers(t *testing.T) {
	tests := map[string]struct {
		body  string
		code  int
		yes   bool
		error string
	}{
		"good":            {review("v1", "good"), 200, true, ""},
		"good, v1beta1":   {review("v1beta1", "good"), 200, true, ""},
		"unknown":         {review("v1", "bad"), 200, false, "unknown token"},
		"error":           {review("v1", "broken"), 200, false, "no connection"},
		"panic":           {review("v1", "panic"), 200, false, "the webhook failed"},
		"no token":        {review("v1", ""), 400, false, "token is empty"},
		"unknown version": {review("v2", "good"), 400, false, "authentication.k8s.io/v2"},
		"other kind":      {`{"apiVersion":"v1","kind":"Pod"}`, 400, false, "Pod"},
		"no JSON":         {"{", 400, false, "decode"},
		"empty":           {"", 400, false, "empty"},
		"2 MiB":           {review("v1", strings.Repeat("x", 2<<20)), 413, false, "larger than 1048576 bytes"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			rec := post(test.body)
			var answer authenticationv1.TokenReview
			if err := json.Unmarshal(rec.Body.Bytes(), &answer); err != nil {
				t.Fatalf("%v in %s", err, rec.Body)
			}
			if rec.Code != test.code || answer.Status.Authenticated != test.yes || !strings.Contains(answer.Status.Error, test.error) || strings.Contains(rec.Body.String(), "secret") {
				t.Errorf("got %d %+v", rec.Code, answer.Status)
			}
			if answer.Kind != "TokenReview" || !strings.HasPrefix(answer.APIVersion, "authentication.k8s.io/v1") {
				t.Errorf("the answer is a %s %s", answer.APIVersion, answer.Kind)
			}
			if strings.Contains(test.body, "v1beta1") != strings.Contains(answer.APIVersion, "v1beta1") {
				t.Errorf("answered in version %s", answer.APIVersion)
			}
			if test.yes && (answer.UID != "u" || answer.Status.User.Username != "me/x" || !slices.Equal(answer.Status.Audiences, []string{"a"})) {
				t.Errorf("got %+v", answer)
			}
			if answer.Spec.Token != "" {
				t.Error("the answer repeats the token")
			}
		})
	}
	for header, value := range map[string]string{"Content-Type": "text/plain", "Content-Encoding": "gzip"} {
		if rec := post(review("v1", "good"), header, value); rec.Code != http.StatusUnsupportedMediaType {
			t.Errorf("%s: got %d", value, rec.Code)
		}
	}
}

// FuzzTokenReview posts anything: the answer is a token review, and a yes only for the token that is known.
func FuzzTokenReview(f *testing.F) {
	for _, seed := range []string{review("v1", "good"), review("v1beta1", "x"), `{"spec":{"token":"good"}}`, "", "null", `{"spec":7}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		rec := post(string(body))
		var answer authenticationv1.TokenReview
		if err := json.Unmarshal(rec.Body.Bytes(), &answer); err != nil || answer.Kind != "TokenReview" {
			t.Fatalf("got %d %s: %v", rec.Code, rec.Body, err)
		}
		if answer.Status.Authenticated && (rec.Code != 200 || !strings.Contains(string(body), "good") && !strings.Contains(string(body), `\u`)) {
			t.Fatalf("yes to %s", body)
		}
	})
}

func ExampleWebhook() {
	hook := &authentication.Webhook{Handler: authentication.HandlerFunc(func(_ context.Context, req authentication.Request) authentication.Response {
		if req.Spec.Token == "letmein" {
			return authentication.Authenticated("", authenticationv1.UserInfo{Username: "jane"})
		}
		return authentication.Unauthenticated("unknown token", authenticationv1.UserInfo{})
	})}
	req := authentication.Request{}
	req.Spec.Token = "letmein"
	response := hook.Handle(context.Background(), req)
	fmt.Println(response.Status.Authenticated, response.Status.User.Username)
	// Output: true jane
}
