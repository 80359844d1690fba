// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package builder

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"regexp"
	"strings"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"

	"github.com/wherry-dev/wherry/client/apiutil"
	"github.com/wherry-dev/wherry/manager"
	"github.com/wherry-dev/wherry/webhook/admission"
	"github.com/wherry-dev/wherry/webhook/conversion"
)

// convertPath is where all kinds of a process are converted.
const convertPath = "/convert"

// webhookPath is what a path given by the user must be like.
var webhookPath = regexp.MustCompile(`^((/[a-zA-Z0-9-_]+)+|/)$`)

// WebhookBuilder registers the webhooks of one kind with a manager's webhook server. It is not safe for concurrent use, and
// done when Complete returns.
type WebhookBuilder[T runtime.Object] struct {
	mgr    manager.Manager
	object T

	defaulter        admission.Defaulter[T]
	defaulterOptions []admission.DefaulterOption
	customDefaulter  admission.CustomDefaulter
	validator        admission.Validator[T]
	customValidator  admission.CustomValidator
	converter        func(*runtime.Scheme) (conversion.Converter, error)

	defaulterPath, validatorPath string

	recoverPanic   *bool
	contextFunc    func(context.Context, *http.Request) context.Context
	logConstructor func(base logr.Logger, req *admission.Request) logr.Logger
}

// WebhookManagedBy begins the webhooks of object's kind. Of object only the type counts.
func WebhookManagedBy[T runtime.Object](m manager.Manager, object T) *WebhookBuilder[T] {
	return &WebhookBuilder[T]{mgr: m, object: object}
}

// WithDefaulter has a defaulter called for each write of the kind, at /mutate-GROUP-VERSION-KIND: dots of the group become
// dashes and the kind is in lower case.
func (blder *WebhookBuilder[T]) WithDefaulter(defaulter admission.Defaulter[T], opts ...admission.DefaulterOption) *WebhookBuilder[T] {
	blder.defaulter, blder.defaulterOptions = defaulter, opts
	return blder
}

// WithCustomDefaulter is WithDefaulter for a defaulter of no particular type. There can be one of the two.
//
// Deprecated: use WithDefaulter.
func (blder *WebhookBuilder[T]) WithCustomDefaulter(defaulter admission.CustomDefaulter, opts ...admission.DefaulterOption) *WebhookBuilder[T] {
	blder.customDefaulter, blder.defaulterOptions = defaulter, opts
	return blder
}

// WithValidator has a validator called for each write of the kind, at /validate-GROUP-VERSION-KIND.
func (blder *WebhookBuilder[T]) WithValidator(validator admission.Validator[T]) *WebhookBuilder[T] {
	blder.validator = validator
	return blder
}

// WithCustomValidator is WithValidator for a validator of no particular type. There can be one of the two.
//
// Deprecated: use WithValidator.
func (blder *WebhookBuilder[T]) WithCustomValidator(validator admission.CustomValidator) *WebhookBuilder[T] {
	blder.customValidator = validator
	return blder
}

// WithConverter has the kind converted by what make makes of the manager's scheme, and not by its Go types. The package
// webhook/conversion has functions that return such a make.
func (blder *WebhookBuilder[T]) WithConverter(make func(*runtime.Scheme) (conversion.Converter, error)) *WebhookBuilder[T] {
	blder.converter = make
	return blder
}

// WithLogConstructor makes the loggers of requests. It must bear a nil request. Default: a logger that tells kind, object, user
// and request.
func (blder *WebhookBuilder[T]) WithLogConstructor(logConstructor func(base logr.Logger, req *admission.Request) logr.Logger) *WebhookBuilder[T] {
	blder.logConstructor = logConstructor
	return blder
}

// WithContextFunc makes the context that defaulter and validator are called with, of the HTTP request's.
func (blder *WebhookBuilder[T]) WithContextFunc(contextFunc func(context.Context, *http.Request) context.Context) *WebhookBuilder[T] {
	blder.contextFunc = contextFunc
	return blder
}

// RecoverPanic says whether a panic of defaulter or validator becomes an answer with status 500. Default: true.
func (blder *WebhookBuilder[T]) RecoverPanic(recoverPanic bool) *WebhookBuilder[T] {
	blder.recoverPanic = &recoverPanic
	return blder
}

// WithDefaulterCustomPath puts the defaulter at another path.
func (blder *WebhookBuilder[T]) WithDefaulterCustomPath(customPath string) *WebhookBuilder[T] {
	blder.defaulterPath = customPath
	return blder
}

// WithValidatorCustomPath puts the validator at another path.
func (blder *WebhookBuilder[T]) WithValidatorCustomPath(customPath string) *WebhookBuilder[T] {
	blder.validatorPath = customPath
	return blder
}

// Complete registers the webhooks. A kind that can be converted, by a converter or by its Go types, is converted at /convert.
// A path that is served already is left as it is, and the log tells so. On an error nothing is registered.
func (blder *WebhookBuilder[T]) Complete() error {
	if err := blder.check(); err != nil {
		return fmt.Errorf("webhook for %T: %w", blder.object, err)
	}
	if err := blder.complete(); err != nil {
		return fmt.Errorf("webhook for %T: %w", blder.object, err)
	}
	return nil
}

