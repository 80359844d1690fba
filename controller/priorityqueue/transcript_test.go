// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package priorityqueue

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"

	"github.com/wherry-dev/wherry/controller/fault"
)

var update = flag.Bool("update", false, "write what the transcripts show into testdata; read the difference before you commit it")

// TestTranscripts replays testdata/*.txt: every line is a command, and the
// lines after it that begin with "> " are what it shows. Time is the bubble's.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) < 5 {
		t.Fatalf("found %d transcripts (%v)", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var got string
			synctest.Test(t, func(t *testing.T) { got = replay(t, string(want)) })
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
				return
			}
			if got != string(want) {
				t.Errorf("%s shows\n%s\nwant\n%s", file, got, want)
			}
		})
	}
}

// replay runs the commands of a transcript and returns it with what they show
// now.
func replay(t *testing.T, script string) string {
	s := &stage{t: t}
	defer s.close()
	s.reset()
	var out strings.Builder
	for line := range strings.Lines(script) {
		if strings.HasPrefix(line, "> ") {
			continue
		}
		out.WriteString(line)
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		for _, shown := range s.run(strings.Fields(line)) {
			out.WriteString("> " + shown + "\n")
		}
		if !s.q.ShuttingDown() {
			check(t, s.q)
		}
	}
	return out.String()
}

// stage is where a transcript plays.
type stage struct {
	t       *testing.T
	q       *queue[string]
	depths  map[int]int
	drained chan struct{}
}

// reset makes a new queue whose clock starts now.
func (s *stage) reset() {
	s.close()
	s.depths = map[int]int{}
	m := newMeter("", nil)
	m.depth = func(priority int) gauge { return depthGauge{s.depths, priority} }
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[string](firstRetry, lastRetry)
	s.q = newQueue[string](limiter, m, fault.NewKeeper("", logr.Discard()))
	s.drained = nil
}

func (s *stage) close() {
	if s.q != nil {
		s.q.ShutDown()
	}
}

type depthGauge struct {
	depths   map[int]int
	priority int
}

func (g depthGauge) Inc() { g.depths[g.priority]++ }
func (g depthGauge) Dec() { g.depths[g.priority]-- }

func (s *stage) run(words []string) []string {
	args := words[1:]
	switch words[0] {
	case "new":
		s.reset()
	case "add":
		return s.add(args)
	case "get":
		return s.get()
	case "done":
		s.q.Done(args[0])
	case "forget":
		s.q.Forget(args[0])
	case "requeues":
		return []string{strconv.Itoa(s.q.NumRequeues(args[0]))}
	case "len":
		return []string{strconv.Itoa(s.q.Len())}
	case "depth":
		return s.depth()
	case "sleep":
		d, err := time.ParseDuration(args[0])
		if err != nil {
			s.t.Fatal(err)
		}
		time.Sleep(d)
		synctest.Wait()
		if s.drained != nil {
			return s.drainState()
		}
	case "shutdown":
		s.q.ShutDown()
	case "drain":
		s.drained = make(chan struct{})
		go func() {
			s.q.ShutDownWithDrain()
			close(s.drained)
		}()
		return s.drainState()
	case "draining?":
		return s.drainState()
	case "shutting-down?":
		return []string{strconv.FormatBool(s.q.ShuttingDown())}
	default:
		s.t.Fatalf("unknown command %q", words[0])
	}
	return nil
}

func (s *stage) drainState() []string {
	synctest.Wait()
	select {
	case <-s.drained:
		return []string{"drained"}
	default:
		return []string{"draining"}
	}
}

// add reads: KEY [prio=N] [after=D] [limited] [because=SOURCE/EVENT/OBJECT]
func (s *stage) add(args []string) []string {
	var o AddOpts
	var c Cause
	for _, arg := range args[1:] {
		name, value, _ := strings.Cut(arg, "=")
		switch name {
		case "prio":
			n, err := strconv.Atoi(value)
			if err != nil {
				s.t.Fatal(err)
			}
			o.Priority = &n
		case "after":
			d, err := time.ParseDuration(value)
			if err != nil {
				s.t.Fatal(err)
			}
			o.After = d
		case "limited":
			o.RateLimited = true
		case "because":
			parts := strings.Split(value, "/")
			c = Cause{Source: parts[0], Object: types.NamespacedName{Name: parts[2]}}
			for e, name := range eventNames {
				if name == parts[1] {
					c.Event = Event(e)
				}
			}
		default:
			s.t.Fatalf("unknown option %q", arg)
		}
	}
	s.q.AddWithCause(o, c, args[0])
	return nil
}

// get shows the next key, or that Get would block.
func (s *stage) get() []string {
	s.q.mu.Lock()
	blocks := s.q.phase == running && s.q.age.head == nil
	s.q.mu.Unlock()
	if blocks {
		return []string{"(blocks)"}
	}
	taken, shutdown := s.q.Take()
	if shutdown {
		return []string{"(shut down)"}
	}
	lines := []string{fmt.Sprintf("%s prio=%d", taken.Key, taken.Priority)}
	causes, missed := taken.Causes()
	for _, c := range causes {
		lines = append(lines, fmt.Sprintf("  because %s %s %s x%d", c.Source, c.Event, c.Object.Name, c.Count))
	}
	if missed > 0 {
		lines = append(lines, fmt.Sprintf("  and %d more", missed))
	}
	return lines
}

func (s *stage) depth() []string {
	s.q.mu.Lock() // the gauges are changed with the lock held
	defer s.q.mu.Unlock()
	var shown []string
	for p, n := range s.depths {
		if n != 0 {
			shown = append(shown, fmt.Sprintf("%d:%d", p, n))
		}
	}
	if shown == nil {
		return []string{"empty"}
	}
	sort.Strings(shown)
	return []string{strings.Join(shown, " ")}
}
