// SPDX-License-Identifier: Apache-2.0

package session

import (
	"math/bits"

	"github.com/xdpfab/xdpfab/internal/wire"
)

// Ran returns what has run. Once nothing more will, it includes the frames that were
// handed over, or are away: they have run, or will, or ran at most once if they are never
// answered.
func (t *Target) Ran() Ran {
	if (t.handed+t.unanswered > 0 || t.away != 0) && t.Ended() {
		return t.committed()
	}
	return Ran{PSN: t.expected - 1, Early: t.sack(t.ahead)}
}

// sack returns early frames as bits from expected+1 on; that is ack+2 in a header.
func (t *Target) sack(early uint64) uint64 { return rotated(early, t.expected+1) }

// rotated returns frames, which are bits psn%64, as bits from a psn on.
func rotated(frames uint64, from uint32) uint64 {
	return bits.RotateLeft64(frames, -int(from&slotMask))
}

// Acked returns the psn up to which all answers have arrived.
func (t *Target) Acked() uint32 { return t.freed }

// Freeze ends execution: the initiator has begun another session and wants to know
// what became of this one. The initiator has all answers up to ack; the others are
// sent again. Freeze returns what ran. It may be called repeatedly.
func (t *Target) Freeze(now int64, ack uint32) Ran {
	t.free(ack)
	t.waits = false
	if !t.frozen {
		t.frozen, t.heardAt = true, now
	}
	for psn := t.expected + t.handed; t.heldMask&^t.handedMask() != 0; psn++ {
		t.unhold(psn)
	}
	for psn := t.freed + 1; psn != t.expected; psn++ {
		t.toSend |= 1 << (psn & slotMask)
	}
	t.toSend |= t.ahead
	return t.Ran()
}

// Shutdown asks for a reset that tells the initiator which frames never ran. The
// caller must execute nothing from here on.
func (t *Target) Shutdown(reason wire.ResetReason) {
	t.resetDue, t.ended, t.waits = reason, reason, false
}

// Release gives every buffer back. The target must not be used afterwards:
// nothing is due.
func (t *Target) Release() {
	for i := range t.cache {
		t.give(t.cache[i].buf)
		t.holds.Put(t.held[i].buf)
		t.cache[i], t.held[i] = answer{}, early{}
	}
	t.spare = nil // one buffer was made for this session: one goes with it
	t.heldMask, t.ahead, t.away, t.toSend, t.handed = 0, 0, 0, 0, 0
	t.infoDue, t.nakDue, t.echoDue, t.resetDue = false, false, false, 0
}
