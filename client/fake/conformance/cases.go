// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"slices"

	"github.com/wherry-dev/wherry/client/fake"
)

// Cases gives all cases.
func Cases() []Case {
	return slices.Concat(createCases(), readCases(), updateCases(), unversionedCases(), statusCases, patchCases(), applyCases(),
		deleteCases(), podCases, listCases(), watchCases(), subresourceCases, scopeCases())
}

// answersCreated are the behaviours without which what a create answers differs in plain sight.
const answersCreated = fake.Identity | fake.Generations | fake.ListVersions | fake.NoOpWrites | fake.StatusReset
