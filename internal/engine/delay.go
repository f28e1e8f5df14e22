// SPDX-License-Identifier: Apache-2.0

package engine

import "time"

// A packet costs the kernel more than all the rest of an ack. So if a burst needs no more
// than acks, and its senders say that more follows at once (see [wire.FlagDelay]), the
// round waits for that: the ack of the last request serves all. Nothing is delayed beyond
// the round, so a caller that makes no progress afterwards owes nobody an ack, nor does
// an engine that goes to sleep.

const (
	// pause is how long a round waits for the next packet, in ns: a sender that has one
	// takes about 2 µs for it, or 3 if it is long.
	pause = int64(4 * time.Microsecond)
	// mostLooks ends a pause if the clock stands still.
	mostLooks = 256
)

// receiveMore receives what follows a burst of n packets, until something is due at once,
// or nothing comes, or there is something else to do. It returns the number of packets.
func (e *Engine) receiveMore(n int) (more int) {
	looks, until := 0, int64(0)
	for e.delayed == n+more && n+more < burst && looks < mostLooks && !e.hasWork() {
		e.port.Release()
		if m := e.takeBurst(burst - n - more); m > 0 {
			more, looks, until = more+m, 0, 0
			continue
		}
		looks++
		switch now := e.read(); {
		case until == 0:
			until = now + pause
		case now >= until:
			return more
		}
	}
	return more
}

// hasWork reports whether there are operations to pack, or something that other
// goroutines or guests have left.
func (e *Engine) hasWork() bool {
	return len(e.ready) > 0 || e.waiting() || len(e.guests.all) > 0 && e.guests.take() > 0
}

// follows reports whether the session has operations to send, and nothing but its window
// holds up the first one.
func (c *conn) follows() bool {
	f := c.r.head
	return f != nil && c.r.conn == c && !c.r.starved() && f.Flags&FlagFence == 0 && !f.waits(c)
}
