// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package file

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"path/filepath"
)

// Report is what Check found in a data folder, or what Repair made of it.
type Report struct {
	Dir             string
	Revision        int64
	CompactRevision int64
	Keys            int
	Bytes           int64    // in values
	Segments        int      // files of the log
	Snapshots       int      // files
	Notes           []string // out of order, and put right at the next start
	Problems        []string // corrupt; empty if all is well
	// DroppedWrites is how many whole writes Repair found behind the damage and had to leave out, as what lay
	// between is lost.
	DroppedWrites int
}

// Check reads every file of the store in dir and changes none. The error says why it could not be read at all, as
// when a process has it open; what is wrong with the content is in the report.
func Check(dir string) (Report, error) { return check(osFS{}, dir) }

func check(fs FS, dir string) (Report, error) {
	s, err := Open(Options{Dir: dir, FS: fs, ReadOnly: true})
	if err != nil {
		return Report{}, fmt.Errorf("check: %w", err)
	}
	defer s.Close()
	rep := s.report()
	if err := s.Failure(); err != nil {
		rep.Problems = append(rep.Problems, err.Error())
	}
	if err := s.Verify(); err != nil {
		rep.Problems = append(rep.Problems, err.Error())
	}
	r := recovery{store: s, fs: fs, dir: dir}
	if err := r.list(); err != nil {
		return rep, fmt.Errorf("check: %w", err)
	}
	rep.Segments, rep.Snapshots = len(r.segments), len(r.snapshots)
	for _, rev := range r.snapshots {
		var scratch Store
		if err := scratch.readSnapshot(fs, r.path(snapshotName(rev))); err != nil {
			rep.Problems = append(rep.Problems, err.Error())
		}
	}
	// Opening has read the log from the snapshot on. What is older is read here.
	first, err := r.firstSegment()
	if err != nil {
		return rep, nil // the failure says it already
	}
	for _, seq := range r.segments[:first] {
		if err := r.readWhole(r.path(segmentName(seq))); err != nil {
			rep.Problems = append(rep.Problems, err.Error())
		}
	}
	return rep, nil
}

func (s *Store) report() Report {
	rep := Report{Dir: s.opts.Dir, Revision: s.Revision(), CompactRevision: s.CompactRevision(), Notes: s.notes}
	rep.Keys, rep.Bytes = s.Size()
	return rep
}

// readWhole reads a segment that is not the last one.
func (r *recovery) readWhole(name string) error {
	file, err := r.fs.Open(name, false)
	if err != nil {
		return err
	}
	defer file.Close()
	head, err := readHead(file, name, segmentMagic)
	if err != nil {
		return err
	}
	size, err := file.Size()
	if err != nil {
		return err
	}
	fr := frameReader{file: file, offset: segmentHeader, size: size, seed: head.id.seed(), previous: head.sum}
	for {
		at := fr.offset
		f, err := fr.next()
		if err == nil && f.kind == frameWrites {
			err = decodeOps(f, func(op) error { return nil })
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, errNoFrame):
			return &CorruptError{File: name, Offset: at, Reason: err.Error()}
		case err != nil:
			return err
		}
	}
}

// Repair makes a sound store in the folder out, which must not hold one yet, of what can be read of the store in dir.
// It keeps the state before the damage: a state that was there once, never a mixture. The new store's revision is
// above every one found, even behind the damage, so that no client takes old for new; watches begin afresh. Nothing
// in dir is changed.
func Repair(dir, out string) (Report, error) { return repair(osFS{}, dir, out) }

func repair(fs FS, dir, out string) (Report, error) {
	s, err := Open(Options{Dir: dir, FS: fs, ReadOnly: true})
	if err != nil {
		return Report{}, fmt.Errorf("repair: %w", err)
	}
	defer s.Close()
	rep := s.report()
	rep.Dir = out
	rev := s.rev
	if err := s.Failure(); err != nil {
		rep.Notes = append(rep.Notes, err.Error())
		var c *CorruptError
		if errors.As(err, &c) {
			last, dropped, err := s.behind(c)
			if err != nil {
				return rep, fmt.Errorf("repair: %w", err)
			}
			rep.DroppedWrites = dropped
			rev = max(rev, last) + 1
		}
	}
	if err := s.writeCopy(out, rev); err != nil {
		return rep, fmt.Errorf("repair: %w", err)
	}
	made, err := check(fs, out)
	if err != nil {
		return rep, fmt.Errorf("repair: %w", err)
	}
	if made.Keys != rep.Keys || made.Revision != rev || len(made.Problems) > 0 {
		return rep, fmt.Errorf("repair: the copy in %s is not what it should be: %+v", out, made)
	}
	rep.Revision, rep.CompactRevision, rep.Segments, rep.Snapshots = rev, rev, made.Segments, made.Snapshots
	return rep, nil
}

// behind looks for whole frames behind the damage and gives the last revision they tell of and the number of writes
// in them.
func (s *Store) behind(c *CorruptError) (last int64, dropped int, err error) {
	r := recovery{store: s, fs: s.opts.FS, dir: s.opts.Dir}
	if err := r.list(); err != nil {
		return 0, 0, err
	}
	for _, seq := range r.segments {
		name := r.path(segmentName(seq))
		if name < c.File && filepath.Dir(name) == filepath.Dir(c.File) {
			continue
		}
		data, err := readFile(r.fs, name)
		if err != nil {
			return 0, 0, err
		}
		scanFrames(data, s.log.id.seed(), func(f frame) bool {
			if end := f.rev + int64(f.count) - 1; f.kind == frameWrites && end > s.rev {
				last = max(last, end)
				dropped += int(f.count)
			}
			return true
		})
	}
	return last, dropped, nil
}

func readFile(fs FS, name string) ([]byte, error) {
	f, err := fs.Open(name, false)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	data := make([]byte, size)
	if _, err := f.ReadAt(data, 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return data, nil
}

// writeCopy makes a new store in dir that holds what s holds, at revision rev and without history.
func (s *Store) writeCopy(dir string, rev int64) error {
	fs := s.opts.FS
	if err := fs.MkdirAll(dir); err != nil {
		return err
	}
	r := recovery{store: &Store{opts: Options{ReadOnly: true}}, fs: fs, dir: dir}
	if err := r.list(); err != nil {
		return err
	}
	if len(r.segments)+len(r.snapshots) > 0 {
		return fmt.Errorf("folder %s holds a store already: name a new one", dir)
	}
	l := &log{fs: fs, dir: dir, mode: Durable}
	if _, err := rand.Read(l.id[:]); err != nil {
		return err
	}
	job := snapshotJob{store: s, view: view{root: s.tree.root, rev: rev}, fs: fs, dir: dir, id: l.id, sync: true}
	if err := job.run(); err != nil {
		return err
	}
	if err := l.begin(rev); err != nil {
		return err
	}
	return l.file.Close()
}
