// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"slices"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/internal/wire"
)

// tickets returns the numbers of tickets in the frames of them that a node was sent after
// the first so many packets.
func (c *cable) tickets(side, after int) (n []int) {
	for _, packet := range c.seen[side][after:] {
		if h, ok := headerOf(packet); ok && h.Type == wire.Tickets {
			n = append(n, (len(packet)-14-wire.HeaderLen)/wire.TicketLen)
		}
	}
	return n
}

// An initiator that waits for a word hears of its change in the same round as the one
// that has changed it, and before that one.
func TestWaitNewsLeavesFirst(t *testing.T) {
	c, p := newWaits(t)
	c.set(0, 5)
	r := c.waitSwap(p, 0, 7, 0)
	c.until("it waits", func() bool { return c.waiting() == 1 })
	c.idle(time.Second)
	before := len(c.seen[0])
	c.write(p, 0, 0)
	var types []wire.Type
	for _, packet := range c.seen[0][before:] {
		h, _ := headerOf(packet)
		types = append(types, h.Type)
	}
	if !slices.Equal(types, []wire.Type{wire.Tickets, wire.Ack}) {
		t.Errorf("the initiator got frames of types %v, want tickets and an ack", types)
	}
	if got := c.done(r); got != ranOnce {
		t.Errorf("%+v", got)
	}
}

// The target is told after a while that an end is known, since requests of those who
// waited leave first; or at once for several ends together.
func TestEndsAreToldLater(t *testing.T) {
	c, p := newWaits(t)
	for _, n := range []int{1, mostUntold} {
		var all []*outcomes
		for i := range n {
			c.set(i, 5)
			all = append(all, c.waitSwap(p, i, 7, 0))
		}
		c.until("all wait", func() bool { return c.waiting() == n })
		before, at := len(c.seen[1]), c.now
		for i := range n {
			c.set(i, 0)
		}
		for _, r := range all {
			if got := c.done(r); got != ranOnce {
				t.Errorf("%+v", got)
			}
		}
		for c.waiting() > 0 && c.now-at < int64(time.Second) {
			c.step()
		}
		took := c.now - at
		if told := c.tickets(1, before); !slices.Equal(told, []int{n}) || took >= 10*takenAfter ||
			n < mostUntold && took < takenAfter {
			t.Errorf("%d ends were told in frames of %v within %v, want one frame, and %v for a single end", n, told,
				time.Duration(took), time.Duration(takenAfter))
		}
	}
}
