// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// Served is the target half of one session: what decides whether a request is a
// duplicate, early or next, executes it, and remembers the answer. These belong
// together, since whoever executes must know, whatever happens to anybody else, what it
// has executed. Everything else of a session is the engine's: its place in the table,
// the pair of endpoints, the way to the initiator, and when the session is to end.
//
// [Config.Serve] chooses one for each session that is accepted. All methods are called
// on the engine's thread, but what they tell may change by itself: an executor outside
// the process may have answered frames that the engine never sees.
type Served interface {
	// Receive takes a frame that names this session and its epoch, runs it if it is its
	// turn, and tells what came of it. h and payload are valid during the call. If the
	// answer is all that there is to send, it may be written into out at once, which has
	// room for a frame, or is nil.
	Receive(now int64, h *wire.Header, payload, out []byte) session.Outcome
	// Settle is called when a burst is over in which something ran, and what was to be
	// sent for it is on its way. It may come after Release.
	Settle()
	// Due reports whether Emit has something to write, and Emit writes the next frame
	// and returns its length, or 0 when none is due. Answers leave in the order of psn.
	Due() bool
	Emit(b []byte) int

	// Ran and Acked return the psn up to which everything has run, and the one up to
	// which all answers have arrived.
	Ran() uint32
	Acked() uint32
	// HeardAt returns when the initiator last said something new.
	HeardAt() int64

	// Freeze ends execution for good and returns what Ran does. The initiator has all
	// answers up to ack; the others are due again. It may be called repeatedly.
	Freeze(now int64, ack uint32) (ran uint32)
	// Shutdown makes a reset due that says which frames never ran. Nothing may run from
	// here on.
	Shutdown(why wire.ResetReason)
	// Release gives back all that the session has. Only Settle may be called afterwards.
	Release()
}
