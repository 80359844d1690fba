// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

// Package podwebhook holds the admission webhooks of the ReplicaSet example: one that completes pods of ReplicaSets, and one that
// refuses those which no ReplicaSet could keep.
package podwebhook
