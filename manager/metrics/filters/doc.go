// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

// Package filters asks the API server who calls the metrics server and whether they may, as kube-apiserver's own components
// do, but with two small REST calls instead of its libraries.
package filters
