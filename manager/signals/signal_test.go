// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package signals

import (
	"os"
	"testing"
)

func TestFirstSignalCancelsSecondExits(t *testing.T) {
	c := make(chan os.Signal)
	exited := make(chan int)
	ctx := watch(c, func(code int) { exited <- code })
	if ctx.Err() != nil {
		t.Fatal("context is done before any signal")
	}
	c <- os.Interrupt
	<-ctx.Done()
	select {
	case code := <-exited:
		t.Fatalf("exit(%d) after the first signal", code)
	default:
	}
	c <- os.Interrupt
	if code := <-exited; code != 1 {
		t.Errorf("exit(%d), want 1", code)
	}
}

func TestSecondSetupPanics(t *testing.T) {
	taken.Store(false)
	ctx := SetupSignalHandler()
	if ctx.Err() != nil {
		t.Fatal("context is done before any signal")
	}
	defer func() {
		if recover() == nil {
			t.Error("a second SetupSignalHandler did not panic")
		}
	}()
	SetupSignalHandler()
}
