// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

// Package conversion answers the API server's requests to convert custom resources from one version to another.
//
// A kind is converted by the converter registered for it, or else by its Go types themselves: one of its versions is a
// [github.com/wherry-dev/wherry/client/conversion.Hub], and every other a
// [github.com/wherry-dev/wherry/client/conversion.Convertible].
package conversion
