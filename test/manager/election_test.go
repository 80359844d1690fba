// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/manager"
	"github.com/wherry-dev/wherry/manager/leaderelection"
)

func readLease(t *testing.T, name string) *coordinationv1.Lease {
	t.Helper()
	l := &coordinationv1.Lease{}
	if err := live.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: name}, l); err != nil {
		t.Fatal(err)
	}
	return l
}

func TestTwoManagersTakeTurns(t *testing.T) {
	only, lease := &alone{t: t}, unique("turns")
	before := start(t, config, options(lease), only.as("0"))
	before.awaitElection(t, patience)
	for turn := range 4 {
		next := start(t, config, options(lease), only.as(fmt.Sprint(turn+1)))
		time.Sleep(2 * retryPeriod)
		select {
		case <-next.Elected():
			t.Fatal("two lead")
		default:
		}
		if err := before.stop(); err != nil {
			t.Error(err)
		}
		stopped := time.Now()
		if took := next.awaitElection(t, patience).Sub(stopped); took > leaseDuration-time.Second {
			t.Errorf("turn %d: elected %s after the other had stopped", turn, took)
		}
		before = next
	}
	if err := before.stop(); err != nil {
		t.Error(err)
	}
	l := readLease(t, lease)
	if *l.Spec.HolderIdentity != "" || *l.Spec.LeaseTransitions != 4 {
		t.Errorf("lease at the end: %+v", l.Spec)
	}
}

// beReplica leads by the lease "killed" until it is killed.
func beReplica(kubeconfig string) {
	c, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	m, err := manager.New(c, options("killed"))
	if err == nil {
		err = m.Start(context.Background())
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func writeKubeconfig(t *testing.T) string {
	t.Helper()
	k := clientcmdapi.NewConfig()
	k.Clusters["x"] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
	k.AuthInfos["x"] = &clientcmdapi.AuthInfo{Token: config.BearerToken, ClientCertificateData: config.CertData, ClientKeyData: config.KeyData}
	k.Contexts["x"] = &clientcmdapi.Context{Cluster: "x", AuthInfo: "x"}
	k.CurrentContext = "x"
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*k, file); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestKilledLeader(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	leader := exec.Command(self)
	leader.Env = append(os.Environ(), asReplica+"="+writeKubeconfig(t))
	leader.Stderr = os.Stderr
	if err := leader.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = leader.Process.Kill() }()
	eventually(t, patience, "the other process leads", func() bool {
		l := &coordinationv1.Lease{}
		err := live.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "killed"}, l)
		return err == nil && *l.Spec.HolderIdentity != ""
	})
	next := start(t, config, options("killed"))
	time.Sleep(leaseDuration + time.Second)
	select {
	case <-next.Elected():
		t.Fatal("two lead")
	default:
	}
	if err := leader.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = leader.Wait()
	renewed := readLease(t, "killed").Spec.RenewTime.Time
	waited := next.awaitElection(t, patience).Sub(renewed)
	if waited < leaseDuration || waited > 2*leaseDuration {
		t.Errorf("elected %s after the last renewal, want %s and little more", waited, leaseDuration)
	}
	if err := next.stop(); err != nil {
		t.Error(err)
	}
}

// proxy stands between a manager and the API server. It notes when writes arrive, and can let everything hang.
type proxy struct {
	*httptest.Server

	mu       sync.Mutex
	isCut    chan struct{} // closed when all hang
	writes   []time.Time   // arrivals of writes other than of leases and events
	renewals []time.Time   // arrivals of lease writes that were answered well
}

func newProxy(t *testing.T) *proxy {
	t.Helper()
	transport, err := rest.TransportFor(config)
	if err != nil {
		t.Fatal(err)
	}
	target, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{isCut: make(chan struct{})}
	forward := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }, Transport: transport, FlushInterval: -1,
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		arrived := time.Now()
		if isWrite(req) {
			p.mu.Lock()
			p.writes = append(p.writes, arrived)
			p.mu.Unlock()
		}
		select {
		case <-p.isCut:
			_, _ = io.Copy(io.Discard, req.Body) // or the server would not notice that the client has gone
			<-req.Context().Done()
			return
		default:
		}
		seen := &statusWriter{ResponseWriter: w}
		forward.ServeHTTP(seen, req)
		if req.Method != http.MethodGet && strings.Contains(req.URL.Path, "/leases") && seen.code < 300 {
			p.mu.Lock()
			p.renewals = append(p.renewals, arrived)
			p.mu.Unlock()
		}
	}))
	t.Cleanup(func() {
		p.CloseClientConnections()
		p.Close()
	})
	return p
}

type statusWriter struct {
	http.ResponseWriter
	code int
}

func (w *statusWriter) WriteHeader(code int) {
	w.code = code
	w.ResponseWriter.WriteHeader(code)
}

func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// gateToWire is how long a machine that does other things may take from letting a write go to noting it as sent. The bound
// itself is held where time stands still meanwhile: TestFence and TestTermBounds.
const gateToWire = time.Second

// enoughWrites is how many a partition is to interrupt.
const enoughWrites = 100

