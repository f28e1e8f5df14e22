// SPDX-License-Identifier: Apache-2.0

package session

import "github.com/xdpfab/xdpfab/internal/wire"

// A call is a frame that a function of the target's owner answers, on another thread: see
// Callee. Until the answer comes the frame is *away*: it is neither kept nor answered nor
// asked for again, and copies of it change nothing. In a session without order the frames
// behind it go on meanwhile, as far as the window reaches; in one with order they wait.

// Callee has the calls of one session answered.
type Callee interface {
	// Ask takes a copy of a request. Any status but OK means that the function will never
	// have it.
	Ask(psn uint32, c *wire.Call) wire.Status
	// Answered returns a call that has ended, until Drop: the reply of the function, or
	// the status of a request that the function never had.
	Answered() (psn uint32, r *wire.Reply, s wire.Status, ok bool)
	Drop()
	// Recall ends the requests that the function does not have yet: it never will.
	Recall()
	// Close is called when the session is released: replies have no receiver from now on.
	Close()
}

// MobileCallee is a Callee of a session that another process can go on with.
type MobileCallee interface {
	Callee
	// State names the session among those of the owner. Restore makes a new callee that
	// of the name, and returns which requests that one had that have not ended, bit
	// psn%64.
	State() uint64
	Restore(state uint64) (asked uint64)
	// Detach is Close for a session that continues elsewhere.
	Detach()
}

// Send records that the current frame is away. If it came early, it is kept no longer.
func (t *Target) Send() {
	t.away |= 1 << (t.turn & slotMask)
	if t.heldMask&(1<<(t.turn&slotMask)) != 0 {
		t.unhold(t.turn)
	}
}

// Return makes a frame that is away the current one, which is answered next.
func (t *Target) Return(psn uint32) {
	t.turn = psn
	t.away &^= 1 << (psn & slotMask)
}

// Away returns which frames are away, bit psn%64.
func (t *Target) Away() uint64 { return t.away }

// busy reports whether the next frame is here, and will be answered later.
func (t *Target) busy() bool { return t.waits || t.away&(1<<(t.expected&slotMask)) != 0 }
