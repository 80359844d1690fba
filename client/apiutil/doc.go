// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

// Package apiutil answers the questions that every floor asks about an object: which form it has, which kind it is,
// whether that kind lives in a namespace, and which resource of the API server serves it.
//
// It is the lowest package of the module and imports none of the others.
//
// Words used here and above:
//
//   - form: how an object is held in memory: typed, unstructured or metadata ([Form]);
//   - kind: group, version and kind of an object, and its scope;
//   - default scheme: the scheme that is used where none is given ([DefaultScheme]).
package apiutil
