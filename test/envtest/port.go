// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package envtest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
)

const (
	// firstPort to lastPort are below what systems give to outgoing connections:
	// whoever asks for one here has time to listen on it before a connection of
	// somebody else's gets the number.
	firstPort, lastPort = 20000, 29999
	// portTries bounds the search for a free one.
	portTries = 200
)

// suggested holds the ports this process was given, so that two environments of
// one test never get the same.
var suggested = struct {
	sync.Mutex
	ports map[int]bool
}{ports: map[int]bool{}}

// freePort finds a port on host that nobody listens on. Whoever asked has to
// listen on it soon: another process may find it too.
func freePort(host string) (int, error) {
	suggested.Lock()
	defer suggested.Unlock()
	var last error
	for range portTries {
		port := firstPort + rand.IntN(lastPort-firstPort+1)
		if suggested.ports[port] {
			continue
		}
		if last = tryPort(host, strconv.Itoa(port)); last == nil {
			suggested.ports[port] = true
			return port, nil
		}
		if dns := (*net.DNSError)(nil); errors.As(last, &dns) {
			break // another port helps nothing
		}
	}
	return 0, fmt.Errorf("find a free port on %s between %d and %d: %w", host, firstPort, lastPort, last)
}

// tryPort says why nobody can listen on a port, or nil.
func tryPort(host, port string) error {
	l, err := net.Listen("tcp", net.JoinHostPort(host, port))
	if err != nil {
		return err
	}
	return l.Close()
}
