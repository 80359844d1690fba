// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package certwatcher_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr/funcr"
	"go.uber.org/goleak"

	"github.com/wherry-dev/wherry/client/log"
)

func TestMain(m *testing.M) {
	log.SetLogger(funcr.New(func(_, args string) { logged.add(args) }, funcr.Options{}))
	goleak.VerifyTestMain(m)
}

// logged is the log of all tests: a process sets its logger once.
var logged lines

type lines struct {
	mu  sync.Mutex
	all []string
}

func (l *lines) add(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, line)
}

// with counts the lines that have all the parts.
func (l *lines) with(parts ...string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.all {
		has := true
		for _, part := range parts {
			has = has && strings.Contains(line, part)
		}
		if has {
			n++
		}
	}
	return n
}
