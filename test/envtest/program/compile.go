// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package program

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// tellEvery is how often a build says how far it is.
const tellEvery = 5 * time.Second

// ldflagsFile lies beside the program's source and holds, on one line, the
// linker flags that stamp the version of Kubernetes it is built of, which
// clients such as kubectl parse.
const ldflagsFile = "LDFLAGS"

// compile runs go build in source and tells progress how far it is. The
// environment is the caller's, less what would build for another machine, with
// other flags or other modules. The three are set and not just left out, because
// go env -w may have set them too.
func compile(ctx context.Context, source, target string, progress io.Writer) error {
	ldflags, err := os.ReadFile(filepath.Join(source, ldflagsFile))
	if err != nil {
		return fmt.Errorf("build the API server program: %w", err)
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-v", "-ldflags", strings.TrimSpace(string(ldflags)), "-o", target, ".")
	cmd.Dir = source
	cmd.Env = append(without("GOFLAGS", "GOOS", "GOARCH", "GOWORK"),
		"GOFLAGS=-buildvcs=false", "GOOS="+runtime.GOOS, "GOARCH="+runtime.GOARCH, "GOWORK=off")
	said, err := cmd.StderrPipe()
	if err != nil {
		return err
	}
	var other []string
	if err = cmd.Start(); err == nil {
		other = follow(said, progress)
		err = cmd.Wait()
	}
	if err != nil {
		if ctx.Err() != nil {
			return fmt.Errorf("build the API server program: %w", context.Cause(ctx))
		}
		return fmt.Errorf("build the API server program in %s: %w\n%s", source, err, strings.Join(other, "\n"))
	}
	return nil
}

// keep is how many of the compiler's last words an error repeats.
const keep = 40

// longestLine bounds a line of the compiler's.
const longestLine = 1 << 20

// follow tells what go build -v says it is doing until it is done, and returns
// the last of its other lines.
func follow(said io.Reader, progress io.Writer) (other []string) {
	last, count := time.Now(), 0
	tell := func(format string, args ...any) {
		if time.Since(last) >= tellEvery {
			last = time.Now()
			fmt.Fprintf(progress, "building the API server program: "+format+"\n", args...)
		}
	}
	lines := bufio.NewScanner(said)
	lines.Buffer(nil, longestLine)
	for lines.Scan() {
		line := lines.Text()
		if module, ok := strings.CutPrefix(line, "go: downloading "); ok {
			tell("downloading %s", module)
		} else if strings.ContainsAny(line, " \t") {
			if other = append(other, line); len(other) > keep {
				other = other[1:]
			}
		} else {
			count++
			tell("package %d of about 2,000 at most, %s", count, line)
		}
	}
	return other
}
