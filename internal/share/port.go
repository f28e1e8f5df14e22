// SPDX-License-Identifier: Apache-2.0

//go:build linux

package share

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/engine"
)

// Port returns the port of the engine whose guest ring this is: no packet ever comes, and
// to wait for one is to wait for completions.
func (c *GuestRing) Port() engine.Port { return doorbellPort{c} }

type doorbellPort struct{ c *GuestRing }

func (doorbellPort) Receive([][]byte) int { return 0 }
func (doorbellPort) Release()             {}
func (doorbellPort) Buffer() []byte       { return nil }
func (doorbellPort) Send(int)             {}
func (doorbellPort) Flush() error         { return nil }

// Wait reports that this side sleeps, looks once more, and then waits for the doorbell.
func (p doorbellPort) Wait(limit time.Duration) {
	if !p.c.alive {
		(&Doorbell{fd: -1}).Wait(p.c.wake, limit)
		p.clear()
		return
	}
	if len(p.c.notes) > 0 || p.c.in.called.any.Load() { // the host does not tell when it has room for them
		limit = min(limit, notesPoll)
	}
	h := p.c.segment.h
	h.guestSleeps.Swap(1)
	if h.completed.Load() == p.c.seen && h.arrived.Load() == p.c.looked && !p.c.tallies.Load().Pending() {
		p.c.doorbell.Wait(p.c.wake, limit)
	}
	h.guestSleeps.Store(0)
	p.c.looked = h.arrived.Load()
	p.c.doorbell.Clear()
	p.clear()
}

// notesPoll is the time between two looks for room in the submission ring.
const notesPoll = time.Millisecond

// clear takes the wake-ups of this side.
func (p doorbellPort) clear() {
	var buf [8]byte
	_, _ = unix.Read(p.c.wake, buf[:]) // there may have been none
}

func (p doorbellPort) Wake() {
	one := [8]byte{1}
	_, _ = unix.Write(p.c.wake, one[:]) // full means that it has been woken often enough
}
