// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

// Package controllertest holds test doubles for controllers: an informer that
// a test drives by hand, and a queue that shows what was put into it.
package controllertest
