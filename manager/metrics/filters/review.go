// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package filters

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
)

// reviewTimeout bounds one question to the API server, with all its repetitions.
const reviewTimeout = 10 * time.Second

// backoff spaces the repetitions of a question that got no answer.
var backoff = wait.Backoff{Duration: 500 * time.Millisecond, Factor: 1.5, Jitter: 0.2, Steps: 5}

// reviewer asks the API server who a token belongs to, and what somebody may do.
type reviewer struct {
	authentication, authorization rest.Interface
}

func newReviewer(config *rest.Config, httpClient *http.Client) (*reviewer, error) {
	s := runtime.NewScheme()
	if err := errors.Join(authenticationv1.AddToScheme(s), authorizationv1.AddToScheme(s)); err != nil {
		return nil, err
	}
	codecs := serializer.NewCodecFactory(s).WithoutConversion()
	client := func(gv schema.GroupVersion) (rest.Interface, error) {
		c := rest.CopyConfig(config)
		c.GroupVersion, c.APIPath, c.NegotiatedSerializer = &gv, "/apis", codecs
		c.ContentType, c.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
		return rest.RESTClientForConfigAndClient(c, httpClient)
	}
	authentication, err := client(authenticationv1.SchemeGroupVersion)
	if err != nil {
		return nil, err
	}
	authorization, err := client(authorizationv1.SchemeGroupVersion)
	return &reviewer{authentication, authorization}, err
}

// token says who the token belongs to; nil if it is good for nothing.
func (r *reviewer) token(ctx context.Context, token string) (*authenticationv1.UserInfo, error) {
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}
	answer := &authenticationv1.TokenReview{}
	err := ask(ctx, func() error {
		return r.authentication.Post().Resource("tokenreviews").Body(review).Do(ctx).Into(answer)
	})
	switch {
	case apierrors.IsBadRequest(err), apierrors.IsInvalid(err), apierrors.IsRequestEntityTooLargeError(err):
		return nil, nil // the server cannot even read it: a bad token, not a fault of ours
	case err != nil:
		return nil, fmt.Errorf("review the token: %w", err)
	case !answer.Status.Authenticated:
		return nil, nil
	}
	return &answer.Status.User, nil
}

// access says whether the API server lets somebody do what spec says.
func (r *reviewer) access(ctx context.Context, spec authorizationv1.SubjectAccessReviewSpec) (bool, error) {
	review := &authorizationv1.SubjectAccessReview{Spec: spec}
	answer := &authorizationv1.SubjectAccessReview{}
	err := ask(ctx, func() error {
		return r.authorization.Post().Resource("subjectaccessreviews").Body(review).Do(ctx).Into(answer)
	})
	if err != nil {
		return false, fmt.Errorf("review the access: %w", err)
	}
	return answer.Status.Allowed && !answer.Status.Denied, nil
}

// ask repeats do as long as its error may pass.
func ask(ctx context.Context, do func() error) error {
	var last error
	err := wait.ExponentialBackoffWithContext(ctx, backoff, func(context.Context) (bool, error) {
		last = do()
		return last == nil || !passes(last), nil
	})
	if last == nil {
		return err
	}
	return last
}

// passes says whether the same question may be answered a moment later.
func passes(err error) bool {
	var network net.Error
	return apierrors.IsInternalError(err) || apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) ||
		apierrors.IsTooManyRequests(err) || apierrors.IsServiceUnavailable(err) || errors.As(err, &network)
}