// written counts the writes that have arrived.
func (p *proxy) written() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.writes)
}

// terms says when the last renewal's term ended: for new writes, and for those under way. A renewal counts from when it was sent,
// which is before it arrived, so both are late rather than early.
func (p *proxy) terms() (send, lease time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	last := p.renewals[len(p.renewals)-1]
	return last.Add(renewDeadline), last.Add(leaseDuration)
}

// outbox notes when a client sends writes, below all that the manager puts around its transport: a busy proxy may notice one that
// was sent in time only later.
type outbox struct {
	mu   sync.Mutex
	sent []time.Time
}

func (o *outbox) wrap(rt http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		if isWrite(req) {
			o.mu.Lock()
			o.sent = append(o.sent, time.Now())
			o.mu.Unlock()
		}
		return rt.RoundTrip(req)
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// isWrite tells writes from reads and from what the election and the recorder send.
func isWrite(req *http.Request) bool {
	return req.Method != http.MethodGet && !strings.Contains(req.URL.Path, "/leases") && !strings.Contains(req.URL.Path, "/events")
}

// countAfter counts the times after end. The list grows under mu.
func countAfter(mu *sync.Mutex, times *[]time.Time, end time.Time) (n, all int) {
	mu.Lock()
	defer mu.Unlock()
	for _, at := range *times {
		if at.After(end) {
			n++
		}
	}
	return n, len(*times)
}

// A leader whose way to the API server is cut, while it writes all the time, sends no write after its term: whatever its
// reconciles do with their contexts.
func TestPartitionedLeader(t *testing.T) {
	for _, standDown := range []bool{false, true} {
		t.Run(fmt.Sprintf("stand down %v", standDown), func(t *testing.T) {
			lease := unique(fmt.Sprintf("partition-%v", standDown))
			p := newProxy(t)
			o := options(lease)
			o.LeaderElectionStandDown = standDown
			if err := client.IgnoreAlreadyExists(live.Create(t.Context(), configMap(lease))); err != nil {
				t.Fatal(err)
			}
			stopWriting := make(chan struct{})
			var refused atomic.Pointer[error] // a leader that stands down may lead twice, and then has two first writers
			var writers sync.WaitGroup
			c := make(chan client.Client, 1)
			write := manager.RunnableFunc(func(ctx context.Context) error {
				writing := context.WithoutCancel(ctx)
				cl := <-c
				c <- cl
				if err := cl.Patch(ctx, configMap(lease), client.RawPatch(client.Merge.Type(), []byte(`{"data":{"first":""}}`))); err != nil {
					return err // it asked where ConfigMaps are, which may take longer than an attempt
				}
				for i := range 4 {
					writers.Go(func() {
						for n := 0; ; n++ {
							select {
							case <-stopWriting:
								return
							default:
							}
							// Each write is given up after a while, or the first that hangs would be the last.
							attempt, done := context.WithTimeout(writing, 200*time.Millisecond)
							cm := configMap(lease)
							err := cl.Patch(attempt, cm, client.RawPatch(client.Merge.Type(), fmt.Appendf(nil, `{"data":{"w%d":"%d"}}`, i, n)))
							done()
							if i == 0 && err != nil {
								refused.Store(&err)
							}
							time.Sleep(5 * time.Millisecond)
						}
					})
				}
				<-ctx.Done()
				return nil
			})
			out := &outbox{}
			leader := start(t, &rest.Config{Host: p.URL, QPS: -1, WrapTransport: out.wrap}, o, write)
			c <- leader.GetClient()
			leader.awaitElection(t, patience)
			next := start(t, config, options(lease))
			eventually(t, patience, "the writes are under way", func() bool { return p.written() >= enoughWrites })
			close(p.isCut)
			if !standDown {
				if err := <-leader.ended; !errors.Is(err, leaderelection.ErrLost) {
					t.Errorf("ended with: %v", err)
				}
			}
			elected := next.awaitElection(t, patience)
			time.Sleep(time.Second)
			close(stopWriting)
			writers.Wait()

			end, leaseEnd := p.terms()
			late, all := countAfter(&out.mu, &out.sent, end.Add(gateToWire))
			arrivedLate, _ := countAfter(&p.mu, &p.writes, leaseEnd)
			if late != 0 || all < enoughWrites {
				t.Errorf("%d of %d writes were sent after the term", late, all)
			}
			if arrivedLate != 0 {
				t.Errorf("%d writes arrived after the lease had ended, when another may lead", arrivedLate)
			}
			if !elected.After(end) {
				t.Errorf("the next leader was elected %s before the term's end", end.Sub(elected))
			}
			if last := refused.Load(); last == nil || !errors.Is(*last, leaderelection.ErrTermOver) {
				t.Errorf("the last write was refused with: %v", last)
			}
			t.Logf("%d writes, %d after the term; next leader %s after its end", all, late, elected.Sub(end).Round(time.Millisecond))
			if standDown {
				_ = leader.stop()
			}
			if err := next.stop(); err != nil {
				t.Error(err)
			}
		})
	}
}
