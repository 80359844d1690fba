// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bytes"
	stdlog "log"

	"github.com/go-logr/logr"
)

// errorLog takes what net/http writes to its log. Failed handshakes are news about somebody else, a port scan for the most
// part, and would fill the log of whoever leaves a port open; the rest is about us.
type errorLog struct{ log logr.Logger }

func newErrorLog(log logr.Logger) *stdlog.Logger { return stdlog.New(errorLog{log}, "", 0) }

func (e errorLog) Write(line []byte) (int, error) {
	text := string(bytes.TrimSpace(line))
	if bytes.Contains(line, []byte("TLS handshake error")) {
		e.log.V(1).Info(text)
	} else {
		e.log.Info(text)
	}
	return len(line), nil
}
