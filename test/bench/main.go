// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"regexp"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench: "+err.Error())
		os.Exit(1)
	}
}

func run() error {
	file := flag.String("json", "", "`FILE` to write the results to as JSON as well")
	only := flag.String("only", "", "run only the rows whose name matches this `REGEXP`")
	rounds := flag.Int("rounds", 7, "how often each side of a row runs; figures are the median")
	flag.Parse()
	pick, err := regexp.Compile(*only)
	if err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	if *rounds < 1 {
		return fmt.Errorf("-rounds %d: at least one round is needed", *rounds)
	}
	var results []result
	fmt.Println(heading)
	for _, r := range rows() {
		if !pick.MatchString(r.name) {
			continue
		}
		got, err := r.measure(*rounds)
		if err != nil {
			return fmt.Errorf("%s: %w", r.name, err)
		}
		for _, g := range got {
			fmt.Println(g)
		}
		results = append(results, got...)
	}
	if len(results) == 0 {
		return fmt.Errorf("no row matches %q", *only)
	}
	if *file == "" {
		return nil
	}
	b, err := json.MarshalIndent(results, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(*file, append(b, '\n'), 0o644)
}

// rows are all rows, in the order of the floors.
func rows() []row {
	var all []row
	for _, more := range [][]row{clientRows(), cacheRows(), fakeRows(), controllerRows(), webhookRows(), weightRows()} {
		all = append(all, more...)
	}
	return all
}
