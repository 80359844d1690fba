// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	stdbytes "bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// weightRows build small programs with each library and weigh them.
func weightRows() []row {
	return []row{
		weight("client, core/v1 and apps/v1 alone", "client", 0.6, 0),
		weight("manager, one controller, core/v1 alone", "manager", 0.65, 0.60),
		{
			name: "build: manager, from an empty build cache", targets: map[unit]float64{build: 0.45},
			fixed: coldBuilds, onDemand: true,
		},
		weight("kubebuilder-style main, client-go's scheme", "scaffold", 0.65, 0),
	}
}

// weight compares two programs below weight/: stripped size and packages linked.
func weight(name, program string, sizeTarget, countTarget float64) row {
	return row{
		name: "weight: " + name, targets: map[unit]float64{size: sizeTarget, count: countTarget},
		fixed: func(int) (map[unit][2]float64, error) {
			var mb, packages [2]float64
			for side, lib := range []string{"ours", "theirs"} {
				var err error
				if mb[side], packages[side], err = weigh("./weight/" + program + "-" + lib); err != nil {
					return nil, err
				}
			}
			return map[unit][2]float64{size: mb, count: packages}, nil
		},
	}
}

// weigh builds the package as a release would be and counts what it links.
func weigh(pkg string) (mb, packages float64, err error) {
	dir, err := os.MkdirTemp("", "weight")
	if err != nil {
		return 0, 0, err
	}
	defer os.RemoveAll(dir)
	target := filepath.Join(dir, "program")
	if out, err := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", target, pkg).CombinedOutput(); err != nil {
		return 0, 0, fmt.Errorf("build %s: %w: %s", pkg, err, out)
	}
	info, err := os.Stat(target)
	if err != nil {
		return 0, 0, err
	}
	deps, err := exec.Command("go", "list", "-deps", pkg).Output()
	if err != nil {
		return 0, 0, fmt.Errorf("list %s: %w", pkg, err)
	}
	return float64(info.Size()) / 1e6, float64(stdbytes.Count(deps, []byte("\n"))), nil
}

// coldBuilds builds the manager program of each library as on a machine that never built anything, standard library
// included, once each.
func coldBuilds(int) (map[unit][2]float64, error) {
	var seconds [2]float64
	for side, lib := range []string{"ours", "theirs"} {
		var err error
		if seconds[side], err = coldBuild("./weight/manager-" + lib); err != nil {
			return nil, err
		}
	}
	return map[unit][2]float64{build: seconds}, nil
}

// coldBuild is the CPU time, in seconds, of the go command and all it starts. The modules are downloaded by then.
func coldBuild(pkg string) (float64, error) {
	dir, err := os.MkdirTemp("", "cold")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	cmd := exec.Command("go", "build", "-trimpath", "-o", filepath.Join(dir, "program"), pkg)
	cmd.Env = append(os.Environ(), "GOCACHE="+filepath.Join(dir, "cache"))
	if out, err := cmd.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("build %s: %w: %s", pkg, err, out)
	}
	return (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds(), nil
}
