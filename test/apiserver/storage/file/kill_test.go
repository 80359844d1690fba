// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package file

import (
	"bufio"
	"context"
	"fmt"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// killedChild is set in the process that TestKill starts and kills.
const killedChild = "WHERRY_STORE_KILLED_CHILD"

func TestMain(m *testing.M) {
	if dir := os.Getenv(killedChild); dir != "" {
		runKilledChild(dir)
		return
	}
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("k8s.io/klog/v2.(*flushDaemon).run.func1"),
		// Kubernetes' storage tests leave these behind.
		goleak.IgnoreAnyFunction("k8s.io/apiserver/pkg/storage/testing.RunTestOptionalWatchBookmarksWithCorrectResourceVersion.func1"))
}

const (
	killWriters  = 8
	killWatchers = 4
	killKeys     = 5 // of each writer
)

func killOptions(dir string) Options {
	return Options{Dir: filepath.Join(dir, "data"), SnapshotBytes: 64 << 10, HistoryEvents: 200, HistoryAge: time.Millisecond}
}

// runKilledChild writes and watches until it is killed, and logs what it does. What a killed process has written to a
// file stays.
func runKilledChild(dir string) {
	journal, err := os.OpenFile(filepath.Join(dir, "journal"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	say := func(format string, args ...any) {
		if _, err := journal.Write(fmt.Appendf(nil, format+"\n", args...)); err != nil {
			panic(err)
		}
	}
	s, err := Open(killOptions(dir))
	if err != nil {
		say("broken %q", err)
		return
	}
	for w := range killWatchers {
		go func() {
			t := s.tap("/", true, s.Revision())
			for {
				events, _, err := t.next()
				if err != nil {
					t.drop()
					t = s.tap("/", true, s.Revision()) // too slow for the little history there is
					continue
				}
				for _, e := range events {
					seq := 0
					if e.cur != nil {
						seq, _ = strconv.Atoi(string(e.cur.value))
					}
					say("seen %d %d %s %d", w, e.rev, e.key, seq)
				}
				<-t.wake
			}
		}()
	}
	for w := range killWriters {
		go func() {
			rng := rand.New(rand.NewSource(time.Now().UnixNano() + int64(w)))
			for seq := int(time.Now().UnixNano() / 1000); ; seq++ {
				key := fmt.Sprintf("/w%d/%d", w, rng.Intn(killKeys))
				value := strconv.AppendInt(nil, int64(seq), 10)
				if kv, _ := s.Get(key); kv != nil && rng.Intn(4) == 0 {
					value, seq = nil, seq+1
				}
				begun := 0
				if value != nil {
					begun = seq
				}
				say("begin %s %d", key, begun)
				r, err := s.Txn(context.Background(), Op{Key: key, Value: value, Expect: AnyRevision})
				if err != nil {
					say("broken %q", err)
					return
				}
				say("done %s %d %d", key, begun, r.Revision)
			}
		}()
	}
	say("ready")
	select {}
}

// killState is what the journal says about one key: the last write that was acknowledged, and the one that was not.
// A seq of 0 stands for "deleted", -1 for nothing.
type killState struct{ done, begun int }

func TestKill(t *testing.T) {
	t.Parallel()
	cycles := 100
	if testing.Short() {
		cycles = 5
	}
	dir := t.TempDir()
	rng := rand.New(rand.NewSource(time.Now().UnixNano()))
	keys := make(map[string]*killState)
	var acked int64 // the highest revision anybody has heard of
	writes := 0
	for cycle := range cycles {
		if err := os.Remove(filepath.Join(dir, "journal")); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		runAndKill(t, dir, time.Duration(1+rng.Intn(200))*time.Millisecond)
		before := acked
		writes += readJournal(t, dir, keys, &acked, before)
		s, err := Open(killOptions(dir))
		if err != nil {
			t.Fatalf("cycle %d: %v", cycle, err)
		}
		got := contents(s)
		for key, k := range keys {
			seq := 0
			if v, ok := got[key]; ok {
				seq, _ = strconv.Atoi(v)
			}
			if seq != k.done && (k.begun < 0 || seq != k.begun) {
				t.Errorf("cycle %d: %s holds write %d, acknowledged was %d, under way %d", cycle, key, seq, k.done, k.begun)
			}
			k.done, k.begun = seq, -1
		}
		if s.Revision() < acked {
			t.Errorf("cycle %d: revision %d, but somebody has seen %d", cycle, s.Revision(), acked)
		}
		acked = s.Revision()
		if err := s.Verify(); err != nil {
			t.Errorf("cycle %d: %v", cycle, err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if t.Failed() {
			t.Fatalf("the store is kept in %s", keepFolder(t, dir))
		}
	}
	t.Logf("%d cycles, %d acknowledged writes, revision %d", cycles, writes, acked)
	if writes < cycles {
		t.Errorf("only %d writes in %d cycles", writes, cycles)
	}
}

func keepFolder(t *testing.T, dir string) string {
	to, err := os.MkdirTemp("", "wherry-kill-")
	if err == nil {
		err = os.CopyFS(filepath.Join(to, "copy"), os.DirFS(dir))
	}
	if err != nil {
		t.Log(err)
	}
	return to
}

// runAndKill runs the child and kills it some time after it is ready.
func runAndKill(t *testing.T, dir string, after time.Duration) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), killedChild+"="+dir)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if b, _ := os.ReadFile(filepath.Join(dir, "journal")); len(b) > 0 {
			break
		}
	}
	time.Sleep(after)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
}

// readJournal brings keys up to what the child did and gives the number of acknowledged writes. Whatever it tells of
// must have a revision above before.
func readJournal(t *testing.T, dir string, keys map[string]*killState, acked *int64, before int64) int {
	t.Helper()
	f, err := os.Open(filepath.Join(dir, "journal"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	writes := 0
	last := make(map[int]int64) // of each watcher
	for lines := bufio.NewScanner(f); lines.Scan(); {
		line := lines.Text()
		var key, what string
		var seq, w int
		var rev int64
		fmt.Sscan(line, &what)
		switch what {
		case "begin":
			fmt.Sscan(line, &what, &key, &seq)
			if keys[key] == nil {
				keys[key] = &killState{done: 0, begun: -1}
			}
			keys[key].begun = seq
		case "done":
			fmt.Sscan(line, &what, &key, &seq, &rev)
			keys[key].done, keys[key].begun = seq, -1
			writes++
			if rev <= before {
				t.Errorf("%q: the revision was given out before", line)
			}
			*acked = max(*acked, rev)
		case "seen":
			fmt.Sscan(line, &what, &w, &rev, &key, &seq)
			if rev <= last[w] || rev <= before {
				t.Errorf("%q: watcher %d was at %d", line, w, last[w])
			}
			last[w] = rev
			*acked = max(*acked, rev) // what somebody saw must stay
		case "broken":
			t.Error(line)
		}
	}
	return writes
}
