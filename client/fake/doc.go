// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

// Package fake is a client for tests that keeps its objects in memory and follows the rules by which an API server writes to
// them: versions and conflicts, finalizers, the split between an object and its status, sub-resources, every kind of patch
// with server-side apply among them, selectors, paging, dry runs, preconditions and watches. It starts in microseconds, needs
// no process and no port, and may be used by any number of goroutines, under testing/synctest too.
//
// A conformance suite, in the folder beside this file, runs the same cases here and on a real server and compares the
// answers field by field.
//
// # What is as tests in the field expect it
//
// Operators have been tested for years against a fake that does less than a server, and their tests compare whole objects.
// So by default:
//
//   - A created object has resourceVersion "1", one that was given to the builder "999", and each write adds one, even one
//     that changes nothing.
//   - Neither UID, creationTimestamp nor generation are set or kept; they are the caller's.
//   - A create keeps the status.
//   - Objects of namespaced kinds may be in no namespace, and no Namespace object is needed.
//   - A deleted pod without finalizers is gone at once.
//   - Names and labels are not validated, except that there must be a name.
//   - Lists have no resourceVersion, and a watch tells only of what happens after it.
//   - managedFields are kept and not shown.
//   - RESTMapper knows nothing unless one is given.
//   - Typed objects come back without TypeMeta, unstructured and metadata ones with it.
//   - The status sub-resources of built-in kinds are known, those of other kinds are what WithStatusSubresource says.
//
// [ClientBuilder.WithServerBehaviour] switches the server's behaviour on, one [Behaviour] at a time or with [AllBehaviours];
// [ClientBuilder.WithReturnManagedFields], [ClientBuilder.WithGlobalResourceVersionCounter] and
// [ClientBuilder.WithRESTMapper] do the rest.
//
// # What it never does
//
// Specs are neither defaulted nor validated, there is no admission, no conversion between versions of a kind, no garbage
// collection and no controller: a delete ends with the object, whatever its propagation policy. Evictions ask no disruption
// budget. Custom resources have no schema, so that fields are not pruned and, without type converters that know better,
// server-side apply takes their lists for atomic.
package fake
