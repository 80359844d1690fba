// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package file

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

// formatVersion is the version of every file of the store. It changes when an older program could misread a newer
// file.
const formatVersion = 1

// A frame is the unit of the log and of snapshots: it is there as a whole or not at all. Its checksum covers the
// store's identity, the checksum of the frame before it, its own header and its payload.
//
//	 0 magic    u32
//	 4 length   u32  of the payload
//	 8 type     u8   and three zero bytes
//	12 count    u32  of operations or entries in the payload
//	16 rev      u64  of the first operation, or of the store where there is none
//	24 time     i64  Unix nanoseconds
//	32 previous u32  checksum of the frame before
//	36 checksum u32
const (
	frameHeader = 40
	frameMagic  = 0x46574831 // "1HWF" on the disk
)

type frameType uint8

const (
	frameWrites  frameType = iota + 1 // operations, one revision each
	frameCompact                      // history up to and including the revision in the payload is forgotten
	frameClose                        // the store was closed in good order
	frameEntries                      // entries of a snapshot
	frameEnd                          // the end of a snapshot; count is that of all its entries
)

type frame struct {
	kind    frameType
	count   uint32
	rev     int64
	time    int64
	payload []byte
	sum     uint32
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// storeID tells one store's frames from another's: it is where every checksum starts.
type storeID [16]byte

func (id storeID) seed() uint32 { return crc32.Checksum(id[:], castagnoli) }

// startFrame gives a buffer with room for a header; the payload is appended to it and sealFrame completes it.
func startFrame(buf []byte) []byte { return append(buf[:0], make([]byte, frameHeader)...) }

func sealFrame(buf []byte, kind frameType, count int, rev, time int64, seed, previous uint32) uint32 {
	le := binary.LittleEndian
	le.PutUint32(buf[0:], frameMagic)
	le.PutUint32(buf[4:], uint32(len(buf)-frameHeader))
	le.PutUint32(buf[8:], uint32(kind))
	le.PutUint32(buf[12:], uint32(count))
	le.PutUint64(buf[16:], uint64(rev))
	le.PutUint64(buf[24:], uint64(time))
	le.PutUint32(buf[32:], previous)
	sum := crc32.Update(seed, castagnoli, buf[:36])
	sum = crc32.Update(sum, castagnoli, buf[frameHeader:])
	le.PutUint32(buf[36:], sum)
	return sum
}

// errNoFrame is in the chain when bytes are not a frame.
var errNoFrame = errors.New("not a frame")

// frameSize checks what can be checked without the payload and gives the whole frame's size.
func frameSize(header []byte, room int64) (int64, error) {
	le := binary.LittleEndian
	if le.Uint32(header) != frameMagic {
		return 0, fmt.Errorf("%w: no magic number", errNoFrame)
	}
	if kind := le.Uint32(header[8:]); kind < uint32(frameWrites) || kind > uint32(frameEnd) {
		return 0, fmt.Errorf("%w: unknown type %d", errNoFrame, kind)
	}
	size := frameHeader + int64(le.Uint32(header[4:]))
	if size > maxFrameBytes || size > room {
		return 0, fmt.Errorf("%w: length %d reaches behind the end", errNoFrame, size)
	}
	return size, nil
}

// parseFrame reads the frame that fills buf. It does not compare the previous checksum.
func parseFrame(buf []byte, seed uint32) (frame, uint32, error) {
	le := binary.LittleEndian
	sum := crc32.Update(seed, castagnoli, buf[:36])
	sum = crc32.Update(sum, castagnoli, buf[frameHeader:])
	if sum != le.Uint32(buf[36:]) {
		return frame{}, 0, fmt.Errorf("%w: checksum differs", errNoFrame)
	}
	return frame{
		kind: frameType(buf[8]), count: le.Uint32(buf[12:]),
		rev: int64(le.Uint64(buf[16:])), time: int64(le.Uint64(buf[24:])),
		payload: buf[frameHeader:], sum: sum,
	}, le.Uint32(buf[32:]), nil
}

// frameReader reads frames one after the other. The payload it gives is good until the next call.
type frameReader struct {
	file     io.ReaderAt
	offset   int64
	size     int64
	seed     uint32
	previous uint32
	buf      []byte
	header   [frameHeader]byte
}

// next gives the next frame, or io.EOF where only zeroes follow, or an error in whose chain is errNoFrame, or what
// the file gave.
func (r *frameReader) next() (frame, error) {
	room := r.size - r.offset
	if room < frameHeader {
		return frame{}, r.rest()
	}
	if _, err := r.file.ReadAt(r.header[:], r.offset); err != nil {
		return frame{}, err
	}
	if binary.LittleEndian.Uint32(r.header[:]) == 0 {
		return frame{}, r.rest()
	}
	size, err := frameSize(r.header[:], room)
	if err != nil {
		return frame{}, err
	}
	if int64(cap(r.buf)) < size {
		r.buf = make([]byte, size)
	}
	buf := r.buf[:size]
	if _, err := r.file.ReadAt(buf, r.offset); err != nil {
		return frame{}, err
	}
	f, previous, err := parseFrame(buf, r.seed)
	if err != nil {
		return frame{}, err
	}
	if previous != r.previous {
		return frame{}, fmt.Errorf("%w: it does not follow the frame before it", errNoFrame)
	}
	r.offset += size
	r.previous = f.sum
	return f, nil
}

// rest gives io.EOF if there are only zeroes left, which is space reserved for frames to come.
func (r *frameReader) rest() error {
	buf := make([]byte, 64<<10)
	for at := r.offset; at < r.size; {
		n := min(int64(len(buf)), r.size-at)
		if _, err := r.file.ReadAt(buf[:n], at); err != nil {
			return err
		}
		for _, b := range buf[:n] {
			if b != 0 {
				return fmt.Errorf("%w: no magic number", errNoFrame)
			}
		}
		at += n
	}
	return io.EOF
}

// scanFrames calls yield for every whole frame of a store in buf, at whatever place, until yield says no. Frames
// inside of frames, as when an object holds a copy of a log, are not looked for.
func scanFrames(buf []byte, seed uint32, yield func(frame) bool) {
	for at := 0; at+frameHeader <= len(buf); at++ {
		if buf[at] != byte(frameMagic&0xff) {
			continue
		}
		size, err := frameSize(buf[at:], int64(len(buf)-at))
		if err != nil {
			continue
		}
		f, _, err := parseFrame(buf[at:at+int(size)], seed)
		if err != nil {
			continue
		}
		if !yield(f) {
			return
		}
		at += int(size) - 1
	}
}

// laterFrame looks for a whole frame in buf, the rest of a file from a place that does not parse, that was written
// after revision rev. It is the sign that what does not parse was acknowledged once, as the store never writes a
// frame before the one in front of it is durable. An object may hold a copy of a frame, but not of one that is yet to
// be written.
func laterFrame(buf []byte, seed uint32, rev int64) bool {
	found := false
	scanFrames(buf, seed, func(f frame) bool {
		found = f.rev > rev || f.rev == rev && f.kind != frameWrites
		return !found
	})
	return found
}
