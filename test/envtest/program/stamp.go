// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package program

import (
	"fmt"
	"os"
	"strings"
)

// A program counts as built if beside it lies a stamp: what it was built from,
// and its size.

func stampFile(target string) string { return target + ".stamp" }

// current reports whether target was built whole, from what stamp stands for.
func current(target, stamp string) bool {
	info, err := os.Stat(target)
	if err != nil {
		return false
	}
	have, err := os.ReadFile(stampFile(target))
	return err == nil && strings.TrimSpace(string(have)) == fmt.Sprintf("%s %d", stamp, info.Size())
}

// finish puts a built program in its place. Between the two steps a program
// without its stamp is built again.
func finish(fresh, target, stamp string) error {
	info, err := os.Stat(fresh)
	if err != nil {
		return fmt.Errorf("build the API server program: %w", err)
	}
	if err := os.Rename(fresh, target); err != nil {
		return fmt.Errorf("put the API server program in its place: %w; stop what runs it", err)
	}
	if err := os.WriteFile(stampFile(target), fmt.Appendf(nil, "%s %d\n", stamp, info.Size()), 0o644); err != nil {
		return fmt.Errorf("say what the API server program was built from: %w", err)
	}
	return nil
}
