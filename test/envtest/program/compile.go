// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package program

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

const (
	// tellEvery is how often a build says how far it is.
	tellEvery = 5 * time.Second
	// longBuild is how long a first build may take on a small machine.
	longBuild = 8 * time.Minute
)

// started is about when this process began, which is what test.timeout counts
// from.
var started = time.Now()

// fits fails if the program is still to be built and the test's own time limit
// would end it half way. Start is given no testing.T, so the flag has to tell.
func fits(target string) error {
	if _, err := os.Stat(target); err == nil {
		return nil
	}
	f := flag.Lookup("test.timeout")
	if f == nil {
		return nil
	}
	limit, ok := f.Value.(flag.Getter).Get().(time.Duration)
	if !ok || limit == 0 || limit-time.Since(started) >= longBuild {
		return nil
	}
	return fmt.Errorf("the API server program is not built yet, and a build may take longer than this test's time limit of %v leaves: run %q first, or give the test more time with -timeout", limit, buildCommand)
}

// ldflagsFile lies beside the program's source and holds, on one line, the
// linker flags that stamp the version of Kubernetes it is built of, which
// clients such as kubectl parse.
const ldflagsFile = "LDFLAGS"

// compile runs go build in source and tells progress how far it is.
func compile(ctx context.Context, source, target string, progress io.Writer) error {
	ldflags, err := os.ReadFile(filepath.Join(source, ldflagsFile))
	if err != nil {
		return fmt.Errorf("build the API server program: %w", err)
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-v", "-buildvcs=false", "-ldflags", strings.TrimSpace(string(ldflags)), "-o", target, ".")
	cmd.Dir, cmd.Env = source, goEnv()
	said, err := cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("build the API server program: %w", err)
	}
	other := follow(said, progress)
	if err := cmd.Wait(); err != nil {
		if ctx.Err() != nil {
			return fmt.Errorf("build the API server program: %w", context.Cause(ctx))
		}
		return fmt.Errorf("build the API server program: %w\n%s", err, strings.Join(other, "\n"))
	}
	return nil
}

// keep is how many of the compiler's last words an error repeats.
const keep = 40

// follow counts the packages that go build -v names until it is done, and
// returns the last of its other lines.
func follow(said io.Reader, progress io.Writer) (other []string) {
	var last time.Time
	count := 0
	for lines := bufio.NewScanner(said); lines.Scan(); {
		line := lines.Text()
		if strings.ContainsAny(line, " \t") {
			if other = append(other, line); len(other) > keep {
				other = other[1:]
			}
			continue
		}
		if count++; count > 1 && time.Since(last) >= tellEvery {
			last = time.Now()
			fmt.Fprintf(progress, "building the API server (once; of about 2,000 packages): %d, %s\n", count, line)
		}
	}
	return other
}
