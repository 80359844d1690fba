// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package wherry

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/wherry-dev/wherry/client/config"
	"github.com/wherry-dev/wherry/client/log"
	"github.com/wherry-dev/wherry/client/scheme"
	"github.com/wherry-dev/wherry/controller/builder"
	"github.com/wherry-dev/wherry/controller/controllerutil"
	"github.com/wherry-dev/wherry/controller/reconcile"
	"github.com/wherry-dev/wherry/manager"
	"github.com/wherry-dev/wherry/manager/signals"
)

// Builder makes a controller; see package builder.
type Builder = builder.Builder

// Request names the object to reconcile; see package reconcile.
type Request = reconcile.Request

// Result tells what is to happen to a reconciled key; see package reconcile.
type Result = reconcile.Result

// Manager runs controllers and what they share; see package manager.
type Manager = manager.Manager

// Options are the settings of a Manager; see package manager.
type Options = manager.Options

// SchemeBuilder registers API types with a scheme; see package scheme.
//
// Deprecated: use runtime.SchemeBuilder, which needs no package of ours.
type SchemeBuilder = scheme.Builder

// GroupVersion is an API group and version.
type GroupVersion = schema.GroupVersion

// GroupResource is an API group and resource.
type GroupResource = schema.GroupResource

// TypeMeta holds an object's kind and API version.
type TypeMeta = metav1.TypeMeta

// ObjectMeta holds what all objects have: name, labels, owners and the like.
type ObjectMeta = metav1.ObjectMeta

// Making and running a manager with its controllers.
var (
	// NewManager is manager.New.
	NewManager = manager.New

	// NewControllerManagedBy is builder.ControllerManagedBy.
	NewControllerManagedBy = builder.ControllerManagedBy

	// SetupSignalHandler is signals.SetupSignalHandler.
	SetupSignalHandler = signals.SetupSignalHandler

	// GetConfig is config.GetConfig.
	GetConfig = config.GetConfig

	// GetConfigOrDie is config.GetConfigOrDie.
	GetConfigOrDie = config.GetConfigOrDie

	// RegisterFlags is config.RegisterFlags.
	RegisterFlags = config.RegisterFlags
)

// NewWebhookManagedBy is builder.WebhookManagedBy.
func NewWebhookManagedBy[T runtime.Object](mgr manager.Manager, obj T) *builder.WebhookBuilder[T] {
	return builder.WebhookManagedBy(mgr, obj)
}

// What reconcilers do again and again.
var (
	// CreateOrUpdate is controllerutil.CreateOrUpdate.
	CreateOrUpdate = controllerutil.CreateOrUpdate

	// CreateOrPatch is controllerutil.CreateOrPatch.
	CreateOrPatch = controllerutil.CreateOrPatch

	// SetControllerReference is controllerutil.SetControllerReference.
	SetControllerReference = controllerutil.SetControllerReference
)

// Logging.
var (
	// Log is log.Log as it was when the program started: a logger that holds
	// its lines back until SetLogger is called.
	Log = log.Log

	// LoggerFrom is log.FromContext.
	LoggerFrom = log.FromContext

	// LoggerInto is log.IntoContext.
	LoggerInto = log.IntoContext

	// SetLogger is log.SetLogger.
	SetLogger = log.SetLogger
)
