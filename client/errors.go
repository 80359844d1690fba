// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"mime"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// IgnoreNotFound returns nil if err says that something was not found, else err.
func IgnoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// IgnoreAlreadyExists returns nil if err says that something exists already, else err.
func IgnoreAlreadyExists(err error) error {
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// maxErrorText is the most of an answer that is no Status that goes into an error.
const maxErrorText = 2048

// errorIn reads the error that an answer tells of. An answer that is no Status, from a proxy perhaps, gives an error made
// of the code and, if it is text, what it says.
func errorIn(c *call, found *resource, last attempt) *apierrors.StatusError {
	var opened *envelope
	if isProtobuf(last.answer.body) {
		if e, err := openEnvelope(last.answer.body); err == nil {
			opened = &e
		}
	}
	if status := statusIn(last.answer, opened); status != nil && status.Code != 0 {
		return &apierrors.StatusError{ErrStatus: *status}
	}
	message := "unknown"
	if isText(last.answer.contentType) {
		message = strings.TrimSpace(string(last.answer.body[:min(len(last.answer.body), maxErrorText)]))
	}
	seconds, _ := retryAfter(last.header)
	group := schema.GroupResource{Group: c.kind.Group, Resource: found.name}
	return apierrors.NewGenericServerResponse(last.answer.code, strings.ToLower(c.method), group, c.name, message, seconds, true)
}

func isText(contentType string) bool {
	if contentType == "" {
		return true
	}
	name, _, err := mime.ParseMediaType(contentType)
	return err == nil && strings.HasPrefix(name, "text/")
}
