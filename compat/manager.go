// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package controllerruntime

import "sigs.k8s.io/controller-runtime/pkg/manager"

// NewManager is manager.New.
var NewManager = manager.New
