// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

// Package controllers runs some of Kubernetes' own controllers. Three of them belong beside every API server that is to
// behave like a cluster: without them namespaces never go away, dependents of deleted owners stay, and new namespaces
// have no service account. The others make a cluster that moves, for whom that is the yardstick.
//
// Each Set has informers of its own, so that it can be stopped and another started while the server runs on.
package controllers
