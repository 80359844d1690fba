// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package authentication

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"

	"github.com/wherry-dev/wherry/client/log"
	"github.com/wherry-dev/wherry/webhook/review"
)

// maxBody is the largest review that is read: a token comes in one HTTP header, so 1 MiB is plenty.
const maxBody = 1 << 20

// errPanic is all that a caller is told of a panic: its text may hold the token.
var errPanic = errors.New("the webhook failed, its log tells why")

// Webhook speaks HTTP for a Handler. It can be put on a webhook.Server. It must not be changed once it serves.
type Webhook struct {
	// Handler answers the requests. It must be set.
	Handler Handler

	// WithContextFunc makes the context that the handler is called with, of the HTTP request's context. Nil means that context.
	WithContextFunc func(context.Context, *http.Request) context.Context
}

// Handle answers req with the Handler's answer, completed. A panic of the handler is an answer that says no.
func (wh *Webhook) Handle(ctx context.Context, req Request) (response Response) {
	logger := logger().WithValues("requestID", req.UID)
	defer func() {
		if r := recover(); r != nil {
			logger.Error(fmt.Errorf("panic: %v", r), "Observed a panic in an authentication webhook", "stack", string(debug.Stack()))
			response = Errored(errPanic)
			response.UID = req.UID
		}
	}()
	response = wh.Handler.Handle(log.IntoContext(ctx, logger), req)
	if err := response.Complete(req); err != nil {
		logger.Error(err, "unable to complete the response")
		return Errored(errors.New("unable to complete the response"))
	}
	return response
}

// ServeHTTP reads a token review, has it answered, and writes the answer. Reviews of the versions v1 and v1beta1 are answered,
// with HTTP status 200, whatever the answer is. What is no such review gets a status of its own: 400, 408, 413 or 415.
func (wh *Webhook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx := r.Context()
	if wh.WithContextFunc != nil {
		ctx = wh.WithContextFunc(ctx, r)
	}
	req, err := read(w, r)
	if err != nil {
		code := review.CodeOf(err)
		logger().Error(err, "cannot read the token review", "code", code)
		answer(w, code, authenticationv1.SchemeGroupVersion.String(), Errored(err))
		return
	}
	answer(w, http.StatusOK, req.APIVersion, wh.Handle(ctx, req))
}

func read(w http.ResponseWriter, r *http.Request) (Request, error) {
	req := Request{}
	body, err := review.Read(w, r, maxBody)
	if err != nil {
		return req, err
	}
	if err := review.Unmarshal(body, &req.TokenReview, authenticationv1.GroupName, "TokenReview", "v1", "v1beta1"); err != nil {
		return req, err
	}
	if req.Spec.Token == "" {
		return req, &review.Refusal{Code: http.StatusBadRequest, Reason: "token is empty"}
	}
	return req, nil
}

func answer(w http.ResponseWriter, status int, apiVersion string, response Response) {
	response.APIVersion, response.Kind = apiVersion, "TokenReview"
	review.Write(w, logger(), status, response.TokenReview)
}

func logger() logr.Logger { return log.Log.WithName("authentication") }
