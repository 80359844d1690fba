// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package program

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/wherry-dev/wherry/test/apiserver/identity"
	"github.com/wherry-dev/wherry/test/apiserver/private"
	"github.com/wherry-dev/wherry/test/apiserver/storage/file"
)

// check tells whether a data folder is in order, and changes nothing in it.
func check(c *commandLine) int {
	dir, err := c.dir()
	if err != nil {
		return complain(exitError, err)
	}
	r, err := file.Check(dir)
	if err != nil {
		return complain(exitError, err)
	}
	report(r)
	if len(r.Problems) > 0 {
		return complain(exitError, fmt.Errorf("%s is damaged: apiserver repair --data-dir %s --to NEW saves what can be saved",
			dir, dir))
	}
	return 0
}

// repair saves what can be read of a damaged folder to a new one, with the identity of the old.
func repair(c *commandLine) int {
	dir, err := c.dir()
	if err != nil {
		return complain(exitError, err)
	}
	if c.to == "" {
		return complain(exitUsage, errors.New("repair needs a new folder: --to NEW"))
	}
	if err := private.Dir(c.to); err != nil {
		return complain(exitError, err)
	}
	r, err := file.Repair(dir, c.to)
	if err != nil {
		return complain(exitError, err)
	}
	if data, err := private.ReadFile(filepath.Join(dir, identity.FileName)); err == nil {
		if err := private.WriteFile(filepath.Join(c.to, identity.FileName), data); err != nil {
			return complain(exitError, err)
		}
	}
	report(r)
	return 0
}

func report(r file.Report) {
	fmt.Printf("%s: %d keys, %d bytes, revision %d, log files %d, snapshots %d\n", r.Dir, r.Keys, r.Bytes, r.Revision,
		r.Segments, r.Snapshots)
	for _, n := range r.Notes {
		fmt.Println("note:", n)
	}
	if r.DroppedWrites > 0 {
		fmt.Printf("left out: %d writes behind the damage\n", r.DroppedWrites)
	}
	for _, p := range r.Problems {
		fmt.Fprintln(os.Stderr, "problem:", p)
	}
}
