// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

// Package admission answers the API server's questions whether an object may be written, and as what.
//
// A [Handler] answers one request. [WithDefaulter] and [WithValidator] make one from functions that know only a Go type;
// the [Webhook] around a handler speaks HTTP. Package controller/builder registers webhooks with a manager's server.
//
// A defaulter's patch holds what the defaulter changed and nothing else. What it did not touch stays as the caller wrote it:
// fields that the Go type does not know, and numbers that it would write in another way.
package admission
