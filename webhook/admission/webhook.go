// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"sync"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/wherry-dev/wherry/client/log"
	"github.com/wherry-dev/wherry/webhook/admission/metrics"
	"github.com/wherry-dev/wherry/webhook/review"
)

// maxBody is the largest review that is read. An object can have 3 MiB, an update sends two of them, and the rest is small.
const maxBody = 7 << 20

// errPanic is all that a caller is told of a panic: its text may hold what the caller must not see.
var errPanic = errors.New("the webhook failed, its log tells why")

// Webhook speaks HTTP for a Handler. It can be put on a webhook.Server or, after StandaloneWebhook, anywhere. It must not be
// changed once it serves, nor copied.
type Webhook struct {
	// Handler answers the requests. It must be set.
	Handler Handler

	// RecoverPanic turns a panic of the handler into an answer with status 500. Nil means true. Without it the connection is cut.
	RecoverPanic *bool

	// WithContextFunc makes the context that the handler is called with, of the HTTP request's context. Nil means that context.
	WithContextFunc func(context.Context, *http.Request) context.Context

	// LogConstructor makes the logger of a request, which the handler finds in its context, of the webhook's own logger. It is
	// called when the handler asks for the logger. It must bear a nil request. Nil means DefaultLogConstructor.
	LogConstructor func(base logr.Logger, req *Request) logr.Logger

	setUp sync.Once
	log   logr.Logger
}

// WithRecoverPanic sets RecoverPanic and returns wh.
func (wh *Webhook) WithRecoverPanic(recoverPanic bool) *Webhook {
	wh.RecoverPanic = &recoverPanic
	return wh
}

// Handle answers req with the Handler's answer, completed.
func (wh *Webhook) Handle(ctx context.Context, req Request) Response {
	return wh.handle(&asked{Context: ctx, webhook: wh, envelope: envelope{Request: req}})
}

func (wh *Webhook) handle(a *asked) (response Response) {
	if wh.RecoverPanic == nil || *wh.RecoverPanic {
		defer func() {
			if r := recover(); r != nil {
				metrics.WebhookPanics.WithLabelValues().Inc()
				wh.logger(nil).Error(fmt.Errorf("panic: %v", r), "Observed a panic in an admission webhook",
					"requestID", a.UID, "stack", string(debug.Stack()))
				response = Errored(http.StatusInternalServerError, errPanic)
				response.UID = a.UID
			}
		}()
	}
	if own, ok := wh.Handler.(askedHandler); ok {
		response = own.handle(a, &a.Request)
	} else {
		response = wh.Handler.Handle(a, a.Request)
	}
	if err := response.Complete(a.Request); err != nil {
		a.log().Error(err, "unable to encode the patches of the response")
		response = Errored(http.StatusInternalServerError, errors.New("unable to encode the response"))
		response.UID = a.UID
	}
	return response
}

// askedHandler is a handler of ours. It finds the request in the context and needs no copies of it.
type askedHandler interface {
	handle(ctx context.Context, req *Request) Response
}

// ServeHTTP reads a review, has it answered, and writes the answer. Reviews of the versions v1 and v1beta1 are answered, with
// HTTP status 200, whatever the answer is. What is no such review gets a status of its own: 400, 408, 413 or 415.
func (wh *Webhook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a := &asked{Context: r.Context(), webhook: wh}
	if wh.WithContextFunc != nil {
		a.Context = wh.WithContextFunc(a.Context, r)
	}
	body, err := review.Read(w, r, maxBody)
	if err == nil {
		err = a.read(body)
	}
	if err != nil {
		code := review.CodeOf(err)
		wh.logger(nil).Error(err, "cannot read the admission review", "code", code)
		refused := Errored(int32(code), err)
		is := metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "AdmissionReview"}
		answer(w, wh.logger(nil), code, is, &refused.AdmissionResponse)
		return
	}
	response := wh.handle(a)
	answer(w, wh.logger(nil), http.StatusOK, a.TypeMeta, &response.AdmissionResponse)
}

// logger is the logger of a request, or the webhook's own if req is nil.
func (wh *Webhook) logger(req *Request) logr.Logger {
	wh.setUp.Do(func() {
		if wh.log.GetSink() == nil {
			wh.log = log.Log.WithName("admission")
		}
	})
	if wh.LogConstructor == nil {
		return DefaultLogConstructor(wh.log, req)
	}
	return wh.LogConstructor(wh.log, req)
}

// DefaultLogConstructor adds to base which object is written and by whom. It returns base as it is if req is nil.
func DefaultLogConstructor(base logr.Logger, req *Request) logr.Logger {
	if req == nil {
		return base
	}
	return base.WithValues(
		"object", klog.KRef(req.Namespace, req.Name),
		"namespace", req.Namespace, "name", req.Name,
		"resource", req.Resource, "user", req.UserInfo.Username,
		"requestID", req.UID,
	)
}
