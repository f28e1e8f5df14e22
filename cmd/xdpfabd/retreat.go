// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"net"
)

// retreat is the way back of a daemon that takes another's place. As long as it is open,
// a signal makes this daemon hang up, which tells the other one to go on. Once it is
// closed, the other one may have ended already, and a signal waits until this one serves.
type retreat struct {
	ctx    context.Context // ends at a signal
	stop   func() bool     // reports that nothing has hung up, nor will
	closed bool
}

func retreatOf(ctx context.Context, conn *net.UnixConn) *retreat {
	return &retreat{ctx: ctx, stop: context.AfterFunc(ctx, func() { _ = conn.Close() })}
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
