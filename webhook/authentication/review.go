// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package authentication

import (
	"context"

	authenticationv1 "k8s.io/api/authentication/v1"
)

// Request is the question: a token, and the audiences it must be meant for.
type Request struct {
	authenticationv1.TokenReview
}

// Response is the answer to a Request. Only its status counts.
type Response struct {
	authenticationv1.TokenReview
}

// Complete fills in what the answer must have: the request's UID.
func (r *Response) Complete(req Request) error {
	r.UID = req.UID
	return nil
}

// Handler answers requests. It is called from many goroutines at once.
type Handler interface {
	// Handle answers one request. ctx ends when the API server hangs up.
	Handle(ctx context.Context, req Request) Response
}

// HandlerFunc is a function as a Handler.
type HandlerFunc func(context.Context, Request) Response

// Handle calls f.
func (f HandlerFunc) Handle(ctx context.Context, req Request) Response { return f(ctx, req) }

// Authenticated says that the token is user's. reason is not shown to the caller and may be "".
func Authenticated(reason string, user authenticationv1.UserInfo) Response {
	return ReviewResponse(true, user, reason)
}

// Unauthenticated says that the token is nobody's. user is normally empty.
func Unauthenticated(reason string, user authenticationv1.UserInfo) Response {
	return ReviewResponse(false, user, reason)
}

// Errored says that it could not be told whose the token is.
func Errored(err error) Response {
	text := ""
	if err != nil {
		text = err.Error()
	}
	return ReviewResponse(false, authenticationv1.UserInfo{}, text)
}

// ReviewResponse is the answer with these parts. audiences are those of the request that the token is meant for; an API server
// takes an answer without any for one that does not know of audiences.
func ReviewResponse(authenticated bool, user authenticationv1.UserInfo, err string, audiences ...string) Response {
	return Response{TokenReview: authenticationv1.TokenReview{Status: authenticationv1.TokenReviewStatus{
		Authenticated: authenticated,
		User:          user,
		Audiences:     audiences,
		Error:         err,
	}}}
}
