// SPDX-License-Identifier: Apache-2.0

package engine

import "time"

// A packet costs the kernel more than all the rest of an ack. So if a burst needs no more
// than acks, and its senders say that more follows at once (see [wire.FlagDelay]), the
// round waits for that: the ack of the last request serves all. Nothing is delayed beyond
// the round by this: a caller that makes no progress afterwards owes nobody an ack, nor
// does an engine that goes to sleep.

const (
	// pause is how long a round waits for the next packet, in ns: a sender that has one
	// takes about 2 µs for it, or 3 if it is long.
	pause = int64(4 * time.Microsecond)
	// mostLooks ends a pause if the clock stands still.
	mostLooks = 256
	// mostDelayed is how many packets end the pauses of a round. An initiator does not
	// mark as many requests in a row.
	mostDelayed = 8
)

// receiveMore receives what follows a burst of n packets, until something is due at once,
// or nothing comes, or there is something else to do. It returns the number of packets.
func (e *Engine) receiveMore(n int) (more int) {
	e.port.Release()
	looks, until := 0, int64(0)
	for e.delayed == n+more && n+more < mostDelayed && looks < mostLooks && !e.findsWork() {
		e.fresh = false // an answer that comes now is not as old as the round
		if m := e.takeBurst(burst - n - more); m > 0 {
			e.port.Release()
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

// findsWork takes the operations of guests, and reports whether the rest of the round has
// anything to do beside acks: operations to pack, completions to tell, or something that
// other goroutines have left.
func (e *Engine) findsWork() bool {
	return len(e.ready) > 0 || len(e.unsaid) > 0 || e.deferredAck.c != nil || e.waiting() ||
		len(e.guests.all) > 0 && e.guests.take() > 0
}

// follows reports whether the session has operations to send, and nothing but its window
// holds up the first one.
func (c *conn) follows() bool {
	f := c.r.head
	return f != nil && c.r.conn == c && !c.r.starved() && f.Flags&FlagFence == 0 && !f.waits(c)
}
