// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

// Package identity holds what makes one API server itself: a certificate authority, the key that signs service
// account tokens and the administrator's token. Each data folder has its own, made once and kept in one file, so that
// a kubeconfig stays valid over a restart; a server that keeps nothing makes one in memory.
//
// All keys are ECDSA P-256: making one takes well under a millisecond, where an RSA key takes up to half a second.
package identity
