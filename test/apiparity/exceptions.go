// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// exceptions are features that are missing on purpose, each with its reason.
type exceptions map[string]string

// readExceptions reads a list of them: an exact line of the golden list, then an indented line with the reason. Lines that
// begin with # and empty ones say nothing. An empty path means that there are no exceptions.
func readExceptions(path string) (exceptions, error) {
	if path == "" {
		return nil, nil
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return parseExceptions(string(b))
}

func parseExceptions(text string) (exceptions, error) {
	found := exceptions{}
	feature := "" // that still lacks its reason
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		reason, isReason := strings.CutPrefix(line, "\t")
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case isReason && feature == "":
			return nil, fmt.Errorf("a reason without a feature before it: %q", reason)
		case isReason:
			found[feature], feature = reason, ""
		case feature != "":
			return nil, fmt.Errorf("an exception without a reason on the line after it: %q", feature)
		case found[line] != "":
			return nil, fmt.Errorf("listed twice: %q", line)
		default:
			feature = line
		}
	}
	if feature != "" {
		return nil, fmt.Errorf("an exception without a reason on the line after it: %q", feature)
	}
	return found, nil
}

// judge compares what is missing with the exceptions. unexpected are features that are not excepted; stale are
// exceptions that are not missing, or never were part of the golden list.
func (e exceptions) judge(missing []string) (unexpected, stale []string) {
	for _, feature := range missing {
		if e[feature] == "" {
			unexpected = append(unexpected, feature)
		}
	}
	for feature := range e {
		if !slices.Contains(missing, feature) {
			stale = append(stale, feature)
		}
	}
	slices.Sort(stale)
	return unexpected, stale
}
