// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"

	"github.com/wherry-dev/wherry/cache"
	"github.com/wherry-dev/wherry/manager/leaderelection"
	"github.com/wherry-dev/wherry/manager/leaderelection/fake"
	"github.com/wherry-dev/wherry/webhook"
)

// journal notes what happened, in order.
type journal struct {
	mu    sync.Mutex
	lines []string
}

func (j *journal) note(line string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, line)
}

func (j *journal) has(line string) bool { return j.count(line) > 0 }

func (j *journal) count(line string) (n int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, l := range j.lines {
		if l == line {
			n++
		}
	}
	return n
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return strings.Join(j.lines, "\n")
}

// part notes its start and its end, and takes its time to stop. For an elected stage it is as it is; the types below make it
// belong to the others.
type part struct {
	name  string
	j     *journal
	stops time.Duration // how long it takes to stop; negative is for ever
}

func (p *part) Start(ctx context.Context) error {
	p.j.note("start " + p.name)
	<-ctx.Done()
	if p.stops < 0 {
		select {}
	}
	time.Sleep(p.stops)
	p.j.note("stop " + p.name)
	return nil
}

func (p *part) String() string { return p.name }

type otherPart struct{ *part }

func (otherPart) NeedLeaderElection() bool { return false }

type httpPart struct{ *part }

func (httpPart) AddExtraHandler(string, http.Handler) error { return nil }

type webhookPart struct {
	*part
	webhook.Server
}

func (w webhookPart) Start(ctx context.Context) error { return w.part.Start(ctx) }

// convertingPart is ready after a while, and has something to do when it stops.
type convertingPart struct {
	otherPart
	atStop func()
}

func (c convertingPart) Start(ctx context.Context) error {
	defer c.atStop()
	return c.part.Start(ctx)
}

func (c convertingPart) WaitForConversions(ctx context.Context) bool {
	select {
	case <-time.After(2 * time.Second):
		c.j.note("written " + c.name)
		return true
	case <-ctx.Done():
		return false
	}
}

type warmPart struct{ *part }

func (w warmPart) Warmup(ctx context.Context) error {
	w.j.note("warm " + w.name)
	<-ctx.Done()
	w.j.note("cold " + w.name)
	return nil
}

// cachePart syncs after a while.
type cachePart struct {
	*part
	cache.Cache
	syncs time.Duration
}

func (c *cachePart) Start(ctx context.Context) error { return c.part.Start(ctx) }
func (c *cachePart) GetCache() cache.Cache           { return c }
func (c *cachePart) WaitForCacheSync(ctx context.Context) bool {
	select {
	case <-time.After(c.syncs):
		c.j.note("synced " + c.name)
		return true
	case <-ctx.Done():
		return false
	}
}

func background() context.Context { return context.Background() }

// logTo returns a logger that keeps its lines, and the function that hands them out.
func logTo() (logr.Logger, func() string) {
	j := &journal{}
	return funcr.New(func(_, args string) { j.note(args) }, funcr.Options{}), j.String
}

// lease is the timing of all tests.
var lease = leaderelection.Timing{LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second}

