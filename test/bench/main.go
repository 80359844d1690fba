// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"fmt"
	"os"
	"regexp"

	"github.com/go-logr/logr"
	theirlog "sigs.k8s.io/controller-runtime/pkg/log"

	ourlog "github.com/wherry-dev/wherry/client/log"
)

func main() {
	ourlog.SetLogger(logr.Discard())
	theirlog.SetLogger(logr.Discard())
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench: "+err.Error())
		os.Exit(1)
	}
}

func run() error {
	var to report
	flag.StringVar(&to.json, "json", "", "`FILE` to write the results to as JSON as well")
	flag.StringVar(&to.chart, "chart", "", "`FILE` to draw the ratios into, as SVG")
	flag.StringVar(&to.readme, "readme", "", "`FILE` with two marked lines to put the results between, as a table")
	from := flag.String("from", "", "measure nothing: take the results from this JSON `FILE`")
	flag.BoolVar(&to.keep, "keep", false, "keep what the JSON file holds of rows that this run does not measure")
	only := flag.String("only", "", "run only the rows whose name matches this `REGEXP`; rows that take minutes run only so")
	rounds := flag.Int("rounds", 7, "how often each side of a row runs; figures are the median")
	var c child
	flag.IntVar(&c.side, countSide, -1, "used by the program itself, to have its instructions counted")
	flag.IntVar(&c.ops, countOps, 0, "likewise")
	alone := flag.Int(aloneSide, -1, "used by the program itself, to run one side of a row in a process of its own")
	flag.Parse()
	pick, err := regexp.Compile(*only)
	if err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	if *rounds < 1 {
		return fmt.Errorf("-rounds %d: at least one round is needed", *rounds)
	}
	if c.side >= 0 {
		return c.do(pick)
	}
	if *alone >= 0 {
		return serve(pick, *alone)
	}
	if *from != "" {
		results, err := readResults(*from)
		if err != nil {
			return err
		}
		return to.write(results)
	}
	results, err := measure(pick, *only != "", *rounds)
	if err != nil {
		return err
	}
	if results, err = to.merge(results, rows()); err != nil {
		return err
	}
	return to.write(results)
}

// measure runs the rows that pick matches and prints each as it is done; those on demand only if they were named.
func measure(pick *regexp.Regexp, named bool, rounds int) (results []result, err error) {
	fmt.Println(heading)
	for _, r := range rows() {
		if !pick.MatchString(r.name) || r.onDemand && !named {
			continue
		}
		got, err := r.measure(rounds)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", r.name, err)
		}
		for _, g := range got {
			fmt.Println(g)
		}
		results = append(results, got...)
	}
	if len(results) == 0 {
		return nil, fmt.Errorf("no row matches %q", pick)
	}
	return results, nil
}

// rows are all rows, in the order of the floors.
func rows() []row {
	var all []row
	for _, more := range [][]row{clientRows(), cacheRows(), fakeRows(), controllerRows(), webhookRows(), startRows(), replicaSetRows(), weightRows()} {
		all = append(all, more...)
	}
	return all
}
