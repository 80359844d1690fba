// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package program_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wherry-dev/wherry/test/apiserver/server"
	"github.com/wherry-dev/wherry/test/apiserver/storage/file"
)

func TestSeveralServersInOneProcess(t *testing.T) {
	const servers = 3
	var all sync.WaitGroup
	running := make([]*server.Server, servers)
	for i := range servers {
		all.Go(func() {
			s, err := server.Start(t.Context(), server.Options{Storage: file.Memory})
			if err != nil {
				t.Error(err)
				return
			}
			running[i] = s
		})
	}
	all.Wait()
	for i, s := range running {
		if s == nil {
			t.Fatal("not all servers started")
		}
		_, err := clientFor(t, s.Config()).CoreV1().ConfigMaps("default").Create(t.Context(), configMap(fmt.Sprintf("of%d", i)), metav1.CreateOptions{})
		must(t, err)
	}
	for i, s := range running {
		c := clientFor(t, s.Config())
		for j := range servers {
			_, err := c.CoreV1().ConfigMaps("default").Get(t.Context(), fmt.Sprintf("of%d", j), metav1.GetOptions{})
			if own := i == j; own != (err == nil) || !own && !apierrors.IsNotFound(err) {
				t.Errorf("server %d on the object of server %d: %v", i, j, err)
			}
		}
		foreign := s.Config()
		foreign.BearerToken = running[(i+1)%servers].Config().BearerToken
		_, err := clientFor(t, foreign).CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{})
		if !apierrors.IsUnauthorized(err) {
			t.Errorf("server %d takes the token of another: %v", i, err)
		}
		testControllersGoOn(t, c)
		// The others must not notice that one ends.
		must(t, s.Stop())
	}
}

func TestStopAndStartInOneProcess(t *testing.T) {
	dir := t.TempDir()
	var token, uid, last string
	goroutines := 0
	for round := range 4 {
		s, err := server.Start(t.Context(), server.Options{DataDir: dir})
		must(t, err)
		c := clientFor(t, s.Config())
		if round == 0 {
			m, err := c.CoreV1().ConfigMaps("default").Create(t.Context(), configMap("kept"), metav1.CreateOptions{})
			must(t, err)
			token, uid = s.Config().BearerToken, string(m.UID)
		}
		m, err := c.CoreV1().ConfigMaps("default").Get(t.Context(), "kept", metav1.GetOptions{})
		if err != nil || string(m.UID) != uid {
			t.Errorf("round %d: the object is %v, %v; want the one of the first", round, m, err)
		}
		if s.Config().BearerToken != token {
			t.Errorf("round %d has another token", round)
		}
		list, err := c.CoreV1().ConfigMaps("").List(t.Context(), metav1.ListOptions{})
		must(t, err)
		before, _ := strconv.Atoi(last)
		if now, err := strconv.Atoi(list.ResourceVersion); err != nil || now < before {
			t.Errorf("round %d: resourceVersion %s after %s", round, list.ResourceVersion, last)
		}
		last = list.ResourceVersion
		begun := time.Now()
		must(t, s.Stop(), s.Stop())
		if took := time.Since(begun); took > busy*stopLimit {
			t.Errorf("round %d: stopping took %v", round, took)
		}
		now := 0
		for end := time.Now().Add(busy * stopLimit); ; {
			runtime.GC()
			time.Sleep(100 * time.Millisecond) // what ended a moment ago is still counted otherwise
			// Kubernetes' code leaves some behind at its first use, which is the process's and not the server's.
			if now = runtime.NumGoroutine(); round <= 1 || now <= goroutines+20 {
				break
			}
			if time.Now().After(end) {
				t.Errorf("round %d left %d goroutines, the one before %d", round, now, goroutines)
				break
			}
		}
		t.Logf("round %d left %d goroutines", round, now)
		goroutines = now
	}
}

func TestStartIsCutShortByItsContext(t *testing.T) {
	why := errors.New("enough")
	for _, after := range []time.Duration{0, 100 * time.Millisecond, 400 * time.Millisecond, 700 * time.Millisecond} {
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(after, func() { cancel(why) })
		begun := time.Now()
		s, err := server.Start(ctx, server.Options{Storage: file.Memory})
		if err == nil {
			must(t, s.Stop())
			continue // it was quicker
		}
		if !errors.Is(err, why) {
			t.Errorf("after %v: %v; want the context's cause", after, err)
		}
		if took := time.Since(begun) - after; took > busy*stopLimit {
			t.Errorf("after %v: it took %v to give up", after, took)
		}
	}
}