func electionOn(t *testing.T, lock leaderelection.Lock, release bool) *election {
	t.Helper()
	e, err := newElection("lease", lock, lease, logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	e.release = release
	return e
}

func mustAdd(t *testing.T, l *lifecycle, rs ...Runnable) {
	t.Helper()
	for _, r := range rs {
		if err := l.add(r); err != nil {
			t.Fatal(err)
		}
	}
}

func TestOrderOfStartAndStop(t *testing.T) {
	for _, elects := range []bool{false, true} {
		t.Run(fmt.Sprintf("election %v", elects), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var e *election
				board := &fake.Board{}
				if elects {
					e = electionOn(t, board.Lock("a"), true)
				}
				j := &journal{}
				l := newLifecycle(logr.Discard(), background, time.Minute, e)
				mustAdd(t, l,
					&part{"leader", j, time.Second},
					warmPart{&part{"warm", j, time.Second}},
					otherPart{&part{"other", j, 2 * time.Second}},
					&cachePart{part: &part{"cache", j, time.Second}, syncs: 3 * time.Second},
					webhookPart{part: &part{"webhook", j, time.Second}},
					convertingPart{otherPart{&part{"conversion", j, time.Second}}, func() {
						if r, _ := board.Record(); elects && r.HolderIdentity == "" {
							t.Error("the lease went first: the fence refuses to put the conversions back")
						}
					}},
					httpPart{&part{"http", j, time.Second}},
				)
				ctx, cancel := context.WithCancel(t.Context())
				go func() {
					<-l.elected
					time.Sleep(10 * time.Second)
					j.note("cancel")
					cancel()
				}()
				if err := l.run(ctx); err != nil {
					t.Fatal(err)
				}
				got := j.String()
				before := func(a, b string) {
					t.Helper()
					if i, k := strings.Index(got, a), strings.Index(got, b); i < 0 || k < 0 || i > k {
						t.Errorf("%q is not before %q in:\n%s", a, b, got)
					}
				}
				for _, o := range []string{
					"synced cache < start other < cancel",
					"start cache < synced cache < start leader",
					"start webhook < written conversion < start cache",
					"stop leader < stop conversion < stop cache",
					"synced cache < warm warm < cancel",
					"start http < synced cache",
					"cancel < stop other < stop leader < stop cache < stop webhook < stop http",
					"cold warm < stop leader",
					"stop other < stop warm < stop cache",
				} {
					steps := strings.Split(o, " < ")
					for i := range len(steps) - 1 {
						before(steps[i], steps[i+1])
					}
				}
				if !elects {
					return
				}
				if r, writes := board.Record(); r.HolderIdentity != "" || len(writes) < 5 {
					t.Errorf("record %+v after %d writes", r, len(writes))
				}
			})
		})
	}
}

func TestStartOnceAndAddAfterTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLifecycle(logr.Discard(), background, time.Minute, nil)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := l.run(ctx); err != nil {
			t.Fatal(err)
		}
		if err := l.run(t.Context()); err == nil {
			t.Error("ran twice")
		}
		if err := l.add(&part{name: "late", j: &journal{}}); !errors.Is(err, errStopped) || !strings.Contains(err.Error(), "late") {
			t.Errorf("add: %v", err)
		}
	})
}

func TestAddWhileRunning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		board, j := &fake.Board{}, &journal{}
		board.Put(&leaderelection.Record{HolderIdentity: "z", LeaseDurationSeconds: 15, RenewTime: time.Now()})
		l := newLifecycle(logr.Discard(), background, time.Minute, electionOn(t, board.Lock("a"), false))
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- l.run(ctx) }()
		time.Sleep(time.Second)
		mustAdd(t, l, &part{"leader", j, 0}, otherPart{&part{"other", j, 0}})
		synctest.Wait()
		if !j.has("start other") || j.has("start leader") {
			t.Errorf("before leadership:\n%s", j)
		}
		<-l.elected
		synctest.Wait()
		mustAdd(t, l, &part{"later", j, 0})
		synctest.Wait()
		if j.count("start leader") != 1 || j.count("start later") != 1 {
			t.Errorf("with leadership:\n%s", j)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// Slip of upstream #2719: a stop before leadership must not start what waits for it.
func TestStopBeforeLeadership(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		board, j := &fake.Board{}, &journal{}
		board.Put(&leaderelection.Record{HolderIdentity: "z", LeaseDurationSeconds: 3600, RenewTime: time.Now()})
		l := newLifecycle(logr.Discard(), background, time.Minute, electionOn(t, board.Lock("a"), true))
		mustAdd(t, l, &part{"leader", j, 0})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := l.run(ctx); err != nil {
			t.Error(err)
		}
		if j.String() != "" {
			t.Errorf("ran:\n%s", j)
		}
		select {
		case <-l.elected:
			t.Error("elected")
		default:
		}
		if r, _ := board.Record(); r.HolderIdentity != "z" {
			t.Errorf("record: %+v", r)
		}
	})
}

// Slips of upstream #1786 and #3440: a stop while a cache cannot sync is quick, orderly and does not spin.
func TestStopWhileCacheCannotSync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := &journal{}
		l := newLifecycle(logr.Discard(), background, time.Minute, electionOn(t, (&fake.Board{}).Lock("a"), true))
		mustAdd(t, l, &cachePart{part: &part{"cache", j, 0}, syncs: 1000 * time.Hour}, otherPart{&part{"other", j, 0}})
		ctx, cancel := context.WithDeadline(t.Context(), time.Now().Add(time.Minute))
		defer cancel()
		began := time.Now()
		if err := l.run(ctx); err != nil {
			t.Error(err)
		}
		within(t, "stopped", time.Since(began), time.Minute, time.Minute+time.Second)
		if j.has("start other") {
			t.Error("a later stage started")
		}
		time.Sleep(2000 * time.Hour) // the timer of the cache
	})
}

