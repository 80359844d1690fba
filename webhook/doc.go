// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

// Package webhook serves what the API server calls: admission reviews, token reviews and conversions.
//
// A manager makes, starts and stops the server; package controller/builder registers the webhooks of a kind on it. What
// answers a request lives in the packages below: admission, authentication and conversion.
package webhook
