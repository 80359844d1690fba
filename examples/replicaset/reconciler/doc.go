// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

// Package reconciler makes the pods of a ReplicaSet match its spec: it is the
// controller that a cluster without Kubernetes' own ReplicaSet controller is
// missing, and the longest example of how an operator is written with Wherry.
package reconciler
