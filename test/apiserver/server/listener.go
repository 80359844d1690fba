// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"net"
	"sync"
)

// listener remembers its connections, so that none outlives the server: an HTTP/2 connection otherwise stays for a
// second after its last request, and for ever if a request does not end.
type listener struct {
	net.Listener

	mu    sync.Mutex // guards conns
	conns map[*connection]struct{}
}

type connection struct {
	net.Conn
	of   *listener
	once sync.Once
}

func newListener(l net.Listener) *listener {
	return &listener{Listener: l, conns: map[*connection]struct{}{}}
}

func (l *listener) Accept() (net.Conn, error) {
	raw, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &connection{Conn: raw, of: l}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conns[c] = struct{}{}
	return c, nil
}

func (c *connection) Close() error {
	c.once.Do(func() {
		c.of.mu.Lock()
		defer c.of.mu.Unlock()
		delete(c.of.conns, c)
	})
	return c.Conn.Close()
}

// closeAll closes the listener and every connection made through it.
func (l *listener) closeAll() {
	_ = l.Listener.Close() // closed already if the server ran
	l.mu.Lock()
	left := make([]*connection, 0, len(l.conns))
	for c := range l.conns {
		left = append(left, c)
	}
	l.mu.Unlock()
	for _, c := range left {
		_ = c.Close() // it may be closing by itself
	}
}
