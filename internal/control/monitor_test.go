// SPDX-License-Identifier: Apache-2.0

//go:build linux

package control

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xdpfab/xdpfab/internal/host"
	"github.com/xdpfab/xdpfab/internal/testnet"
)

// monitored is a Monitor at an address of its own.
func monitored(t *testing.T, m *Monitor) (address string) {
	t.Helper()
	l, err := ListenMonitor(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- m.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return l.Addr().String()
}

func lively() *Monitor {
	return &Monitor{Source: steady, Detail: func() Detail { return Detail{} }, Alive: func(func(int)) {}, Ready: func() error { return nil }}
}

// Each path answers, and the answer to a probe says why it fails.
func TestMonitor(t *testing.T) {
	m := lively()
	var down atomic.Pointer[error]
	m.Ready = func() error {
		if err := down.Load(); err != nil {
			return *err
		}
		return nil
	}
	at := monitored(t, m)
	for path, want := range map[string]string{"/healthz": "ok\n", "/readyz": "ok\n", "/metrics": "xdpfab_uptime_seconds 1.5\n"} {
		if code, body := testnet.Get(t, "http://"+at+path); code != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("%s: %d, %.200q; want %q", path, code, body, want)
		}
	}
	if code, body := testnet.Get(t, "http://"+at+"/"); code != http.StatusNotFound || !strings.Contains(body, "/metrics, /healthz or /readyz") {
		t.Errorf("/: %d, %q", code, body)
	}
	for path, want := range map[string]struct {
		code  int
		allow string
	}{"/metrics": {405, "GET, HEAD"}, "/healthz": {405, "GET, HEAD"}, "/readyz": {405, "GET, HEAD"}, "/metric": {404, ""}} {
		r, err := http.Post("http://"+at+path, "", nil)
		if err != nil {
			t.Fatal(err)
		}
		_ = r.Body.Close()
		if allow := r.Header.Get("Allow"); r.StatusCode != want.code || allow != want.allow {
			t.Errorf("POST of %s: %d, Allow %q; want %+v", path, r.StatusCode, allow, want)
		}
	}
	err := errors.New("interface eth7 is down")
	down.Store(&err)
	if code, body := testnet.Get(t, "http://"+at+"/readyz"); code != http.StatusServiceUnavailable || body != "interface eth7 is down\n" {
		t.Errorf("not ready: %d, %q", code, body)
	}
}

// probe is the answer to a request that comes over no network, as a test with virtual
// time needs.
func probe(h http.Handler, path string) (code int, body string) {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	return w.Code, w.Body.String()
}

// A poller that hangs makes the probe of life and the metrics say so within the time that
// it may take, and at once after that. However many ask, one question waits for it.
func TestMonitorOfHungPoller(t *testing.T) {
	for _, path := range []string{"/healthz", "/metrics"} {
		synctest.Test(t, func(t *testing.T) {
			var asked atomic.Int32
			hang := make(chan struct{})
			m := lively()
			m.Alive = func(asks func(int)) { asks(0); asks(3); asked.Add(1); <-hang }
			m.Source = func() (Status, error) { asked.Add(1); <-hang; return steady() }
			h := m.handler()
			const many = 10
			said := make(chan string, many)
			ask := func() {
				code, body := probe(h, path)
				said <- fmt.Sprint(code, " ", body)
			}
			for _, wait := range []time.Duration{aliveLimit, 0, 0} {
				began := time.Now()
				for range many {
					go ask()
				}
				for range many {
					if s := <-said; !strings.HasPrefix(s, map[string]string{"/healthz": "503 the poller of queue 3", "/metrics": "503 a poller"}[path]+" has not answered for 5s") {
						t.Errorf("%s: %s", path, s)
					}
				}
				if took := time.Since(began); took != wait {
					t.Errorf("%s: %v, want %v", path, took, wait)
				}
			}
			if n := asked.Load(); n != 1 {
				t.Errorf("%s: asked %d times for %d requests, want once", path, n, 3*many)
			}
			close(hang)
			synctest.Wait()
			for range many { // the answer counts, though it came late
				if code, body := probe(h, path); code != http.StatusOK {
					t.Errorf("%s: afterwards: %d, %s", path, code, body)
				}
			}
		})
	}
}

// Nor do metrics at the control socket wait for good: the pollers are asked again by the
// next client once they have answered.
func TestMetricsOfHungPoller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang, asked := make(chan struct{}), 0
		h := handler(Service{Source: func() (Status, error) { asked++; <-hang; return steady() }}, http.NotFoundHandler())
		for range 2 {
			if code, body := probe(h, "/metrics"); code != http.StatusServiceUnavailable || !strings.Contains(body, "has not answered for 5s") {
				t.Errorf("%d, %s", code, body)
			}
		}
		close(hang)
		synctest.Wait()
		for range 2 {
			if code, body := probe(h, "/metrics"); code != http.StatusOK {
				t.Errorf("afterwards: %d, %s", code, body)
			}
		}
		if asked != 3 {
			t.Errorf("asked %d times, want once while it hung, and once for each client after that", asked)
		}
	})
}

// A client that leaves waits no longer, and takes the answer from no other.
func TestMonitorOfLeavingClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := make(chan struct{})
		s := &shared[int]{ask: func() (int, error) { <-hang; return 7, nil }}
		ctx, leave := context.WithCancel(t.Context())
		left := make(chan error)
		go func() { _, err := s.get(ctx); left <- err }()
		leave()
		if err := <-left; !errors.Is(err, context.Canceled) {
			t.Errorf("the client that left: %v", err)
		}
		go func() { close(hang) }()
		if n, err := s.get(t.Context()); n != 7 || err != nil {
			t.Errorf("the other: %d, %v", n, err)
		}
	})
}

