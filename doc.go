// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

// Package wherry holds the names that an operator needs most, so that one
// import will do. It is a list of aliases and forwards; each name is explained
// where it comes from.
//
// Programs usually import it as ctrl:
//
//	import ctrl "github.com/wherry-dev/wherry"
//
//	mgr, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{Scheme: scheme})
//	...
//	err = ctrl.NewControllerManagedBy(mgr).
//		For(&appsv1.ReplicaSet{}).
//		Owns(&corev1.Pod{}).
//		Complete(&Reconciler{Client: mgr.GetClient()})
//	...
//	err = mgr.Start(ctrl.SetupSignalHandler())
//
// The package is named for the project, not controllerruntime as in the
// library whose API it shares: with the import name ctrl nobody sees the
// difference.
package wherry
