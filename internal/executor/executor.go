// SPDX-License-Identifier: Apache-2.0

// Package executor is the target half of sessions: it decides whether a request is a
// duplicate, early or next, runs it on memory, and keeps the answer until the initiator
// has it.
//
// To the engine it is a black box that takes a request frame and returns a verdict and an
// answer, and there may be other such boxes: see engine.Served. It joins two pieces:
// session.Target knows the order of frames and nothing of their contents, and Memory
// knows the contents and nothing of the order.
package executor

import (
	"fmt"

	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/waiting"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// Memory runs the payloads of requests.
type Memory interface {
	// Check checks the records of a request payload, and returns the features that they
	// belong to: if FeatureNotices is among them, they end in a notice. If the reason is
	// not ok, they must not run.
	Check(payload []byte, ops int) (uses wire.Features, reason wire.Reason)
	// Execute runs the records that Check has seen last, in order, and writes the
	// response payload into resp. n and flags are the response's length and header
	// flags; n == 0 without flags means that every record succeeded and none has a
	// result. streak is how many records of the session have succeeded in a row up to
	// now.
	Execute(resp []byte, streak uint32) (n int, flags uint8)
	// Streak returns the streak after the last frame.
	Streak() uint32
	// Notice returns the notice of the last frame, if there is one and the operation that
	// it is about has succeeded.
	Notice() (n wire.Notice, ok bool)
	// Touched returns how many operations of the last frame were applied, that returned
	// what they found, and that did not, and the bytes that each kind reached.
	Touched() (reads, writes, bytesRead, bytesWritten int)
	// Refused describes the first operation of the last frame that failed, if one did.
	Refused() *wire.RefusedOp
	// Present sets the authorization key, by its number, of the sessions whose requests
	// come from now on: see session.Key. At first they have none.
	Present(auth uint32)
	// Foreign reports whether the frame that Check has seen last has an operation on
	// memory which is not here, and an answer of at most so many bytes, whatever fails.
	// Answer is Execute for such a frame, whose operations in memory said has the
	// outcomes of. After either, Leave is called.
	Foreign(room int) bool
	Answer(resp []byte, streak uint32, said wire.Answers) (n int, flags uint8)
	// Serve names the session whose operations may wait, before the execution of a frame
	// that has some; nil if they may not.
	Serve(s waiting.Session)
	// Leave is called when nothing will be executed for a while. Calling it again does
	// nothing.
	Leave()
}

// Executor begins the sessions of one engine, and has the buffers that they share. It
// belongs to the engine's thread.
type Executor struct {
	memory  Memory
	answers *session.Pool // response caches
	holds   *session.Pool // early requests
	parties map[session.Party]*party
	auth    uint32            // what memory was told last
	refused *session.Failures // of the frame at hand; whom it was told about empties it

	sessions map[*Session]struct{} // begun and not released
	response wire.ResponseWriter   // of the frame of messages at hand

	foreign bool // the memory is another program's: see WithMemory
	waiting *int // operations that do: see waits; shared with executors for other memory
}

// party is all initiators at one address, as long as they have sessions.
type party struct {
	sessions       int
	waiting        int // operations
	answers, holds *session.Share
}

// DefaultBuffers is the largest number of buffers if the caller does not choose
// one.
const DefaultBuffers = 8192

// New returns an executor of requests on memory, for an interface of the given MTU in
// bytes. It has at most the given number of buffers for answers, and as many for early
// requests; 0 means DefaultBuffers.
func New(memory Memory, mtu, buffers int) (*Executor, error) {
	if mtu < wire.MinMTU {
		return nil, fmt.Errorf("executor: MTU of %d bytes: want at least %d", mtu, wire.MinMTU)
	}
	if buffers < 0 {
		return nil, fmt.Errorf("executor: %d buffers: want at least 1, or 0 for %d", buffers, DefaultBuffers)
	}
	if buffers == 0 {
		buffers = DefaultBuffers
	}
	payload := mtu - wire.HeaderLen
	return &Executor{
		memory:  memory,
		answers: session.NewPool(payload, buffers),
		holds:   session.NewPool(payload, buffers),
		parties: map[session.Party]*party{}, sessions: map[*Session]struct{}{}, refused: new(session.Failures),
		waiting: new(int),
	}, nil
}

// WithMemory returns an executor of requests on other memory, for the same engine. The
// two share one set of buffers, and a party has one share of them, whatever memory its
// sessions are about. The owner of that memory is another program, which tells nobody
// here of its own changes: what waits for them is looked at now and then.
func (x *Executor) WithMemory(memory Memory) *Executor {
	return &Executor{memory: memory, answers: x.answers, holds: x.holds, parties: x.parties, sessions: x.sessions,
		refused: x.refused, foreign: true, waiting: x.waiting}
}

// Observer learns what a session has applied; see mr.Observer.
type Observer interface {
	Touched(reads, writes, bytesRead, bytesWritten int)
}

// Begin returns the target half of a session that was accepted. The session lasts
// until its Release. The observer may be nil.
func (x *Executor) Begin(now int64, p session.TargetParams, o Observer) *Session {
	room := x.parties[p.Party]
	if room == nil {
		room = &party{answers: session.NewShare(x.answers), holds: session.NewShare(x.holds)}
		x.parties[p.Party] = room
	}
	room.sessions++
	s := &Session{Target: session.NewTarget(room.answers, room.holds, p, now), x: x, party: p.Party, observer: o,
		features: p.Features, places: p.Places, soon: p.Soon, wake: p.Wake, inflow: p.Inflow,
		auth: p.Key.ID(), attendant: p.Attendant, callee: p.Callee}
	x.sessions[s] = struct{}{}
	return s
}

// failed returns what was refused since the last caller emptied it; nil for nothing.
func (x *Executor) failed() *session.Failures {
	if x.refused.Count == 0 && x.refused.NotFound == 0 {
		return nil
	}
	return x.refused
}

// Usage counts what the sessions of an executor hold.
type Usage struct {
	Answers, Holds session.PoolUsage
	Parties        int // with sessions
	Handed         int // frames that are with other programs
	Waiting        int // operations that wait, or whose ends their initiators may not know
}

// Usage returns what the sessions hold.
func (x *Executor) Usage() Usage {
	u := Usage{Answers: x.answers.Usage(), Holds: x.holds.Usage(), Parties: len(x.parties), Waiting: *x.waiting}
	for s := range x.sessions {
		u.Handed += s.ticketed()
	}
	return u
}
