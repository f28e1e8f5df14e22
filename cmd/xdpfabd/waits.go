// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"

	"github.com/xdpfab/xdpfab/internal/control"
)

const (
	// tellEach is how often a daemon says that it waits for the next one.
	tellEach = 10 * time.Second
	// tellLoud is how long that is no reason to worry.
	tellLoud = 30 * time.Second
)

// waits is that a daemon which serves no more waits for the next one.
type waits struct {
	log   *slog.Logger
	pid   int // of the next daemon; 0 if the socket does not tell
	limit time.Duration
}

// begin has the log say each tellEach that the daemon waits, until end is called.
func (w waits) begin() (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		tick := time.NewTicker(tellEach)
		defer tick.Stop()
		for waited := tellEach; ; waited += tellEach {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				w.tell(waited)
			}
		}
	}()
	return cancel
}

// tell names the next daemon, and how to end it.
func (w waits) tell(waited time.Duration) {
	level := slog.LevelInfo
	if waited >= tellLoud {
		level = slog.LevelWarn
	}
	args := []any{"waited", waited, "limit", w.limit}
	if w.pid != 0 {
		args = append([]any{"pid", w.pid}, append(args, "remedy", fmt.Sprintf("kill -9 %d ends it", w.pid))...)
	}
	w.log.Log(context.Background(), level,
		"next daemon has not answered yet: it opens the interface, or hangs", args...)
}

// explain says of the error that ended the wait what has become of the next daemon.
func (w waits) explain(err error) error {
	became := ""
	switch {
	case hungUp(err):
		became = "has ended"
	case errors.Is(err, os.ErrDeadlineExceeded):
		became = fmt.Sprintf("has not answered within %v", w.limit)
	default:
		return err
	}
	who := "the next daemon"
	if w.pid != 0 {
		who += fmt.Sprintf(", process %d,", w.pid)
	}
	return fmt.Errorf("%s %s: %w", who, became, err)
}

// pidAt returns the process that has connected; 0 if the kernel does not tell.
func pidAt(conn net.Conn) int {
	if c, is := conn.(*net.UnixConn); is {
		if p, err := control.ProgramAt(c); err == nil {
			return p.PID
		}
	}
	return 0
}

// hearLast receives the verdict after those of progress. On a slow machine a takeover
// takes as long as there are guests to move, so each of them renews the limit.
func hearLast(conn net.Conn, limit time.Duration) (verdict, error) {
	for {
		_ = conn.SetDeadline(time.Now().Add(limit))
		if v, err := hear(conn); err != nil || !v.Progress {
			return v, err
		}
	}
}

// progressEach is how often the other daemon is told of progress, at most: so seldom that
// what it has not read yet fits into the socket for longer than it is waited for.
const progressEach = time.Second

// progress tells the other daemon of a takeover that guests move: that they leave this
// one, or that this one takes them in.
type progress struct {
	mu   sync.Mutex
	conn net.Conn  // nil unless the other one is to be told
	told time.Time // when it was, the last time
}

// begin has the other daemon told, until end is called.
func (p *progress) begin(conn net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conn, p.told = conn, time.Time{}
}

func (p *progress) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conn = nil
}

// made says that a guest has moved.
func (p *progress) made() {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if p.conn == nil || now.Sub(p.told) < progressEach {
		return
	}
	p.told = now
	_ = p.conn.SetDeadline(now.Add(progressEach))
	if control.Tell(p.conn, verdict{Progress: true}) != nil {
		p.conn = nil // the next step says why
	}
}