// check finds mistakes of the chain of calls, all of them.
func (blder *WebhookBuilder[T]) check() error {
	var mistakes []error
	wrong := func(is bool, text string) {
		if is {
			mistakes = append(mistakes, errors.New(text))
		}
	}
	wrong(apiutil.IsNil(blder.mgr), "the manager is nil")
	wrong(apiutil.IsNil(blder.object), "the object given to WebhookManagedBy is nil")
	typed := !apiutil.IsNil(blder.defaulter) || !apiutil.IsNil(blder.validator)
	wrong(typed && reflect.TypeFor[T]().Kind() != reflect.Pointer,
		fmt.Sprintf("WithDefaulter and WithValidator need a pointer to a struct, not %s: name the type in WebhookManagedBy", reflect.TypeFor[T]()))
	wrong(!apiutil.IsNil(blder.defaulter) && !apiutil.IsNil(blder.customDefaulter), "both WithDefaulter and WithCustomDefaulter are called")
	wrong(!apiutil.IsNil(blder.validator) && !apiutil.IsNil(blder.customValidator), "both WithValidator and WithCustomValidator are called")
	for _, path := range []string{blder.defaulterPath, blder.validatorPath} {
		wrong(path != "" && !webhookPath.MatchString(path), fmt.Sprintf("the path %q is none: it must match %s", path, webhookPath))
	}
	return errors.Join(mistakes...)
}

func (blder *WebhookBuilder[T]) complete() error {
	kind, err := apiutil.GVKForObject(blder.object, blder.mgr.GetScheme())
	if err != nil {
		return err
	}
	converts, err := blder.registerConverter(kind)
	if err != nil {
		return err
	}
	if hook := blder.defaulting(); hook != nil {
		blder.serve(pathOf("mutate", kind, blder.defaulterPath), blder.dress(hook, kind))
	}
	if hook := blder.validating(); hook != nil {
		blder.serve(pathOf("validate", kind, blder.validatorPath), blder.dress(hook, kind))
	}
	if converts {
		blder.serve(convertPath, conversion.NewWebhookHandler(blder.mgr.GetScheme(), blder.mgr.GetConverterRegistry()))
	}
	return nil
}

// registerConverter says whether the kind can be converted.
func (blder *WebhookBuilder[T]) registerConverter(kind schema.GroupVersionKind) (bool, error) {
	if blder.converter == nil {
		return conversion.IsConvertible(blder.mgr.GetScheme(), blder.object)
	}
	converter, err := blder.converter(blder.mgr.GetScheme())
	if err != nil {
		return false, err
	}
	return true, blder.mgr.GetConverterRegistry().RegisterConverter(kind.GroupKind(), converter)
}

func (blder *WebhookBuilder[T]) defaulting() *admission.Webhook {
	scheme := blder.mgr.GetScheme()
	switch {
	case !apiutil.IsNil(blder.defaulter):
		return admission.WithDefaulter(scheme, blder.defaulter, blder.defaulterOptions...)
	case !apiutil.IsNil(blder.customDefaulter):
		return admission.WithCustomDefaulter(scheme, blder.object, blder.customDefaulter, blder.defaulterOptions...)
	default:
		return nil
	}
}

func (blder *WebhookBuilder[T]) validating() *admission.Webhook {
	scheme := blder.mgr.GetScheme()
	switch {
	case !apiutil.IsNil(blder.validator):
		return admission.WithValidator(scheme, blder.validator)
	case !apiutil.IsNil(blder.customValidator):
		return admission.WithCustomValidator(scheme, blder.object, blder.customValidator)
	default:
		return nil
	}
}

// dress gives hook what all webhooks of the builder have.
func (blder *WebhookBuilder[T]) dress(hook *admission.Webhook, kind schema.GroupVersionKind) http.Handler {
	hook.RecoverPanic = blder.recoverPanic
	hook.WithContextFunc = blder.contextFunc
	hook.LogConstructor = blder.logConstructor
	if hook.LogConstructor == nil {
		hook.LogConstructor = kindLogger(kind)
	}
	// Without a path for metrics it has no error to give; the server counts requests.
	dressed, _ := admission.StandaloneWebhook(hook, admission.StandaloneOptions{Logger: blder.mgr.GetLogger().WithName("admission")})
	return dressed
}

// kindLogger is the default of LogConstructor.
func kindLogger(kind schema.GroupVersionKind) func(logr.Logger, *admission.Request) logr.Logger {
	return func(base logr.Logger, req *admission.Request) logr.Logger {
		if req == nil {
			return base.WithValues("webhookGroup", kind.Group, "webhookKind", kind.Kind)
		}
		return base.WithValues(
			"webhookGroup", kind.Group, "webhookKind", kind.Kind,
			kind.Kind, klog.KRef(req.Namespace, req.Name),
			"namespace", req.Namespace, "name", req.Name,
			"resource", req.Resource, "user", req.UserInfo.Username,
			"requestID", req.UID,
		)
	}
}

func pathOf(verb string, kind schema.GroupVersionKind, custom string) string {
	if custom != "" {
		return custom
	}
	return "/" + verb + "-" + strings.ReplaceAll(kind.Group, ".", "-") + "-" + kind.Version + "-" + strings.ToLower(kind.Kind)
}

// serve registers hook, unless the very path is served already: two versions of a kind share /convert, and two builders of one
// kind their paths.
func (blder *WebhookBuilder[T]) serve(path string, hook http.Handler) {
	server := blder.mgr.GetWebhookServer()
	if _, pattern := server.WebhookMux().Handler(&http.Request{URL: &url.URL{Path: path}}); pattern == path {
		blder.mgr.GetLogger().Info("Skip registering a webhook: the path is served already", "path", path)
		return
	}
	server.Register(path, hook)
}
