// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

// Package config holds the settings that a manager hands down to all its controllers.
package config
