// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

// Package builder makes controllers in one expression:
//
//	err := builder.ControllerManagedBy(mgr).
//		For(&appsv1.ReplicaSet{}).
//		Owns(&corev1.Pod{}).
//		Complete(reconciler)
//
// Mistakes in the chain are collected and returned by Complete or Build, all
// of them together.
package builder