func within(t *testing.T, what string, got, least, most time.Duration) {
	t.Helper()
	if got < least || got > most {
		t.Errorf("%s after %s, want %s to %s", what, got, least, most)
	}
}

func TestGracePeriod(t *testing.T) {
	const forever = time.Hour
	for _, c := range []struct {
		name         string
		grace, stops time.Duration
		after        time.Duration
		err          string
	}{
		{"nothing takes time", 30 * time.Second, 0, 0, ""},
		{"in time", 30 * time.Second, 20 * time.Second, 20 * time.Second, ""},
		{"too slow", 30 * time.Second, forever, 30 * time.Second, "not stopped within the grace period of 30s: slow (others)"},
		{"no grace", 0, forever, 0, ""},
		{"no limit", -1, forever, forever, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				j := &journal{}
				l := newLifecycle(logr.Discard(), background, c.grace, nil)
				mustAdd(t, l, otherPart{&part{"slow", j, c.stops}}, &part{"quick", j, 0})
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error)
				go func() { ended <- l.run(ctx) }()
				<-l.elected
				synctest.Wait()
				cancel()
				began := time.Now()
				err := <-ended
				within(t, "stopped", time.Since(began), c.after, c.after+time.Second)
				switch {
				case c.err == "" && err != nil:
					t.Error(err)
				case c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err) || !errors.Is(err, context.DeadlineExceeded)):
					t.Errorf("error %v, want %q", err, c.err)
				}
				// What was too slow was not in the way of the other's stop, and ends some time.
				time.Sleep(forever + time.Second)
				if !j.has("stop quick") || !j.has("stop slow") {
					t.Errorf("not all stopped:\n%s", j)
				}
			})
		})
	}
}

// MG-4.
func TestOneShotRunnables(t *testing.T) {
	boom := errors.New("boom")
	synctest.Test(t, func(t *testing.T) {
		j := &journal{}
		logger, logged := logTo()
		l := newLifecycle(logger, background, time.Minute, electionOn(t, (&fake.Board{}).Lock("a"), true))
		mustAdd(t, l,
			RunnableFunc(func(context.Context) error { time.Sleep(50 * time.Millisecond); j.note("R1 done"); return nil }),
			&part{"R2", j, 300 * time.Millisecond},
		)
		ended := make(chan error, 1)
		go func() { ended <- l.run(t.Context()) }()
		time.Sleep(time.Minute)
		select {
		case err := <-ended:
			t.Fatalf("a runnable that is done ended the manager: %v", err)
		default:
		}
		began := time.Now()
		mustAdd(t, l, &oneShot{name: "R3", after: 200 * time.Millisecond, err: boom})
		time.Sleep(201 * time.Millisecond)
		if err := l.add(&part{"R5", j, 0}); !errors.Is(err, errStopped) {
			t.Errorf("R5 added after R3 failed: %v", err)
		}
		err := <-ended
		within(t, "ended", time.Since(began), 500*time.Millisecond, time.Second)
		if !errors.Is(err, boom) || err.Error() != "runnable R3: boom" {
			t.Errorf("error: %v", err)
		}
		if !j.has("R1 done") || !j.has("stop R2") || j.has("start R5") {
			t.Errorf("journal:\n%s", j)
		}
		if text := strings.ToLower(logged() + err.Error()); strings.Contains(text, "lost") || strings.Contains(logged(), `"error"`) {
			t.Errorf("a wanted end was logged as trouble:\n%s", logged())
		}
	})
}

type oneShot struct {
	name  string
	after time.Duration
	err   error
}

func (o *oneShot) String() string { return o.name }
func (o *oneShot) Start(ctx context.Context) error {
	select {
	case <-time.After(o.after):
		return o.err
	case <-ctx.Done():
		return nil
	}
}

