// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package review

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
)

// minBuffer is what is set aside for a body whose length is not known.
const minBuffer = 4 << 10

// Refusal says why a request is no review that can be answered. It is an error.
type Refusal struct {
	// Code is the HTTP status of the answer.
	Code int
	// Reason is for the caller to read.
	Reason string
}

func (r *Refusal) Error() string { return r.Reason }

func refuse(code int, format string, args ...any) *Refusal {
	return &Refusal{Code: code, Reason: fmt.Sprintf(format, args...)}
}

// Read gives the body of a request that posts a review. Headers are looked at before the body: its type must be JSON, and it
// must come as it is, since nothing here decompresses. A body of more than limit bytes is refused without being kept.
// An error is always a *Refusal. Read blocks until the body has come, the server's read timeout ends the wait.
func Read(w http.ResponseWriter, req *http.Request, limit int64) ([]byte, error) {
	given := req.Header.Get("Content-Type")
	if !isJSON(given) {
		return nil, refuse(http.StatusUnsupportedMediaType, "contentType=%s, expected application/json", given)
	}
	if coding := req.Header.Get("Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
		return nil, refuse(http.StatusUnsupportedMediaType, "contentEncoding=%s, expected none", coding)
	}
	if req.Body == nil || req.Body == http.NoBody {
		return nil, refuse(http.StatusBadRequest, "request body is empty")
	}
	body, err := readAll(http.MaxBytesReader(w, req.Body, limit), min(req.ContentLength, limit))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return nil, refuse(http.StatusRequestEntityTooLarge, "request body is larger than %d bytes", limit)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, refuse(http.StatusRequestTimeout, "request body did not come in time")
	case err != nil:
		return nil, refuse(http.StatusBadRequest, "request body cannot be read: %v", err)
	case len(body) == 0:
		return nil, refuse(http.StatusBadRequest, "request body is empty")
	}
	return body, nil
}

func isJSON(contentType string) bool {
	if contentType == "application/json" { // what API servers send
		return true
	}
	media, _, err := mime.ParseMediaType(contentType)
	return err == nil && media == "application/json"
}

// readAll is io.ReadAll for a body whose length is told beforehand, most of the time. length is below 0 if it is not. It is a
// caller's word only, so a large one is believed as it comes true.
func readAll(r io.Reader, length int64) ([]byte, error) {
	buffer := make([]byte, 0, max(minBuffer, min(length, 1<<20)+1))
	for {
		n, err := r.Read(buffer[len(buffer):cap(buffer)])
		buffer = buffer[:len(buffer)+n]
		if err == io.EOF {
			return buffer, nil
		}
		if err != nil {
			return nil, err
		}
		if len(buffer) == cap(buffer) {
			buffer = append(buffer, 0)[:len(buffer)]
		}
	}
}

// Typed is a review: it says which group, version and kind it is.
type Typed interface{ GetObjectKind() schema.ObjectKind }

// Unmarshal reads a review of the given group and kind into into and checks that it is one, in one of the versions, as Check
// does. The versions of a review must have one shape. An error is always a *Refusal.
func Unmarshal(body []byte, into Typed, group, kind string, versions ...string) error {
	if err := json.Unmarshal(body, into); err != nil {
		return refuse(http.StatusBadRequest, "couldn't decode the %s: %v", kind, err)
	}
	return Check(into, group, kind, versions...)
}

// Check says whether a review is of the given group and kind, in one of the versions. One that does not say what it is counts
// as one of the first version, and says so afterwards. An error is always a *Refusal.
func Check(review Typed, group, kind string, versions ...string) error {
	is := review.GetObjectKind().GroupVersionKind()
	if is.Empty() {
		review.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: versions[0], Kind: kind})
		return nil
	}
	if is.Group != group || is.Kind != kind || !slices.Contains(versions, is.Version) {
		apiVersion, got := is.ToAPIVersionAndKind()
		return refuse(http.StatusBadRequest, "expected a %s of %s in version %s, got apiVersion %q and kind %q",
			kind, group, strings.Join(versions, " or "), apiVersion, got)
	}
	return nil
}
