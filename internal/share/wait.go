// SPDX-License-Identifier: Apache-2.0

//go:build linux

package share

import (
	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// An operation of a guest that waits at its target (wire.VerbWait) is in flight until the
// target has told its end. The guest recalls it by VerbLeave. A host that another one
// takes the place of recalls all: nobody else knows of them, and what waits must not
// prevent the takeover.

// mostWaits is how many of a guest's operations may wait at a time, wherever: as many as
// of one endpoint. A node has room for eight times as many of a host, so one guest does
// not take the room of the others. In a small ring it is half of the entries: the rest is
// for the operations that those wait for.
const mostWaits = 64

func (f *HostRing) mostWaits() int { return min(mostWaits, len(f.ops)/2) }

// wait is how an operation that waits is to end.
type wait uint8

const (
	waits    wait = 1 + iota
	recalled      // by the guest
	replaced      // by the host, which another one takes the place of
)

// mayWait refuses an operation that waits if the guest has too many.
func (f *HostRing) mayWait(o *op, x *engine.Entry) bool {
	if x.Verb != wire.VerbWait || f.waits < f.mostWaits() {
		return true
	}
	f.reject(o, session.Crowded, wire.StatusOK)
	return false
}

// waitBegins notes that an operation waits, before it is under way.
func (f *HostRing) waitBegins(o *op, x *engine.Entry) {
	if x.Verb == wire.VerbWait {
		o.wait, o.more = waits, true
		f.waits++
	}
}

// waitEnds notes that the end of an operation is known, or will not be for a long time.
func (f *HostRing) waitEnds(o *op) {
	if o.wait != 0 {
		o.wait = 0
		f.waits--
	}
}

// recall has the target end an operation that waits. It does so once.
func (f *HostRing) recall(o *op, why wait) {
	if o.more && o.wait == waits {
		o.wait = why
		o.peer.Peer.Recall(o)
	}
}

// leave ends a watch, or an operation that waits.
func (f *HostRing) leave(tag uint64) {
	for i := range f.ops {
		o := &f.ops[i]
		switch {
		case o.tag != tag:
		case o.watch:
			o.peer.Peer.Cancel(o)
			return
		case o.more && o.wait != 0:
			f.recall(o, recalled)
			return
		}
	}
}

// recallAll ends all operations that wait.
func (f *HostRing) recallAll() {
	if f.waits == 0 {
		return
	}
	for i := range f.ops {
		f.recall(&f.ops[i], replaced)
	}
}

// Waits reports whether the host takes operations that wait at their target: see
// engine.GuestRing.
func (c *GuestRing) Waits() bool { return c.waits.Load() }
