// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"github.com/xdpfab/xdpfab/internal/matching"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// mailTap sees the messages of a session on their way into the queue.
type mailTap struct {
	*matching.Inflow
	b       *mailbox
	tagged  bool // the latest message is
	refused bool // the next message waits for room
	due     bool // a receive has been posted since, so it must be tried again
	closed  bool
	shown   [2]uint64 // how many bytes the message in progress had, and lacked
	grew    int64     // when it was seen to have others, as the node's engines count the time
	shut    int64     // until when there is no room for the rest of a message
	behind  bool      // the rest of a message waits for room
}

// Admit implements session.Inflow.
func (t *mailTap) Admit(m *wire.Message) bool {
	ok := t.Inflow.Admit(m)
	if !ok && !t.refused {
		t.b.n.w.count(messagesRefused)
	}
	t.refused, t.due = !ok, false
	if ok {
		t.tagged = m.Tagged
	}
	t.b.hear()
	return ok
}

// Fits implements session.Inflow. Now and then the owner is behind, as a guest who does
// not read.
func (t *mailTap) Fits(n int) bool {
	w, b := t.b.n.w, t.b
	if w.now >= t.shut && !b.drains && w.dice.chance(w.plan.behind) {
		t.shut = w.now + w.dice.scale(millisecond, 5*second)
		w.at(t.shut, func() {
			if b.n.up && b.n.life == b.life {
				b.n.roomMade()
			}
		})
	}
	t.behind = w.now < t.shut && !b.drains
	return !t.behind
}

// Drop implements session.Inflow.
func (t *mailTap) Drop() {
	t.noteBreak()
	t.Inflow.Drop()
}

// Close implements session.Inflow.
func (t *mailTap) Close() {
	t.noteBreak()
	if !t.closed {
		t.closed, t.refused, t.due, t.behind = true, false, false, false
		for i, x := range t.b.taps {
			if x == t {
				t.b.taps = append(t.b.taps[:i], t.b.taps[i+1:]...)
				break
			}
		}
	}
	t.Inflow.Close()
}

// noteBreak counts a message that ends in its middle.
func (t *mailTap) noteBreak() {
	if _, lacks := t.InProgress(); lacks > 0 {
		t.b.breaks++
		t.b.n.w.count(messagesBroken)
	}
}

// checkTried checks, behind a step, that messages for which there may be room have been
// tried again.
func (n *node) checkTried() {
	if n.w.plan.tight() {
		return // there may be no buffer to keep them in, so they have to come again
	}
	for _, b := range n.boxes {
		if b == nil {
			continue
		}
		for _, t := range b.taps {
			if t.due {
				n.w.fail("%v: a receive was posted, but a message that waits was not tried again", b)
			}
		}
	}
}

// waits reports whether a message waits for room at the node.
func (n *node) waits() bool {
	for _, b := range n.boxes {
		if b == nil {
			continue
		}
		for _, t := range b.taps {
			if t.refused || t.behind {
				return true
			}
		}
	}
	return false
}

// checkStalls checks that no message stays in its middle for much longer than the give-up
// time of the node, while nothing more of it comes.
func (b *mailbox) checkStalls() {
	w, lived := b.n.w, int64(0)
	for _, e := range b.n.engs {
		lived = max(lived, e.Lived())
	}
	for _, t := range b.taps {
		has, lacks := t.InProgress()
		if shown := [2]uint64{has, lacks}; shown != t.shown || lacks == 0 || w.now < t.shut {
			t.shown, t.grew = shown, lived
		} else if most := int64(w.plan.session.GiveUp) + 5*second; lived-t.grew > most {
			w.fail("%v: a message that has %d bytes lacks %d, and nothing more of it has come for %.3f s",
				b, has, lacks, float64(lived-t.grew)/float64(second))
		}
	}
}
