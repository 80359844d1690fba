// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"testing"
)

// TestMain has git work in a tree that another user owns, as a checkout in a container may be, and sign and hook nothing,
// whatever the user has set.
func TestMain(m *testing.M) {
	settings := [][2]string{{"safe.directory", "*"}, {"commit.gpgSign", "false"}, {"tag.gpgSign", "false"}, {"core.hooksPath", os.DevNull}}
	set := func(name, value string) {
		if err := os.Setenv(name, value); err != nil {
			panic(err)
		}
	}
	set("GIT_CONFIG_COUNT", fmt.Sprint(len(settings)))
	for i, s := range settings {
		set(fmt.Sprint("GIT_CONFIG_KEY_", i), s[0])
		set(fmt.Sprint("GIT_CONFIG_VALUE_", i), s[1])
	}
	os.Exit(m.Run())
}
