// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package file

import (
	"encoding/binary"
	"fmt"
)

// opKind says what one operation of a log frame does.
type opKind uint8

const (
	opPut opKind = iota + 1
	opDelete
)

// op is one write as the log keeps it.
type op struct {
	kind    opKind
	key     string
	value   []byte
	expires int64
}

func appendOp(buf []byte, o op) []byte {
	buf = append(buf, byte(o.kind))
	buf = appendBytes(buf, o.key)
	if o.kind == opPut {
		buf = binary.AppendVarint(buf, o.expires)
		buf = appendBytes(buf, o.value)
	}
	return buf
}

func appendBytes[T string | []byte](buf []byte, b T) []byte {
	return append(binary.AppendUvarint(buf, uint64(len(b))), b...)
}

// cursor reads a payload. The first thing that does not fit makes it bad, and it stays bad.
type cursor struct {
	buf []byte
	bad bool
}

func (c *cursor) fail() { c.bad, c.buf = true, nil }

func (c *cursor) byte() byte {
	if len(c.buf) == 0 {
		c.fail()
		return 0
	}
	b := c.buf[0]
	c.buf = c.buf[1:]
	return b
}

func (c *cursor) varint() int64 {
	v, n := binary.Varint(c.buf)
	if n <= 0 {
		c.fail()
		return 0
	}
	c.buf = c.buf[n:]
	return v
}

// bytes gives a slice of the payload.
func (c *cursor) bytes(limit int) []byte {
	size, n := binary.Uvarint(c.buf)
	if n <= 0 || size > uint64(limit) || size > uint64(len(c.buf)-n) {
		c.fail()
		return nil
	}
	b := c.buf[n : n+int(size)]
	c.buf = c.buf[n+int(size):]
	return b
}

// decodeOps calls yield for each operation of a frame of writes. What it yields owns its memory.
func decodeOps(f frame, yield func(op) error) error {
	c := cursor{buf: f.payload}
	for i := range f.count {
		o := op{kind: opKind(c.byte())}
		o.key = string(c.bytes(maxKeyBytes))
		switch o.kind {
		case opPut:
			o.expires = c.varint()
			o.value = append([]byte{}, c.bytes(maxValueBytes)...)
		case opDelete:
		default:
			c.fail()
		}
		if c.bad || o.key == "" {
			return fmt.Errorf("%w: operation %d of %d makes no sense", errNoFrame, i+1, f.count)
		}
		if err := yield(o); err != nil {
			return err
		}
	}
	if len(c.buf) > 0 {
		return fmt.Errorf("%w: %d bytes behind the last operation", errNoFrame, len(c.buf))
	}
	return nil
}

func appendEntry(buf []byte, v *version) []byte {
	buf = appendBytes(buf, v.key)
	buf = binary.AppendVarint(buf, v.created)
	buf = binary.AppendVarint(buf, v.mod)
	buf = binary.AppendVarint(buf, v.expires)
	return appendBytes(buf, v.value)
}

// decodeEntries calls yield for each entry of a snapshot's frame. What it yields owns its memory.
func decodeEntries(f frame, yield func(*version) error) error {
	c := cursor{buf: f.payload}
	for i := range f.count {
		v := &version{key: string(c.bytes(maxKeyBytes))}
		v.created, v.mod, v.expires = c.varint(), c.varint(), c.varint()
		v.value = append([]byte{}, c.bytes(maxValueBytes)...)
		if c.bad || v.key == "" || v.created <= 0 || v.mod < v.created {
			return fmt.Errorf("%w: entry %d of %d makes no sense", errNoFrame, i+1, f.count)
		}
		if err := yield(v); err != nil {
			return err
		}
	}
	if len(c.buf) > 0 {
		return fmt.Errorf("%w: %d bytes behind the last entry", errNoFrame, len(c.buf))
	}
	return nil
}
