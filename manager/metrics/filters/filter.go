// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package filters

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/client-go/rest"

	"github.com/wherry-dev/wherry/manager/metrics/server"
)

// How long answers of the API server count. A withdrawn right is still honoured for as long.
const (
	tokenFor = time.Minute
	allowFor = 5 * time.Minute
	denyFor  = 30 * time.Second
)

// WithAuthenticationAndAuthorization returns a filter that lets a request pass if the API server knows its bearer token and
// allows its user the request's method (as a verb, in lower case) on the request's path.
//
// A request with no good token gets 401, one that is not allowed 403, and 500 one about which the API server did not answer
// within 10 s; why goes to the log. The program needs the right to create tokenreviews and subjectaccessreviews.
func WithAuthenticationAndAuthorization(config *rest.Config, httpClient *http.Client) (server.Filter, error) {
	reviewer, err := newReviewer(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("metrics filter: %w", err)
	}
	g := &guard{
		reviewer: reviewer,
		users:    newMemory(func(*authenticationv1.UserInfo) time.Duration { return tokenFor }),
		rights: newMemory(func(allowed bool) time.Duration {
			if allowed {
				return allowFor
			}
			return denyFor
		}),
	}
	return func(log logr.Logger, next http.Handler) (http.Handler, error) {
		return &guarded{guard: g, log: log, next: next}, nil
	}, nil
}

// guard knows who may do what. All paths of a server share one.
type guard struct {
	reviewer *reviewer
	users    *memory[*authenticationv1.UserInfo] // by token; nil for a bad one
	rights   *memory[bool]                       // by user and question
}

func (g *guard) user(ctx context.Context, token string) (*authenticationv1.UserInfo, error) {
	return g.users.get(ctx, sha256.Sum256([]byte(token)), func(ctx context.Context) (*authenticationv1.UserInfo, error) {
		return g.reviewer.token(ctx, token)
	})
}

func (g *guard) allows(ctx context.Context, user *authenticationv1.UserInfo, verb, path string) (bool, error) {
	spec := authorizationv1.SubjectAccessReviewSpec{
		User: user.Username, UID: user.UID, Groups: user.Groups,
		NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: path, Verb: verb},
	}
	for key, values := range user.Extra {
		if spec.Extra == nil {
			spec.Extra = map[string]authorizationv1.ExtraValue{}
		}
		spec.Extra[key] = authorizationv1.ExtraValue(values)
	}
	question, err := json.Marshal(spec) // maps are written in the order of their keys
	if err != nil {
		return false, err
	}
	return g.rights.get(ctx, sha256.Sum256(question), func(ctx context.Context) (bool, error) {
		return g.reviewer.access(ctx, spec)
	})
}

type guarded struct {
	*guard
	log  logr.Logger
	next http.Handler
}

func (g *guarded) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	token, ok := bearer(req.Header)
	if !ok {
		http.Error(w, "Unauthorized", http.StatusUnauthorized)
		return
	}
	user, err := g.user(req.Context(), token)
	if err != nil {
		g.log.Error(err, "Authentication failed")
		http.Error(w, "Authentication failed", http.StatusInternalServerError)
		return
	}
	if user == nil {
		g.log.V(4).Info("Authentication failed: bad token")
		http.Error(w, "Unauthorized", http.StatusUnauthorized)
		return
	}
	verb, path := strings.ToLower(req.Method), req.URL.Path
	allowed, err := g.allows(req.Context(), user, verb, path)
	if err != nil {
		g.log.Error(err, "Authorization failed", "user", user.Username)
		http.Error(w, fmt.Sprintf("Authorization for user %s failed", user.Username), http.StatusInternalServerError)
		return
	}
	if !allowed {
		g.log.V(4).Info("Authorization denied", "user", user.Username, "verb", verb, "path", path)
		http.Error(w, fmt.Sprintf("Authorization denied for user %s", user.Username), http.StatusForbidden)
		return
	}
	req = req.Clone(req.Context())
	req.Header.Del("Authorization") // the token has done its work; nobody behind needs it
	g.next.ServeHTTP(w, req)
}

// bearer is the token of the Authorization header. A second header, or a token that could not be one, is none.
func bearer(header http.Header) (token string, ok bool) {
	values := header.Values("Authorization")
	if len(values) != 1 {
		return "", false
	}
	scheme, token, _ := strings.Cut(strings.TrimSpace(values[0]), " ")
	token = strings.TrimSpace(token)
	if !strings.EqualFold(scheme, "Bearer") || token == "" {
		return "", false
	}
	for _, c := range []byte(token) {
		if c <= ' ' || c >= 0x7f {
			return "", false
		}
	}
	return token, true
}
