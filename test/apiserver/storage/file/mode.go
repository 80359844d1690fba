// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package file

import (
	"fmt"
	"time"

	"k8s.io/utils/clock"
)

// Mode says what a write waits for before it is acknowledged.
type Mode int

const (
	// Durable waits until the write is on the disk: it survives kill -9 and a power cut. It is the default.
	Durable Mode = iota
	// Relaxed hands the write to the operating system: it survives kill -9, not a power cut.
	Relaxed
	// Memory keeps everything in memory and opens no file.
	Memory
)

// String gives the mode's name as the command line spells it.
func (m Mode) String() string {
	switch m {
	case Durable:
		return "durable"
	case Relaxed:
		return "relaxed"
	case Memory:
		return "memory"
	}
	return fmt.Sprintf("Mode(%d)", int(m))
}

// ParseMode is the inverse of [Mode.String].
func ParseMode(name string) (Mode, error) {
	for _, m := range []Mode{Durable, Relaxed, Memory} {
		if m.String() == name {
			return m, nil
		}
	}
	return 0, fmt.Errorf("storage mode %q: want durable, relaxed or memory", name)
}

// The store's limits. Options may lower or raise those with a field of the same meaning.
const (
	// maxValueBytes is the largest value a write may carry. The API server itself refuses requests above 3 MiB.
	maxValueBytes = 8 << 20
	// maxKeyBytes is the longest key.
	maxKeyBytes = 4 << 10
	// maxBatchBytes is where a group commit stops taking more requests.
	maxBatchBytes = 4 << 20
	// maxFrameBytes bounds what a reader of the log allocates for one frame. Only a Restore comes near it.
	maxFrameBytes = 1 << 30

	// minHistoryEvents are kept whatever their age, so that a watch can resume after a restart.
	minHistoryEvents = 10_000
	// maxHistoryEvents is where history is cut whatever its age.
	maxHistoryEvents = 100_000
	// maxHistoryBytes is where history is cut whatever its age or number.
	maxHistoryBytes = 128 << 20
	// historyAge is how long an event is kept, the limits above permitting.
	historyAge = 5 * time.Minute

	// minSnapshotLog is how much log is written before a snapshot is considered at all.
	minSnapshotLog = 32 << 20

	// watchQueue is how many events wait for a watcher before it reads from history instead.
	watchQueue = 1024
	// watchBuffer is how many events a watcher's channel holds.
	watchBuffer = 100
	// watchChunk is how many events a lagging watcher takes from history at once.
	watchChunk = 512
	// bookmarkPeriod is how often a watcher that allows bookmarks gets one.
	bookmarkPeriod = time.Minute
	// bookmarkBeforeEnd is how long before a watch's deadline it gets its last bookmark.
	bookmarkBeforeEnd = 2 * time.Second
	// progressPeriod is how often a watcher with ProgressNotify gets a bookmark.
	progressPeriod = 5 * time.Second
)

// Options say where a store lives and how it behaves. The zero value of every field but Dir is useful.
type Options struct {
	// Dir is the data folder, made if it is missing. It must be empty in Memory mode and set in every other.
	Dir string
	// Mode is what a write waits for.
	Mode Mode
	// ReadOnly opens what can be read of a store, even of a corrupt one, and refuses every write. It changes no
	// file.
	ReadOnly bool
	// HistoryEvents is how many events are kept whatever their age. Zero means 10,000.
	HistoryEvents int
	// HistoryAge is how long events are kept, if that is not too much for memory. Zero means 5 minutes.
	HistoryAge time.Duration
	// SnapshotBytes is how much log is written before the next snapshot; a store that holds more than that
	// waits for half of what it holds. Zero means 32 MiB.
	SnapshotBytes int64
	// ProgressPeriod is how often a watcher with ProgressNotify hears of progress. Zero means 5 seconds.
	ProgressPeriod time.Duration
	// NoSharing decodes an object for every reader instead of once per version.
	NoSharing bool
	// Check makes the store verify its invariants when it opens and closes, and look for readers that changed a
	// shared object. It costs time and memory: it is for tests.
	Check bool
	// FS is the file system. Nil means the operating system's.
	FS FS
	// Clock gives the time for expiry and for the age of history. Nil means the real one.
	Clock clock.PassiveClock
}

func (o Options) withDefaults() (Options, error) {
	switch {
	case o.Mode < Durable || o.Mode > Memory:
		return o, fmt.Errorf("open store: unknown mode %d", int(o.Mode))
	case o.Mode == Memory && o.Dir != "":
		return o, fmt.Errorf("open store: mode memory takes no folder, got %q", o.Dir)
	case o.Mode != Memory && o.Dir == "":
		return o, fmt.Errorf("open store: mode %s needs a folder", o.Mode)
	case o.Mode == Memory && o.ReadOnly:
		return o, fmt.Errorf("open store: mode memory cannot be read-only")
	}
	if o.HistoryEvents <= 0 {
		o.HistoryEvents = minHistoryEvents
	}
	if o.HistoryAge <= 0 {
		o.HistoryAge = historyAge
	}
	if o.SnapshotBytes <= 0 {
		o.SnapshotBytes = minSnapshotLog
	}
	if o.ProgressPeriod <= 0 {
		o.ProgressPeriod = progressPeriod
	}
	if o.FS == nil {
		o.FS = osFS{}
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return o, nil
}
