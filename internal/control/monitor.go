// SPDX-License-Identifier: Apache-2.0

//go:build linux

package control

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"syscall"
	"time"
)

// Monitor is what a daemon shows to monitoring, over TCP: it changes nothing, and asks
// nobody who he is.
//
//	GET /metrics  Prometheus text format
//	GET /healthz  200 while the pollers answer, otherwise 503 and the reason
//	GET /readyz   200 while peers are served, otherwise 503 and the reason
//
// Any number of clients costs the pollers no more than one scrape and one question a
// second: see shared.
type Monitor struct {
	Source Source
	Detail func() Detail
	// Alive waits until each poller has answered, and tells whose it asks.
	Alive func(asks func(queue int))
	Ready func() error // nil while peers are served
}

// Limits of the clients of a Monitor.
const (
	// monitorPatience bounds how long a client may take to send a request or to take the
	// answer, and how long it may stay connected idly.
	monitorPatience = 10 * time.Second
	// mostMonitors is how many connections there are at a time. The oldest gives way, so
	// that clients which say nothing do not keep others out.
	mostMonitors = 32
	// monitorHeader is the most that a client may say before it is refused, bytes.
	monitorHeader = 8 << 10
)

// ListenMonitor opens the address of a Monitor, HOST:PORT. The error says what to do.
func ListenMonitor(ctx context.Context, address string) (net.Listener, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", address)
	_, port, _ := net.SplitHostPort(address)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("metrics: %s: %w, perhaps by the daemon of another interface: choose another port, or "+
			"see whose it is with `ss -ltnp 'sport = :%s'`", address, syscall.EADDRINUSE, port)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return nil, fmt.Errorf("metrics: %s: %w: choose an address that `ip addr` shows, or :%s for all", address,
			syscall.EADDRNOTAVAIL, port)
	case errors.Is(err, syscall.EACCES):
		return nil, fmt.Errorf("metrics: %s: %w: a port below 1024 needs CAP_NET_BIND_SERVICE: choose a higher one, "+
			"such as 9497", address, syscall.EACCES)
	case err != nil:
		return nil, fmt.Errorf("metrics: %w; want HOST:PORT of this machine, e.g. 127.0.0.1:9497", err)
	}
	return l, nil
}

// Serve answers requests until the context ends, which is no error. It closes the
// listener.
func (m *Monitor) Serve(ctx context.Context, l net.Listener) error {
	srv := &http.Server{
		Handler:           m.handler(),
		ReadHeaderTimeout: monitorPatience, ReadTimeout: monitorPatience, WriteTimeout: monitorPatience,
		IdleTimeout: monitorPatience, MaxHeaderBytes: monitorHeader,
		ConnState: new(newest).turn,
		ErrorLog:  log.New(io.Discard, "", 0), // strangers decide what is in it
	}
	stop := context.AfterFunc(ctx, func() { _ = srv.Close() })
	defer stop()
	err := srv.Serve(l)
	if ctx.Err() != nil {
		return nil
	}
	return errors.Join(err, srv.Close())
}

func (m *Monitor) handler() http.Handler {
	mux := http.NewServeMux()
	alive := pollers(m.Alive, scrapeEvery)
	mux.HandleFunc("GET "+pathMetrics, scraped(m.Source, m.Detail, scrapeEvery))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, r *http.Request) {
		_, err := alive.get(r.Context())
		judge(w, err)
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) { judge(w, m.Ready()) })
	for path, status := range map[string]int{"/": http.StatusNotFound, pathMetrics: http.StatusMethodNotAllowed,
		"/healthz": http.StatusMethodNotAllowed, "/readyz": http.StatusMethodNotAllowed} {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			if status == http.StatusMethodNotAllowed {
				w.Header().Set("Allow", "GET, HEAD")
			}
			http.Error(w, "want GET of /metrics, /healthz or /readyz", status)
		})
	}
	return mux
}

// judge answers a probe.
func judge(w http.ResponseWriter, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	_, _ = io.WriteString(w, "ok\n")
}

// newest closes the oldest connection when there are too many.
type newest struct {
	mu    sync.Mutex
	conns []net.Conn // the oldest first
}

// turn is http.Server.ConnState.
func (n *newest) turn(conn net.Conn, state http.ConnState) {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch state {
	case http.StateNew:
		if n.conns = append(n.conns, conn); len(n.conns) > mostMonitors {
			_ = n.conns[0].Close()
			n.conns = n.conns[1:]
		}
	case http.StateClosed, http.StateHijacked:
		for i, c := range n.conns {
			if c == conn {
				n.conns = append(n.conns[:i:i], n.conns[i+1:]...)
				break
			}
		}
	}
}
