// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wherry-dev/wherry/webhook/admission"
)

// connect opens a TLS connection to the server in m.
func (m *memory) connect(t *testing.T, caBundle []byte) *tls.Conn {
	t.Helper()
	raw, err := m.dial(t.Context(), "", "")
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(caBundle)
	conn := tls.Client(raw, &tls.Config{RootCAs: pool, ServerName: "localhost"})
	if err := conn.HandshakeContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	return conn
}

// allowAll is a webhook that lets everything through.
func allowAll() *Admission {
	return &Admission{Handler: admission.HandlerFunc(func(context.Context, admission.Request) admission.Response { return Allowed("") })}
}

// Slip g: a client could hold a connection with a body that never comes. Each thing that is waited for has a limit.
func TestSlowClients(t *testing.T) {
	const head = "POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n"
	tests := map[string]struct {
		send   string
		limit  time.Duration
		answer string
	}{
		"half a header": {"POST /x HTTP/1.1\r\nHos", headerTimeout, "400 Bad Request"},
		"half a body":   {head + "\r\n{", readTimeout, "408 Request Timeout"},
		"nothing":       {"", headerTimeout, ""},
		"idle between":  {"GET /ok HTTP/1.1\r\nHost: localhost\r\n\r\n", idleTimeout, "200 OK"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, ca := devServer(t)
				s.Register("/x", allowAll())
				s.Register("/ok", say("ok"))
				m := newMemory()
				defer m.run(t, s)()
				conn := m.connect(t, ca)
				defer conn.Close()
				begun := time.Now()
				if _, err := io.WriteString(conn, test.send); err != nil {
					t.Fatal(err)
				}
				answer, err := io.ReadAll(conn) // ends when the server hangs up
				if err != nil {
					t.Error(err)
				}
				if waited := time.Since(begun); waited < test.limit || waited > test.limit+5*time.Second {
					t.Errorf("cut after %s, want %s", waited, test.limit)
				}
				if !strings.Contains(string(answer), test.answer) || test.answer == "" && len(answer) > 0 {
					t.Errorf("got %q", answer)
				}
				// The server is well.
				if _, got := get(t, m.client(t, ca), "/ok"); got != "ok" {
					t.Errorf("got %q", got)
				}
			})
		})
	}
}

// A client that says it will send no more is answered at once: a body that is cut off is none, and one that is whole counts.
func TestHalfClosedConnections(t *testing.T) {
	const review = `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u"}}`
	for name, test := range map[string]struct{ length, sent, answer string }{
		"half a header":     {"", "", "400 Bad Request"},
		"before the body":   {"100", "", "400 Bad Request"},
		"within the body":   {"100", review[:20], "400 Bad Request"},
		"after the request": {fmt.Sprint(len(review)), review, `"allowed":true`},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, ca := devServer(t)
				s.Register("/x", allowAll())
				m := newMemory()
				defer m.run(t, s)()
				conn := m.connect(t, ca)
				defer conn.NetConn().Close() // without a goodbye: there is nobody to take it
				head := "POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
				if test.length != "" {
					head += "Content-Length: " + test.length + "\r\n\r\n"
				}
				if _, err := io.WriteString(conn, head+test.sent); err != nil {
					t.Fatal(err)
				}
				begun := time.Now()
				if err := conn.CloseWrite(); err != nil {
					t.Fatal(err)
				}
				answer, err := io.ReadAll(conn)
				if err != nil {
					t.Error(err)
				}
				if waited := time.Since(begun); waited > time.Second {
					t.Errorf("answered after %s", waited)
				}
				if !strings.Contains(string(answer), test.answer) {
					t.Errorf("got %q, want %q", answer, test.answer)
				}
			})
		})
	}
}

// A client that takes no answer is cut, and one that takes a profile for longer than that is not.
func TestWriteTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, ca := devServer(t)
		failed := make(chan error, 1)
		s.Register("/long", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			for {
				if _, err := w.Write(make([]byte, 64<<10)); err != nil {
					failed <- err
					return
				}
			}
		}))
		s.Register("/profile", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			// What net/http/pprof does. A real profile cannot be taken here: its clock is not the bubble's.
			if err := http.NewResponseController(w).SetWriteDeadline(time.Now().Add(3 * writeTimeout)); err != nil {
				t.Error(err)
			}
			time.Sleep(2 * writeTimeout)
			io.WriteString(w, "profile")
		}))
		m := newMemory()
		defer m.run(t, s)()
		conn := m.connect(t, ca)
		defer conn.Close()
		begun := time.Now()
		if _, err := io.WriteString(conn, "GET /long HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		if err := <-failed; err == nil || time.Since(begun) > writeTimeout+10*time.Second {
			t.Errorf("%v after %s", err, time.Since(begun))
		}
		if resp, body := get(t, m.client(t, ca), "/profile"); resp.StatusCode != 200 || body != "profile" {
			t.Errorf("the profile is cut: %d %q", resp.StatusCode, body)
		}
	})
}

func TestClientThatHangsUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, ca := devServer(t)
		ended := make(chan error, 1)
		s.Register("/wait", http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
			<-req.Context().Done()
			ended <- req.Context().Err()
		}))
		m := newMemory()
		stop := m.run(t, s)
		conn := m.connect(t, ca)
		if _, err := io.WriteString(conn, "GET /wait HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		conn.NetConn().Close() // without a goodbye
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("the handler's context: %v", err)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestShutdown(t *testing.T) {
	for name, test := range map[string]struct {
		takes time.Duration
		cut   bool
	}{
		"a request under way is answered": {50 * time.Second, false},
		"one that takes too long is cut":  {writeTimeout - time.Second, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, ca := devServer(t)
				s.Register("/slow", http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
					select {
					case <-time.After(test.takes):
					case <-req.Context().Done():
					}
					io.WriteString(w, "done")
				}))
				m := newMemory()
				stop := m.run(t, s)
				answered := make(chan error, 1)
				go func() {
					resp, err := m.client(t, ca).Get("https://localhost/slow")
					if err == nil {
						_, err = io.ReadAll(resp.Body)
						resp.Body.Close()
					}
					answered <- err
				}()
				synctest.Wait()
				begun := time.Now()
				err := stop()
				if (err != nil) != test.cut || err != nil && !strings.Contains(err.Error(), "requests cut after 1m0s") {
					t.Errorf("stop: %v", err)
				}
				if took := time.Since(begun); took > shutdownTimeout+time.Second {
					t.Errorf("it took %s", took)
				}
				if err := <-answered; (err != nil) != test.cut {
					t.Errorf("the client got %v", err)
				}
			})
		})
	}
}

func TestPanicOfAHandlerOfTheMux(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, ca := devServer(t)
		s.Register("/panic", http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("p") }))
		s.Register("/ok", say("ok"))
		m := newMemory()
		defer m.run(t, s)()
		c := m.client(t, ca)
		if _, err := c.Get("https://localhost/panic"); err == nil {
			t.Error("want the connection cut")
		}
		if _, got := get(t, c, "/ok"); got != "ok" {
			t.Errorf("got %q", got)
		}
	})
}

// The listener may end by itself; that is an error of the server.
func TestListenerEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := devServer(t)
		m := newMemory()
		stop := m.run(t, s)
		m.Close()
		synctest.Wait()
		if err := stop(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("got %v", err)
		}
	})
}
