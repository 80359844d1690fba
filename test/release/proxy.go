// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	xmodule "golang.org/x/mod/module"
)

// publish stages repo at version and writes the modules into dir, which the go
// command reads as a module proxy when GOPROXY is its file:// address.
func publish(ctx context.Context, repo, version, dir string) error {
	work, err := os.MkdirTemp("", "wherry-release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	s, err := newStage(ctx, repo, work, version)
	if err != nil {
		return err
	}
	for i, m := range modules {
		if err := s.writeProxy(m, s.zips[i], dir); err != nil {
			return fmt.Errorf("publish %s: %w", m.path, err)
		}
	}
	return nil
}

// writeProxy adds one module to the proxy in dir. The layout is that of
// https://go.dev/ref/mod#goproxy-protocol.
func (s *stage) writeProxy(m module, zipFile, dir string) error {
	escaped, err := xmodule.EscapePath(m.path)
	if err != nil {
		return err
	}
	version := m.version(s.version)
	at := filepath.Join(dir, filepath.FromSlash(escaped), "@v")
	if err := os.MkdirAll(at, 0o755); err != nil {
		return err
	}
	if err := copyFile(zipFile, filepath.Join(at, version+".zip")); err != nil {
		return err
	}
	if err := copyFile(filepath.Join(s.dir, filepath.FromSlash(m.folder), "go.mod"), filepath.Join(at, version+".mod")); err != nil {
		return err
	}
	info, err := json.Marshal(struct {
		Version string
		Time    time.Time
	}{version, time.Now().UTC().Truncate(time.Second)})
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(at, version+".info"), info, 0o644); err != nil {
		return err
	}
	list, err := os.OpenFile(filepath.Join(at, "list"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(list, version); err != nil {
		list.Close()
		return err
	}
	return list.Close()
}
