// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

// Package finalizer runs several finalizers of one kind of object: it adds
// each to objects that live, and runs and removes it on objects that are being
// deleted.
package finalizer
