// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
)

// mergeDiff makes the JSON merge patch (RFC 7396) that leads from one document to another. Numbers are compared and taken
// over as text: a detour over float64 would change integers above 2^53 in lists that nobody touched, and would not see a
// change between two of them.
func mergeDiff(before, after []byte, _ Object) ([]byte, error) {
	old, err := decodeExact(before)
	if err != nil {
		return nil, err
	}
	wanted, err := decodeExact(after)
	if err != nil {
		return nil, err
	}
	return json.Marshal(diffMaps(old, wanted))
}

func decodeExact(data []byte) (map[string]any, error) {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	var doc map[string]any
	if err := decoder.Decode(&doc); err != nil {
		return nil, fmt.Errorf("make a merge patch: %w", err)
	}
	if _, err := decoder.Token(); err != io.EOF {
		return nil, fmt.Errorf("make a merge patch: more than one JSON document")
	}
	return doc, nil
}

// diffMaps gives what has to be merged into old to make it wanted: changed and new fields with their values, and null for
// fields that are gone. It never returns nil, so that "no change" is the empty patch {}.
func diffMaps(old, wanted map[string]any) map[string]any {
	patch := map[string]any{}
	for key := range old {
		if _, kept := wanted[key]; !kept {
			patch[key] = nil
		}
	}
	for key, value := range wanted {
		before, present := old[key]
		switch {
		case value == nil && before == nil:
			// null for null, and null for a field that was not there, cannot be told apart by a merge patch
		case !present:
			patch[key] = value
		default:
			inner, changed := diffValues(before, value)
			if changed {
				patch[key] = inner
			}
		}
	}
	return patch
}

// diffValues gives the patch for one field that is there on both sides, and whether there is one.
func diffValues(old, wanted any) (any, bool) {
	before, wasMap := old.(map[string]any)
	after, isMap := wanted.(map[string]any)
	if wasMap && isMap {
		inner := diffMaps(before, after)
		return inner, len(inner) > 0
	}
	return wanted, !reflect.DeepEqual(old, wanted)
}
