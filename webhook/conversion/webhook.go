// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"strings"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/wherry-dev/wherry/client/apiutil"
	"github.com/wherry-dev/wherry/client/log"
	"github.com/wherry-dev/wherry/webhook/conversion/metrics"
	"github.com/wherry-dev/wherry/webhook/review"
)

const (
	// maxBody is the largest review that is read. An API server sends an object at a time when it reads its store, and takes no
	// object of more than 3 MiB; what else it may put in one request has room beside that.
	maxBody = 7 << 20
	// maxTold is how many of the objects that could not be converted are told of.
	maxTold = 10
)

// errPanic is all that a caller is told of a panic.
var errPanic = errors.New("the converter failed, its log tells why")

// NewWebhookHandler returns what answers conversion requests for the kinds of scheme. A kind that registry has a converter for
// is converted by that, any other by its Go types. The registry is asked at each request, so it may be filled later.
// A nil scheme stands for apiutil's default scheme, a nil registry for an empty one.
func NewWebhookHandler(scheme *runtime.Scheme, registry Registry) http.Handler {
	if scheme == nil {
		scheme = apiutil.DefaultScheme()
	}
	if registry == nil {
		registry = NewRegistry()
	}
	return &webhook{scheme: scheme, registry: registry, decoder: NewDecoder(scheme), byTypes: byTypes{scheme}}
}

type webhook struct {
	scheme   *runtime.Scheme
	registry Registry
	decoder  *Decoder
	byTypes  byTypes
}

// ServeHTTP reads a review, converts its objects, and writes the answer. A review is answered with HTTP status 200, also if
// objects cannot be converted; what is no review gets a status of its own: 400, 408, 413 or 415.
func (wh *webhook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	logger := log.Log.WithName("conversion-webhook")
	asked, err := read(w, r)
	if err != nil {
		code := review.CodeOf(err)
		logger.Error(err, "cannot read the conversion review", "code", code)
		http.Error(w, err.Error(), code)
		return
	}
	logger = logger.WithValues("requestID", asked.Request.UID, "desiredAPIVersion", asked.Request.DesiredAPIVersion)
	response := wh.convert(log.IntoContext(r.Context(), logger), logger, asked.Request)
	review.Write(w, logger, http.StatusOK, conversionReview{TypeMeta: asked.TypeMeta, Response: response})
}

func read(w http.ResponseWriter, r *http.Request) (*conversionReview, error) {
	body, err := review.Read(w, r, maxBody)
	if err != nil {
		return nil, err
	}
	asked := &conversionReview{}
	if err := review.Unmarshal(body, asked, reviewGroup, "ConversionReview", "v1", "v1beta1"); err != nil {
		return nil, err
	}
	if asked.Request == nil {
		return nil, &review.Refusal{Code: http.StatusBadRequest, Reason: "the conversion review has no request"}
	}
	return asked, nil
}

// convert converts all objects. If some cannot be, the answer names them and has no objects.
func (wh *webhook) convert(ctx context.Context, logger logr.Logger, req *conversionRequest) *conversionResponse {
	response := &conversionResponse{UID: req.UID, ConvertedObjects: []runtime.RawExtension{}}
	desired, err := schema.ParseGroupVersion(req.DesiredAPIVersion)
	if err == nil && desired.Empty() {
		err = errors.New("it is empty")
	}
	if err != nil {
		response.Result = failure(http.StatusBadRequest, fmt.Sprintf("desiredAPIVersion: %v", err))
		return response
	}
	converted := make([]runtime.RawExtension, 0, len(req.Objects))
	var failures []string
	for i, object := range req.Objects {
		dst, err := wh.convertOne(ctx, logger, object, desired)
		if err != nil {
			failures = append(failures, fmt.Sprintf("object %d of %d, %s: %v", i+1, len(req.Objects), describe(object.Raw), err))
			continue
		}
		converted = append(converted, dst)
	}
	if len(failures) > 0 {
		text := summary(failures)
		logger.Error(errors.New(text), "failed to convert", "failed", len(failures), "objects", len(req.Objects))
		response.Result = failure(http.StatusUnprocessableEntity, text)
		return response
	}
	response.ConvertedObjects = converted
	response.Result = metav1.Status{Status: metav1.StatusSuccess}
	return response
}

func failure(code int32, message string) metav1.Status {
	return metav1.Status{Status: metav1.StatusFailure, Code: code, Message: message}
}

func summary(failures []string) string {
	if more := len(failures) - maxTold; more > 0 {
		failures = append(failures[:maxTold:maxTold], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(failures, "; ")
}

// convertOne gives object in the desired version. A panic of a converter is the error of this object.
func (wh *webhook) convertOne(ctx context.Context, logger logr.Logger, object runtime.RawExtension, desired schema.GroupVersion) (converted runtime.RawExtension, err error) {
	defer func() {
		if r := recover(); r != nil {
			metrics.WebhookPanics.WithLabelValues().Inc()
			logger.Error(fmt.Errorf("panic: %v", r), "Observed a panic in a converter", "object", describe(object.Raw), "stack", string(debug.Stack()))
			err = errPanic
		}
	}()
	src, kind, err := wh.decoder.Decode(object.Raw)
	switch {
	case err != nil:
		return converted, err
	case kind.Group != desired.Group:
		return converted, fmt.Errorf("cannot convert it to another group, %s", desired)
	case kind.GroupVersion() == desired: // nothing to do, and nothing to lose
		return object, nil
	}
	dst, err := wh.scheme.New(desired.WithKind(kind.Kind))
	if err != nil {
		return converted, err
	}
	dst.GetObjectKind().SetGroupVersionKind(desired.WithKind(kind.Kind))
	converter, ok := wh.registry.GetConverter(kind.GroupKind())
	if !ok {
		converter = wh.byTypes
	}
	if err := converter.ConvertObject(ctx, src, dst); err != nil {
		return converted, fmt.Errorf("from %s to %s: %w", kind.Version, desired.Version, err)
	}
	// A converter that copies the whole of its source over takes the source's version along.
	dst.GetObjectKind().SetGroupVersionKind(desired.WithKind(kind.Kind))
	return runtime.RawExtension{Object: dst}, nil
}

// describe names an object of which nothing is known, not even that it is one.
func describe(raw []byte) string {
	var is metav1.PartialObjectMetadata
	if err := json.Unmarshal(raw, &is); err != nil {
		return "which is no object"
	}
	name := is.Name
	if is.Namespace != "" {
		name = is.Namespace + "/" + name
	}
	return fmt.Sprintf("%s %q", is.Kind, name)
}
