// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/xdpfab/xdpfab/internal/control"
)

// succeedMonitor is how long a daemon that has taken another one's place waits for the
// address of its metrics, which that one gives back as it stops serving.
const succeedMonitor = 10 * time.Second

// checkMetricsAddress accepts no address, which means no metrics.
func checkMetricsAddress(s string) error {
	if s == "" {
		return nil
	}
	_, port, err := net.SplitHostPort(s)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		return wants(s, "HOST:PORT to listen at, with a port up to 65535, e.g. 127.0.0.1:9497, [::1]:9497, or :9497 "+
			"for all addresses of the machine")
	}
	return nil
}

// openMonitor opens the address of the metrics; nil if there is none.
func (c Config) openMonitor(ctx context.Context) (net.Listener, error) {
	if c.MetricsAddress == "" {
		return nil, nil
	}
	return control.ListenMonitor(ctx, c.MetricsAddress)
}

// openBeside opens the address of the metrics before a takeover, so that one that cannot
// be had ends it. It returns nil if the former daemon has the address, and if that one,
// being of an older release, does not tell.
func (c Config) openBeside(ctx context.Context) (net.Listener, error) {
	l, err := c.openMonitor(ctx)
	if !errors.Is(err, syscall.EADDRINUSE) {
		return l, err
	}
	s, e := daemonAt(c.controlPath())
	_, own, _ := net.SplitHostPort(c.MetricsAddress)
	if _, port, _ := net.SplitHostPort(s.Metrics); e != nil || s.Metrics == "" || port == own {
		return nil, nil
	}
	return nil, err
}

// closeMonitor closes what openMonitor has opened.
func closeMonitor(l net.Listener) {
	if l != nil {
		_ = l.Close()
	}
}

// monitor serves metrics and probes until the context ends, at a listener that it closes,
// or, if that is nil, at one that it opens.
func (s *server) monitor(ctx context.Context, l net.Listener) error {
	if s.cfg.MetricsAddress == "" {
		return nil
	}
	if l == nil {
		var err error
		if l, err = s.reopenMonitor(ctx); err != nil {
			if ctx.Err() == nil { // the regions matter more
				s.log.Warn("no metrics until this daemon is reloaded or restarted", "cause", err)
			}
			return nil
		}
	}
	s.log.Info("metrics", "address", l.Addr().String())
	m := &control.Monitor{Source: s.status, Detail: s.detail, Alive: s.host.Alive, Ready: s.ready}
	return m.Serve(ctx, l)
}

// reopenMonitor opens the address that another daemon has just had.
func (s *server) reopenMonitor(ctx context.Context) (l net.Listener, err error) {
	for until := time.Now().Add(succeedMonitor); ; {
		l, err = s.cfg.openMonitor(ctx)
		if !errors.Is(err, syscall.EADDRINUSE) || time.Now().After(until) {
			return l, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// ready reports why peers are not served at present; nil if they are.
func (s *server) ready() error {
	n := s.host.Node()
	switch {
	case s.leaves.Load():
		return errors.New("another daemon takes this one's place")
	case n.End.Err() != nil:
		return n.End.Err()
	case n.Paused.Load():
		return errors.New("not serving yet")
	}
	if why := n.LinkDown.Load(); why != nil {
		return fmt.Errorf("interface %s is down: %s", n.Dev.Info().Name, *why)
	}
	return nil
}

// detail is what metrics show beside the status.
func (s *server) detail() control.Detail {
	d := control.Detail{Queues: s.host.Queues()}
	d.Nodes, d.Sessions = s.nodes.Look(s.host)
	d.States = s.states()
	return d
}

// states are what monitoring can raise an alert about.
func (s *server) states() map[string]bool {
	is := map[string]bool{"ready": s.ready() == nil, "link_up": s.host.Node().LinkDown.Load() == nil}
	if s.cfg.Directory != "" {
		at := s.directory.Load()
		is["directory_announced"] = at != nil && at.Announced()
	}
	resident := func(r *region) bool { return r.Backing == backingResident }
	if s.cfg.Pin != pinNone && slices.ContainsFunc(s.served.all(), resident) {
		is["resident_kept"] = s.host.Folder() != ""
	}
	return is
}
