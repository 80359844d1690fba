// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

// Package controllerutil holds what reconcilers do again and again: owner
// references, finalizers, and bringing one object into a wanted state.
package controllerutil
