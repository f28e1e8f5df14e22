// SPDX-License-Identifier: Apache-2.0

package session

import (
	"math/bits"

	"github.com/xdpfab/xdpfab/internal/wire"
)

// A frame about memory that the target cannot reach is handed over to the program that
// can: see Attendant. Until the answer comes, the frame is kept, so that a copy of it is
// neither handed over again nor answered, and the session waits, as for room for a
// message. Up to mostHanded frames are handed over at a time, the oldest first, and
// answered in that order; they are those from expected on. Any other frame waits until
// all of them have been answered.

// mostHanded bounds what one session can make an attendant keep, and what it needs so
// that the way there and back is filled with frames.
const mostHanded = 8

// Attendant hands frames of one session to the owner of memory that the target cannot
// reach, which executes them and answers.
type Attendant interface {
	// Attends reports whether the owner executes anything at present.
	Attends() bool
	// Alone reports whether everything has been answered that was handed over for former
	// sessions of the same pair: what the target executes itself must not come before.
	Alone() bool
	// Hand hands the operations of a frame over, and reports whether there was room for
	// them. The payload was checked.
	Hand(psn uint32, payload []byte, ops int) bool
	// Answered reports whether the oldest frame that was handed over, and not taken, has
	// been answered. If so, Next returns status and result of its operations in memory,
	// one after the other, and Take forgets the frame.
	Answered() bool
	Next() (wire.Status, []byte)
	Take()
	// Gone reports whether the owner has ended: nothing will be answered any more.
	Gone() bool
	// Close is called when the session is released: answers have no receiver from now on.
	Close()
}

// MobileAttendant is an Attendant of a session that another process can go on with.
type MobileAttendant interface {
	Attendant
	// State names the session among those of the owner. Restore makes a new attendant
	// that of the name, and returns how many frames that one had handed over which were
	// not taken.
	State() uint64
	Restore(state uint64) (frames int)
	// Detach is Close for a session that continues elsewhere.
	Detach()
}

// Order makes a session without order keep it from now on: the owner of memory executes
// frames in the order in which it gets them.
func (t *Target) Order() { t.anyOrder, t.ordered = false, t.ordered || t.anyOrder }

// Handed is how many frames have been handed over, and not answered.
func (t *Target) Handed() int { return int(t.handed) }

// MayHand reports whether another frame may be handed over.
func (t *Target) MayHand() bool { return t.handed < mostHanded && !t.Ended() }

// Await keeps the current frame until it can be handed over, or has its turn. It returns
// false if there is no buffer for that: then the frame will come again.
func (t *Target) Await(payload []byte, ops, flags uint8) (kept bool) {
	if !t.Ahead() {
		t.waits, t.partly = true, 0
	}
	if t.heldMask&(1<<(t.turn&slotMask)) != 0 || t.hold(t.turn, payload, ops, flags) {
		return true
	}
	return !t.Ahead() && t.dropLast() && t.hold(t.turn, payload, ops, flags)
}

// dropLast drops the early frame with the highest psn, which will come again, and reports
// whether there was one: the frame before it needs the buffer, and early frames could
// have all buffers that there are.
func (t *Target) dropLast() bool {
	if t.heldMask == 0 {
		return false
	}
	early := rotated(t.heldMask, t.expected)
	t.unhold(t.expected + uint32(bits.Len64(early)-1))
	return true
}

// Hand records that the current frame, which is kept, has been handed over. It is the
// first one that was not.
func (t *Target) Hand() { t.handed++ }

// PSN is that of the current frame.
func (t *Target) PSN() uint32 { return t.turn }

// HandedOver returns the payload of the oldest frame that is handed over, and the number
// of its records. It is the current frame from now on.
func (t *Target) HandedOver() (payload []byte, ops uint8) {
	t.Turn()
	_, payload, ops = t.Frame(0)
	return payload, ops
}

// Frame returns frame number i of those that are handed over.
func (t *Target) Frame(i int) (psn uint32, payload []byte, ops uint8) {
	psn = t.expected + uint32(i)
	e := &t.held[psn&slotMask]
	return psn, e.buf[:e.n], e.ops
}

// answered records that the oldest frame that was handed over has been answered.
func (t *Target) answered() {
	t.handed--
	t.waits = t.handed > 0 && !t.Ended()
}

// DropHanded is called when the session has ended, and nothing that was handed over will
// be answered: the frames have run or not, which stays unknown, and other sessions need
// their buffers.
func (t *Target) DropHanded() {
	for i := range t.handed {
		t.unhold(t.expected + i)
	}
	t.unanswered, t.handed = t.unanswered+t.handed, 0
}

// handedMask is the frames that are handed over, bit psn%64.
func (t *Target) handedMask() uint64 { return window(t.expected, t.expected+t.handed) }

// gap reports whether a frame is missing among those that have come early, psn included.
func (t *Target) gap(psn uint32) bool {
	came := t.heldMask | t.ahead | t.away | 1<<(psn&slotMask)
	came = rotated(came, t.expected)
	return came&(came+1) != 0
}

// committed is Ran of a session that executes nothing, and has frames that are handed
// over, or away.
func (t *Target) committed() Ran {
	psn, ran := t.expected-1+t.handed+t.unanswered, t.ahead|t.away
	for wire.Diff(psn, t.freed) < MaxWindow && ran&(1<<((psn+1)&slotMask)) != 0 {
		psn++
	}
	return Ran{PSN: psn, Early: rotated(ran&^window(t.expected, psn+1), psn+2)}
}