func TestErrorsAreNamed(t *testing.T) {
	boom := errors.New("boom")
	for _, c := range []struct {
		r    Runnable
		want string
	}{
		{&oneShot{name: "shot", err: boom}, "runnable shot: boom"},
		{RunnableFunc(func(context.Context) error { return boom }), "runnable github.com/wherry-dev/wherry/manager.TestErrorsAreNamed.func1: boom"},
		{&Server{Name: "x"}, "runnable server x: manager.Server without an http.Server"},
		{failing{boom}, "runnable manager.failing: boom"},
	} {
		synctest.Test(t, func(t *testing.T) {
			l := newLifecycle(logr.Discard(), background, time.Minute, nil)
			mustAdd(t, l, c.r)
			if err := l.run(t.Context()); err == nil || err.Error() != c.want {
				t.Errorf("error %v, want %s", err, c.want)
			}
		})
	}
}

type failing struct{ err error }

func (f failing) Start(context.Context) error { return f.err }

func TestOrderlyCancelIsNoError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logger, logged := logTo()
		l := newLifecycle(logger, background, time.Minute, nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		mustAdd(t, l,
			RunnableFunc(func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }),
			RunnableFunc(func(context.Context) error { <-ctx.Done(); return ctx.Err() }),
		)
		err := l.run(ctx)
		// The second looks at the manager's own context, which ended by its deadline: that is no error of the runnable's.
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if strings.Contains(logged(), "context canceled") {
			t.Errorf("logged:\n%s", logged())
		}
	})
}

// Slip of upstream #3247: errors after the grace period leave nobody waiting.
func TestManyStartsAndStopsLeaveNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		board := &fake.Board{}
		for i := range 100 {
			j := &journal{}
			l := newLifecycle(logr.Discard(), background, time.Second, electionOn(t, board.Lock(fmt.Sprint("m", i)), true))
			mustAdd(t, l,
				&part{"leader", j, 0}, warmPart{&part{"warm", j, 0}}, otherPart{&part{"other", j, 0}}, httpPart{&part{"http", j, 0}},
				RunnableFunc(func(ctx context.Context) error {
					<-ctx.Done()
					time.Sleep(time.Duration(i%3) * time.Second) // some of them beyond the grace period
					return errors.New("late")
				}),
			)
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				<-l.elected
				cancel()
			}()
			_ = l.run(ctx)
		}
		time.Sleep(time.Minute)
		synctest.Wait() // the bubble fails if a goroutine is left when it ends
	})
}

func TestAddBesideStartAndStop(t *testing.T) {
	for range 50 {
		synctest.Test(t, func(t *testing.T) {
			l := newLifecycle(logr.Discard(), background, time.Minute, nil)
			ctx, cancel := context.WithCancel(t.Context())
			var wg sync.WaitGroup
			for i := range 8 {
				wg.Go(func() {
					for range 20 {
						j := &journal{}
						r := otherPart{&part{fmt.Sprint(i), j, 0}}
						if err := l.add(r); err != nil && !errors.Is(err, errStopped) {
							t.Error(err)
						}
					}
				})
			}
			go func() { <-l.elected; cancel() }()
			if err := l.run(ctx); err != nil {
				t.Error(err)
			}
			wg.Wait()
		})
	}
}

func TestContextsOfRunnables(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type key struct{}
		base := func() context.Context { return context.WithValue(context.Background(), key{}, "base") }
		l := newLifecycle(logr.Discard(), base, time.Minute, electionOn(t, (&fake.Board{}).Lock("a"), false))
		got := make(chan *leaderelection.Term, 2)
		look := func(ctx context.Context) error {
			if ctx.Value(key{}) != "base" {
				t.Error("not made from the base context")
			}
			if _, err := logr.FromContext(ctx); err != nil {
				t.Error(err)
			}
			got <- leaderelection.FromContext(ctx)
			return nil
		}
		mustAdd(t, l, RunnableFunc(look), otherFunc(look))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := l.run(ctx); err != nil {
			t.Error(err)
		}
		terms := []*leaderelection.Term{<-got, <-got}
		if slices.Contains(terms, nil) == false || terms[0] == terms[1] {
			t.Errorf("terms: %v, want one for the elected runnable only", terms)
		}
	})
}

type otherFunc func(context.Context) error

func (f otherFunc) Start(ctx context.Context) error { return f(ctx) }
func (otherFunc) NeedLeaderElection() bool          { return false }
