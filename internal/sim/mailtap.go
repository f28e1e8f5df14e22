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

// Drop implements session.Inflow.
func (t *mailTap) Drop() {
	t.noteBreak()
	t.Inflow.Drop()
}

// Close implements session.Inflow.
func (t *mailTap) Close() {
	t.noteBreak()
	if !t.closed {
		t.closed, t.refused, t.due = true, false, false
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
			if t.refused {
				return true
			}
		}
	}
	return false
}
