// SPDX-License-Identifier: Apache-2.0

package session

import "github.com/xdpfab/xdpfab/internal/wire"

// Keep keeps the frame whose turn it is, of ops records of messages of which the first
// ran have run, until there is room for the next one of them, and tells the initiator
// unless it knows. If there is no buffer to keep it in, it will come again.
func (t *Target) Keep(payload []byte, ops, ran uint8) {
	t.infoDue = t.infoDue || !t.waits || t.partly != ran
	t.waits, t.partly = true, ran
	if t.heldMask&(1<<(t.turn&slotMask)) == 0 {
		t.hold(t.turn, payload, ops, wire.FlagMessages)
	}
}

// Wait is called when the current frame waits for a place for its event. The initiator is
// told that it waits, if it is its turn and the initiator knows that this may be said of
// it, and otherwise that the target lives. It is not kept, and will come again.
func (t *Target) Wait(told bool) {
	t.infoDue = true
	if t.Ahead() || !told {
		return
	}
	t.waits, t.partly = true, 0
	if t.heldMask&(1<<(t.turn&slotMask)) != 0 {
		t.unhold(t.turn)
	}
}

// Turn records that the frame that waits for its turn, or for its answer, is the one at
// hand.
func (t *Target) Turn() { t.turn = t.expected }

// Ahead reports whether the current frame runs ahead of its turn.
func (t *Target) Ahead() bool { return t.turn != t.expected }

// Kept reports whether the next frame is kept until there is room for a message, or was
// handed over. It is tried when there is room, and not with every frame that comes, so
// that the sessions that wait get the room in turn.
func (t *Target) Kept() bool {
	return (t.waits || t.handed > 0) && t.heldMask&(1<<(t.expected&slotMask)) != 0
}
