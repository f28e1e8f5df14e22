// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// Executor runs request frames. It is the one piece that touches the memory
// that peers address, and can be replaced as a whole.
type Executor interface {
	// Enter and Exit bracket a burst: regions found in between stay mapped.
	Enter()
	Exit()
	// Execute runs the records of a request payload, in order, and writes the
	// response payload into resp. n and flags are the response's length and
	// header flags; n == 0 without flags means that every record succeeded and
	// none has a result. With another reason than ok, nothing ran.
	Execute(payload []byte, ops int, resp []byte) (n int, flags uint8, reason wire.Reason)
}

// target is an accepted session: the peer asks, this node executes.
type target struct {
	e        *Engine
	s        *session.Target
	slot     slot
	path     path   // to where the last frame came from that was not a late one
	pair     *pair  // of endpoints
	party    *party // at whose cost it has buffers
	nonce    uint64 // of its hello
	endpoint uint16
	listed   bool // on the engine's dirty list
	dying    bool // is removed once its last frame is sent
	used     bool // it has executed something
}

func (t *target) place() *slot { return &t.slot }
func (t *target) link() *path  { return &t.path }
func (t *target) due() bool    { return t.s.Due() }

func (t *target) emit(b []byte) int { return t.s.Emit(b) }

func (t *target) clean() {
	t.listed = false
	if t.dying {
		t.remove()
	}
}

func (t *target) receive(h *wire.Header, payload []byte) bool {
	e := t.e
	if h.Epoch != t.s.Epoch() {
		return false
	}
	if t.dying {
		return true
	}
	v := t.s.Receive(e.lived, h, payload)
	if !t.path.Answers(e.packet) && fresh(v, h) {
		t.follow(e.sourceOf(e.packet))
	}
	switch v {
	case session.Execute:
		t.execute(payload, h.Ops)
	case session.Gone:
		t.remove()
		return true
	case session.Drop:
	default:
		e.count[verdictBase+Counter(v)]++
	}
	t.executeHeld()
	if t.s.Due() {
		e.touch(t, &t.listed)
	}
	return true
}

// fresh reports whether a frame of that verdict is one that the initiator may be
// waiting for an answer to. One that is neither comes out of the past.
func fresh(v session.Verdict, h *wire.Header) bool {
	switch v {
	case session.Execute, session.Duplicate, session.Held, session.NoBuffer:
		return true
	}
	return h.Type == wire.Probe && v == session.Drop
}

// follow makes the answers go to where a frame came from: the initiator, or a router
// before it, has another address now. The encapsulation stays, so frames still fit.
func (t *target) follow(src *wire.Source) {
	if src.Kind == t.path.Kind() {
		t.path = t.e.pathTo(src)
		t.path.SetFlow(t.s.Remote())
	}
}

// execute runs the expected frame. It returns false when that is impossible:
// for want of a buffer the frame will come again; a malformed one, which its
// checksum says was sent so, ends the session.
func (t *target) execute(payload []byte, ops uint8) bool {
	e := t.e
	b := t.s.Buffer()
	if b == nil {
		e.count[verdictBase+Counter(session.NoBuffer)]++
		return false
	}
	n, flags, reason := e.cfg.Executor.Execute(payload, int(ops), b)
	if reason != wire.ReasonOK {
		t.s.Unbuffer(b)
		e.refuse(reason)
		t.end(wire.ResetClosed)
		return false
	}
	t.s.Executed(b, n, ops, flags)
	t.used = true
	e.count[RequestsExecuted]++
	e.count[OpsExecuted] += uint64(ops)
	return true
}

// executeHeld runs the early frames whose turn has come. It is tried with every
// frame that arrives, since a frame may have to wait for an answer buffer too.
func (t *target) executeHeld() {
	for !t.dying {
		payload, ops, ok := t.s.NextHeld()
		if !ok {
			return
		}
		if !t.execute(payload, ops) {
			return
		}
	}
}

func (t *target) tick(int64) int64 {
	if t.s.Idle(t.e.lived) {
		t.e.count[SessionsRetired]++
		t.remove()
	}
	return 0 // idleness is looked for at leisure
}

func (t *target) shutdown() { t.end(wire.ResetShuttingDown) }

// EndTargets ends the accepted sessions of an endpoint that closes: peers learn
// which of their operations never ran. The answers are kept as after a long silence,
// in case a peer does not hear of it now. Engine's thread only.
func (e *Engine) EndTargets(endpoint uint16) {
	for _, x := range e.table.snapshot() {
		if t, ok := x.(*target); ok && t.endpoint == endpoint && !t.dying {
			t.s.Freeze(e.lived, t.s.Acked())
			t.s.Shutdown(wire.ResetClosed)
			e.touch(t, &t.listed)
		}
	}
}

// end refuses everything from here on, and tells the initiator which frames
// never ran.
func (t *target) end(why wire.ResetReason) {
	t.dying = true
	t.s.Shutdown(why)
	t.e.touch(t, &t.listed)
}

// remove forgets the session. On the dirty list it may stay: nothing is due.
func (t *target) remove() {
	if t.slot.id == 0 {
		return
	}
	t.s.Release()
	t.e.leave(t.party)
	t.e.pairs.ended(t.pair, t, t.e.now)
	t.e.table.remove(t)
}
