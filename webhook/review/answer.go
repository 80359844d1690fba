// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package review

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	"github.com/go-logr/logr"
)

// Write answers with status and the review as JSON. What goes wrong is told to log: a review that is no JSON is answered with
// status 500, and a caller that has left hears nothing.
func Write(w http.ResponseWriter, log logr.Logger, status int, review any) {
	body, err := json.Marshal(review)
	if err != nil {
		log.Error(err, "unable to encode the response")
		http.Error(w, "the response could not be encoded", http.StatusInternalServerError)
		return
	}
	Send(w, log, status, body)
}

// Send answers with status and body, which is JSON. It says whether the answer was taken; a caller that has left hears nothing.
// If it was, body may be used again; if not, HTTP/2's server may still read it.
func Send(w http.ResponseWriter, log logr.Logger, status int, body []byte) (taken bool) {
	header := w.Header()
	header.Set("Content-Type", "application/json")
	header.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, err := w.Write(body)
	if err != nil {
		log.V(1).Info("the caller did not take the response", "error", err.Error())
	}
	return err == nil
}

// CodeOf is the HTTP status for an error of Read or Unmarshal.
func CodeOf(err error) int {
	var r *Refusal
	if errors.As(err, &r) {
		return r.Code
	}
	return http.StatusBadRequest
}
