// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"net"
	"time"
)

// retreat is the way back of a daemon that takes another's place. As long as it is open,
// a signal makes this daemon hang up, which tells the other one to go on. Once it is
// closed, the other one may have ended already, and a signal waits until this one serves.
type retreat struct {
	ctx    context.Context // ends at a signal
	stop   func() bool     // reports that nothing has hung up, nor will
	closed bool
	over   chan struct{} // closed when the takeover has ended in one way or the other
}

// retreatOf opens the way back. If the takeover lasts longer than closeLimit after a
// signal, exit ends the process: the kernel may take minutes to check the program of
// resident regions, and the other daemon has its queues again, for which this one waits.
func retreatOf(ctx context.Context, conn *net.UnixConn, exit func()) *retreat {
	r, limit := &retreat{ctx: ctx, over: make(chan struct{})}, closeLimit
	r.stop = context.AfterFunc(ctx, func() {
		_ = conn.Close()
		select {
		case <-r.over:
		case <-time.After(limit):
			exit()
		}
	})
	return r
}

// end says that the takeover has ended.
func (r *retreat) end() {
	r.stop()
	close(r.over)
}

// close closes the way back. The error says that it has been taken.
func (r *retreat) close() error {
	if !r.stop() {
		return context.Cause(r.ctx)
	}
	r.closed = true
	return nil
}

// taken reports whether this daemon was asked to end in time.
func (r *retreat) taken() bool { return !r.closed && r.ctx.Err() != nil }

// giveUp ends a takeover in order, as a signal wants. The exit code is 0, as for any end
// on request: no exit code says that a takeover has succeeded, since the daemon then
// runs; readiness does, which this one has not told.
func (s *server) giveUp() error {
	s.log.Info("takeover given up, since this daemon is asked to end: the other one continues", "control",
		s.cfg.controlPath())
	return nil
}
