// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package envtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
)

// manifestExtensions are the file names that may hold objects.
var manifestExtensions = []string{".yaml", ".yml", ".json"}

// document is one object of a file, as JSON.
type document struct {
	metav1.TypeMeta
	file string
	raw  []byte
}

// into decodes a document, strictly only in that it must be of a version that is
// served.
func (d document) into(target any, version string) error {
	if d.APIVersion != version {
		return fmt.Errorf("%s: a %s of %s: only %s is served", d.file, d.Kind, d.APIVersion, version)
	}
	if err := json.Unmarshal(d.raw, target); err != nil {
		return fmt.Errorf("%s: a %s: %w", d.file, d.Kind, err)
	}
	return nil
}

// readManifests reads the objects of all paths, in the order of the paths and,
// within a folder, of the files' names. What names the paths in errors.
func readManifests(what string, paths []string, mustExist bool) ([]document, error) {
	var all []document
	for _, path := range paths {
		files := []string{path}
		info, err := os.Stat(path)
		switch {
		case errors.Is(err, fs.ErrNotExist) && !mustExist:
			continue
		case err != nil:
			return nil, fmt.Errorf("%s path: %w; it is looked up from the test's own folder", what, err)
		case info.IsDir():
			if files, err = manifestsIn(path); err != nil {
				return nil, fmt.Errorf("%s folder: %w", what, err)
			}
		}
		for _, file := range files {
			documents, err := readManifest(file)
			if err != nil {
				return nil, fmt.Errorf("read %ss from %s: %w", what, file, err)
			}
			all = append(all, documents...)
		}
	}
	return all, nil
}

func manifestsIn(folder string) ([]string, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, e := range entries {
		if !e.IsDir() && slices.Contains(manifestExtensions, filepath.Ext(e.Name())) {
			files = append(files, filepath.Join(folder, e.Name()))
		}
	}
	return files, nil
}

// readManifest reads a file of YAML or JSON documents.
func readManifest(path string) ([]document, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var out []document
	for documents := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096); ; {
		var raw runtime.RawExtension
		if err := documents.Decode(&raw); errors.Is(err, io.EOF) {
			return out, nil
		} else if err != nil {
			return nil, err
		}
		d := document{file: path, raw: raw.Raw}
		if len(raw.Raw) == 0 || json.Unmarshal(raw.Raw, &d.TypeMeta) != nil {
			continue // an empty document, or no object
		}
		out = append(out, d)
	}
}
