// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"errors"

	admissionv1 "k8s.io/api/admission/v1"
)

// Request is the question: which object is to be written, by whom and how. Handlers share it and must not change it. The texts
// of its objects lie in the body that was posted: who keeps one keeps all of that, up to 7 MiB, unless it is cloned.
type Request struct {
	admissionv1.AdmissionRequest
}

type requestKey struct{}

// NewContextWithRequest returns a context that carries req.
func NewContextWithRequest(ctx context.Context, req Request) context.Context {
	return context.WithValue(ctx, requestKey{}, &req)
}

// RequestFromContext gives the request that a defaulter or validator is called for. It fails for a context of anything else.
func RequestFromContext(ctx context.Context) (Request, error) {
	if req, ok := ctx.Value(requestKey{}).(*Request); ok {
		return *req, nil
	}
	return Request{}, errors.New("no admission request in the context")
}
