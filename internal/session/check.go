// SPDX-License-Identifier: Apache-2.0

package session

import (
	"fmt"
	"math/bits"

	"github.com/xdpfab/xdpfab/internal/wire"
)

// Check reports contradictions in the state of the target, for tests: nil unless
// there is a bug.
func (t *Target) Check() error {
	if n := wire.Diff(t.expected-1, t.freed); n < 0 || n > MaxWindow {
		return fmt.Errorf("target: %d frames that ran have answers under way, want 0..%d", n, MaxWindow)
	}
	if bad := t.ahead &^ window(t.expected+1, t.freed+MaxWindow+1); bad != 0 {
		return fmt.Errorf("target: frames %#x that ran ahead are outside the window", bad)
	}
	ranAhead := t.anyOrder || t.ordered
	if t.heldMask != 0 && t.anyOrder && !t.messages || t.ahead != 0 && !ranAhead || t.ahead&t.heldMask != 0 {
		return fmt.Errorf("target: frames %#x are held, and %#x ran ahead; without order: %t; with messages: %t",
			t.heldMask, t.ahead, t.anyOrder, t.messages)
	}
	cached := window(t.freed+1, t.expected) | t.ahead
	if bad := t.toSend &^ cached; bad != 0 {
		return fmt.Errorf("target: answers to frames %#x are due, but the cache has answers to frames %#x only",
			t.toSend, cached)
	}
	if bad := t.heldMask &^ window(t.expected, t.freed+MaxWindow+1); bad != 0 {
		return fmt.Errorf("target: early frames %#x are outside the window", bad)
	}
	if t.handed > mostHanded || t.handedMask()&^t.heldMask != 0 {
		return fmt.Errorf("target: frames %#x are handed over, but only frames %#x are kept", t.handedMask(),
			t.heldMask)
	}
	outside := t.away &^ window(t.expected, t.freed+MaxWindow+1)
	if outside|t.away&(t.ahead|t.heldMask|t.toSend) != 0 {
		return fmt.Errorf("target: frames %#x are away: outside the window, or frames %#x ran ahead and %#x are held",
			t.away, t.ahead, t.heldMask)
	}
	if t.frozen && t.heldMask != t.handedMask() {
		return fmt.Errorf("target: early frames %#x are held, though no more frames will run", t.heldMask)
	}
	for i := range t.cache {
		bit := uint64(1) << i
		if t.cache[i].buf != nil && cached&bit == 0 {
			return fmt.Errorf("target: slot %d has an answer, but belongs to no frame", i)
		}
		if held := t.heldMask&bit != 0; held != (t.held[i].buf != nil) {
			return fmt.Errorf("target: slot %d: an early frame is marked as held: %t; there is a buffer for it: %t", i,
				held, !held)
		}
	}
	return nil
}

// Holdings returns how many buffers the session has borrowed for answers and for early
// frames.
func (t *Target) Holdings() (answers, holds int) {
	answers = -1 // one is the session's own
	if t.spare != nil {
		answers = 0
	}
	for i := range t.cache {
		if t.cache[i].buf != nil {
			answers++
		}
	}
	return answers, bits.OnesCount64(t.heldMask)
}

// Check reports contradictions in the state of the initiator, for tests: nil unless
// there is a bug.
func (s *Initiator) Check() error {
	if n := wire.Diff(s.next, s.una); n < 0 || n > MaxWindow {
		return fmt.Errorf("initiator: %d frames from the oldest unanswered one to the next: want 0..%d", n, MaxWindow)
	}
	sent := window(s.una, s.next)
	switch {
	case s.wait&^sent != 0:
		return fmt.Errorf("initiator: frames %#x wait for an answer, but only %#x are in the window", s.wait, sent)
	case s.una != s.next && s.wait&(1<<(s.una&slotMask)) == 0:
		return fmt.Errorf("initiator: the frame at the lower end of the window is answered, want it to wait")
	case s.toSend&^s.wait != 0:
		return fmt.Errorf("initiator: frames %#x are due, but only %#x wait for an answer", s.toSend, s.wait)
	case s.state == Open && s.wait&^s.toSend != 0 && s.timer == 0:
		return fmt.Errorf("initiator: frames %#x wait for an answer without a timer", s.wait)
	}
	for i := range s.reqs {
		if waits := s.wait&(1<<i) != 0; waits != (s.reqs[i].buf != nil) {
			return fmt.Errorf("initiator: slot %d: a frame is marked as waiting: %t; there is a buffer for it: %t", i,
				waits, !waits)
		}
	}
	return nil
}

// window returns the bits of the psns from first up to, but not including, end.
func window(first, end uint32) uint64 {
	n := int(wire.Diff(end, first))
	if n <= 0 {
		return 0
	}
	return bits.RotateLeft64(^uint64(0)>>(64-min(n, 64)), int(first&slotMask))
}