// However often clients ask, the pollers are asked once a second.
func TestMonitorAsksOnceASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		alive, looks := 0, 0
		m := lively()
		m.Alive = func(func(int)) { alive++ }
		m.Source = func() (Status, error) { looks++; return steady() }
		h := m.handler()
		for i, c := range []struct {
			after time.Duration
			want  int
		}{{0, 1}, {0, 1}, {scrapeEvery - 1, 1}, {1, 2}, {time.Hour, 3}} {
			time.Sleep(c.after)
			for _, path := range []string{"/healthz", "/metrics"} {
				if code, body := probe(h, path); code != http.StatusOK {
					t.Errorf("%s: %d, %s", path, code, body)
				}
			}
			if alive != c.want || looks != c.want {
				t.Errorf("request %d: asked %d and %d times, want %d", i, alive, looks, c.want)
			}
		}
	})
}

// Clients that say nothing, or that do not take their answer, keep no other client out:
// the oldest give way.
func TestMonitorAndSilentClients(t *testing.T) {
	at := monitored(t, lively())
	var silent []net.Conn
	for range 2 * mostMonitors {
		c, err := net.Dial("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_, _ = io.WriteString(c, "GET /metrics HTTP/1.1\r\nHost: x\r\nX-Slow: ") // and no end
		silent = append(silent, c)
	}
	if code, _ := testnet.Get(t, "http://"+at+"/healthz"); code != http.StatusOK {
		t.Errorf("beside silent clients: %d", code)
	}
	_ = silent[0].SetReadDeadline(time.Now().Add(testnet.Patience))
	if _, err := silent[0].Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the oldest: %v, want its end", err)
	}
}

// A client cannot make the daemon read, or keep, as much as it likes.
func TestMonitorAndLongHeader(t *testing.T) {
	c, err := net.Dial("tcp", monitored(t, lively()))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(testnet.Patience))
	_, _ = io.WriteString(c, "GET /metrics HTTP/1.1\r\nHost: x\r\nX: "+strings.Repeat("x", 64<<10)+"\r\n\r\n")
	r, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err == nil {
		_ = r.Body.Close()
	}
	if err != nil || r.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("%v, %v; want 431", r, err)
	}
}

// An address that is taken, or that is none, says what to do.
func TestListenMonitorRefuses(t *testing.T) {
	taken := monitored(t, lively())
	_, port, _ := net.SplitHostPort(taken)
	for address, want := range map[string]string{
		taken:             "see whose it is with `ss -ltnp 'sport = :" + port + "'",
		"192.0.2.1:9497":  "192.0.2.1:9497: cannot assign requested address: choose an address that",
		"nonsense.x:9497": "want HOST:PORT of this machine",
	} {
		if l, err := ListenMonitor(t.Context(), address); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v; want an error with %q", address, l, err, want)
		}
	}
}

// Nodes, guests and regions have metrics of their own up to a bound, and the rest is
// counted.
func TestLabelsAreBounded(t *testing.T) {
	const many = 3 * MostLabels
	crowd := sample
	crowd.Regions, crowd.Guests = nil, nil
	d := Detail{Sessions: []host.SessionKind{{Role: "target", State: "open", Count: many}}}
	for i := range many {
		crowd.Regions = append(crowd.Regions, Region{Name: fmt.Sprint("r", i)})
		crowd.Guests = append(crowd.Guests, Guest{AttachedGuest: host.AttachedGuest{GuestInfo: host.GuestInfo{PID: 1000 + i, Completed: uint64(i)}}})
		d.Nodes = append(d.Nodes, host.NodeInfo{Node: fmt.Sprint("10.0.0.", i), BytesSent: uint64(many - i)})
	}
	for q := range 64 {
		d.Queues = append(d.Queues, host.QueueInfo{Queue: q, PacketsSent: uint64(q)})
	}
	text, err := metricsText(func() (Status, error) { return crowd, nil }, func() Detail { return d })
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int{"xdpfab_region_size_bytes{": MostLabels, "xdpfab_guest_completions_total{": MostLabels,
		"xdpfab_node_sent_bytes_total{": MostLabels, "xdpfab_queue_packets_sent_total{": 64} {
		if n := strings.Count(text, "\n"+name); n != want {
			t.Errorf("%s: %d series, want %d", name, n, want)
		}
	}
	for _, want := range []string{`xdpfab_unlisted{kind="guest"} 200`, `xdpfab_unlisted{kind="node"} 200`, `xdpfab_unlisted{kind="region"} 200`,
		`xdpfab_guest_completions_total{pid="1299",user="0"} 299`, `xdpfab_node_sent_bytes_total{node="10.0.0.0"} 300`,
		`xdpfab_sessions{role="target",state="open"} 300`, `xdpfab_queue_packets_sent_total{queue="63"} 63`} {
		if !strings.Contains(text, "\n"+want+"\n") {
			t.Errorf("lacks %s", want)
		}
	}
	const most = 3500 // as docs/metrics.md says
	if n := strings.Count(text, "\nxdpfab_"); n > most {
		t.Errorf("%d series, want at most %d", n, most)
	}
}
