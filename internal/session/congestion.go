// SPDX-License-Identifier: Apache-2.0

package session

// congestion bounds the frames in flight by the queueing delay that they cause, after
// Swift (SIGCOMM 2020): additive increase while the delay is below a target,
// multiplicative decrease, once a round trip, while it is above. The signal is the
// measured round trip less the shortest one seen lately; the wire carries no timestamps.
// Credits bound what a receiver can be made to hold; this bounds the queues in between
// and at the receiver's poller, so that many initiators share it.
type congestion struct {
	window float64 // frames, from 1 to the session's window
	slow   bool    // still doubling each round trip
	cutAt  int64   // time of the last decrease
	also   int     // answers that were delayed, since the last one that was not
	base   int64   // shortest round trip of the last two periods, ns
	next   int64   // shortest of the period under way
	flipAt int64   // when that period ends
}

const (
	initialWindow = 16 // frames, before anything is known

	// delayTarget is the queueing delay in nanoseconds at which the window is in balance.
	// It is above what one session with a full window inflicts on an idle poller (64
	// frames of about 1.2 µs), so that a lone session is never slowed down.
	delayTarget = int64(100e3)
	// flowScale raises the target for small windows, so that sessions that share a
	// bottleneck find the same window (Swift's flow scaling): at one frame the target is
	// 1 + flowScale times as high.
	flowScale = 0.5

	maxCut    = 0.5 // the most that one decrease takes
	cutFactor = 0.8 // of the excess delay's share in the round trip
	lossCut   = 0.3 // taken when a frame was lost

	basePeriod = int64(10e9) // ns; the path may change
)

// start begins with a window for an unknown path.
func (c *congestion) start(frames uint32) {
	*c = congestion{window: min(initialWindow, float64(frames)), slow: true}
}

// frames returns how many frames may be in flight.
func (c *congestion) frames() uint32 { return uint32(c.window) }

// delayed records the answer to a frame that was sent once, if the target may have
// delayed it: its round trip says nothing of queues. The window grows for it when the
// next answer comes that was not delayed.
func (c *congestion) delayed() { c.also++ }

// answered takes the round trip in nanoseconds of a frame that was sent once. most bounds
// the base: a session that begins while there is a queue would take its delay for the
// path's.
func (c *congestion) answered(now, rtt, most int64, frames uint32) {
	n := float64(1 + c.also)
	c.also = 0
	c.observe(now, rtt)
	base := min(c.base, most)
	target := float64(delayTarget) * (1 + flowScale/c.window)
	if excess := float64(rtt-base) - target; excess > 0 {
		c.cut(now, rtt, min(cutFactor*excess/float64(rtt), maxCut))
		return
	}
	c.grow(n, frames)
}

// waited records the answer to a frame that was sent once, and waited for the target's
// program: its round trip says nothing of queues, so only losses decrease the window.
func (c *congestion) waited(frames uint32) {
	n := float64(1 + c.also)
	c.also = 0
	c.grow(n, frames)
}

// grow increases the window for n answers.
func (c *congestion) grow(n float64, frames uint32) {
	if c.slow {
		c.window += n
	} else {
		c.window += n / c.window
	}
	c.window = min(c.window, float64(frames))
}

// lost records that a frame had to be sent again.
func (c *congestion) lost(now, rtt int64) { c.cut(now, rtt, lossCut) }

// timedOut records that nothing came back for a whole timeout.
func (c *congestion) timedOut(now int64) {
	c.window, c.slow, c.cutAt = max(c.window/2, 1), false, now
}

// cut decreases the window by a share, once a round trip.
func (c *congestion) cut(now, rtt int64, share float64) {
	if now-c.cutAt < rtt {
		return
	}
	c.window, c.slow, c.cutAt = max(c.window*(1-share), 1), false, now
}

// observe keeps the shortest round trip.
func (c *congestion) observe(now, rtt int64) {
	if c.flipAt == 0 || now >= c.flipAt {
		if c.base = c.next; c.base == 0 || rtt < c.base {
			c.base = rtt
		}
		c.next, c.flipAt = rtt, now+basePeriod
		return
	}
	c.next = min(c.next, rtt)
	c.base = min(c.base, rtt)
}
