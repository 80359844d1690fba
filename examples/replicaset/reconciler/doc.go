// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

// Package reconciler is a complete ReplicaSet controller: it adopts and
// releases pods, creates and deletes them until as many run as the spec asks
// for, and reports what it sees. It does what a cluster without Kubernetes'
// own ReplicaSet controller is missing, and is the longest example of how an
// operator is written with Wherry.
//
// It keeps no account of the writes it has made ("expectations"), as
// controllers on a lagging cache must: it leans on the client's
// read-your-writes consistency, by which a list shows every pod that an
// earlier reconcile created or deleted. RequireReadYourWrites refuses settings
// that switch that off.
//
// # Beside Kubernetes' own
//
// The cases in test/replicaset run on this controller and on Kubernetes' own,
// and both behave alike, also where Kubernetes documents something else. What
// differs, on purpose:
//
//   - Deletes and adoptions name the pod's UID, adoptions its version too: a
//     namesake or a pod that somebody else took meanwhile is left alone.
//   - Of a batch of pods that are refused, one event tells, not one for each.
//   - The status is patched, not replaced: what others put there stays. It
//     reports pods as they are written, not when their events have come, so a
//     set that is scaled shows no number in between.
package reconciler
