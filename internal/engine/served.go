// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// Served is the target half of one session, its executor: it decides whether a request is
// a duplicate, early or next, executes it, and keeps the answer. These belong together,
// since an executor must know what it has executed, whatever happens to others.
// Everything else of a session is the engine's: its place in the table, the pair of
// endpoints, the path to the initiator, and the time of its end.
//
// [Config.Serve] chooses one for each session that is accepted. All methods are called on
// the engine's thread, but their answers may change between calls: an executor outside
// the process may have answered frames that the engine never sees.
type Served interface {
	// Receive takes a frame that names this session and its epoch, runs it if it is the
	// next one, or new in a session without order, and reports the verdict. h and payload
	// are valid during the call. If the answer is all that there is to send, Receive may
	// write it at once, without its seal, into out, which has room for a frame, or is
	// nil.
	//
	// A frame that ends in a notice runs only once there is a place for its event,
	// which TargetParams.Places gives out; until then the initiator sends it again. The
	// outcome has the notices of the frames that ran, exactly once each, in the order
	// in which they ran.
	Receive(now int64, h *wire.Header, payload, out []byte) session.Outcome
	// A frame of messages runs as far as TargetParams.Inflow has room for them. Retry
	// resumes it, once there may be room.
	Retry() session.Outcome
	// Settle is called when a burst in which something ran is over, and the frames due
	// for it are on their way. It may be called after Release.
	Settle()
	// Due reports whether Emit has something to write, and Emit writes the next frame,
	// without its seal, and returns its length, or 0 when none is due. The answers to a
	// burst leave in the order of psn.
	Due() bool
	Emit(b []byte) int
	// Rider returns the ack that is due, and takes it for sent, if an ack is all that is
	// due, and a rider says all of it. It may always return false.
	Rider() (wire.Rider, bool)

	// Ran and Acked return which frames have run, and the psn up to which all answers
	// have arrived.
	Ran() session.Ran
	Acked() uint32
	// HeardAt returns the time at which the initiator last sent something new.
	HeardAt() int64

	// Freeze ends execution for good and returns what Ran does. The initiator has all
	// answers up to ack; the others are due again. It may be called repeatedly.
	Freeze(now int64, ack uint32) session.Ran
	// Shutdown makes a reset due that says which frames never ran. Nothing may run from
	// here on.
	Shutdown(why wire.ResetReason)
	// Release gives back everything that the session holds. Only Settle may be called
	// afterwards.
	Release()
}

// Timed is an executor of operations that wait for a limited time.
type Timed interface {
	// Limit returns when the first of them has waited for too long, or math.MaxInt64;
	// Expire ends those that have, and then does the same. Times are those of Receive.
	Limit() (next int64)
	Expire(now int64) (next int64)
}

// Restless is an executor that has something to do from time to time, whether frames come
// or not.
type Restless interface {
	// Tick is called between two bursts, as often as the timers are looked at.
	Tick(now int64)
}
