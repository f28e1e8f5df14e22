// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"net/netip"

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
	path     path
	key      nonceKey
	endpoint uint16
	listed   bool // on the engine's dirty list
	dying    bool // is removed once its last frame is sent
}

// nonceKey finds the session that a repeated hello belongs to.
type nonceKey struct {
	nonce uint64
	from  wire.Source
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

// onHello answers a request for a session. No state is made before the
// initiator has shown, with a cookie, that it receives at its address.
func (e *Engine) onHello(h *wire.Header, payload []byte, src *wire.Source) {
	var m wire.HelloMsg
	if m.Parse(payload) != wire.ReasonOK || int(m.MaxFrame) < session.MinFrame || m.Window == 0 {
		e.count[Invalid]++
		return
	}
	e.count[Hellos]++
	ack := wire.HelloAckMsg{Status: e.admit(m.Endpoint)}
	epoch := uint32(0)
	if ack.Status == wire.HelloAccepted {
		var from [64]byte
		if proof := sourceBytes(from[:0], src); !e.door.Proven(e.now, &m, proof) {
			ack.Status, ack.Cookie = wire.HelloChallenge, e.door.Cookie(e.now, &m, proof)
		} else if t := e.accept(h, &m, src); t == nil {
			ack.Status = wire.HelloFull
		} else {
			epoch = t.s.Epoch()
			ack.Session = uint32(t.slot.id)
			ack.MaxFrame = uint16(min(e.maxFrame(&t.path), int(m.MaxFrame)))
			ack.Window = uint16(min(e.cfg.Session.Window, int(m.Window)))
			ack.Resume = e.freeze(&m.Resume, src)
		}
	}
	e.reply(e.pathTo(src), func(b []byte) int {
		return session.Reply(b, &m, e.cfg.Lane, epoch, ack)
	})
}

// admit decides on an endpoint number.
func (e *Engine) admit(endpoint uint16) wire.HelloStatus {
	switch {
	case e.closing:
		return wire.HelloShuttingDown
	case e.cfg.Executor == nil || e.cfg.Accept == nil:
		return wire.HelloNoEndpoint
	}
	return e.cfg.Accept(endpoint)
}

// accept returns the session for a proven hello: the existing one when the
// hello is a repetition, else a new one, or nil when the table is full.
func (e *Engine) accept(h *wire.Header, m *wire.HelloMsg, src *wire.Source) *target {
	key := nonceKey{m.Nonce, *src}
	if t := e.nonces[key]; t != nil {
		return t
	}
	t := &target{e: e, key: key, endpoint: m.Endpoint, path: e.pathTo(src)}
	if e.accepted >= e.cfg.Sessions-e.cfg.Sessions/8 || !e.table.add(t) { // the rest is for sessions of our own
		return nil
	}
	e.accepted++
	epoch := uint32(e.cfg.Random())
	t.path.SetFlow(m.Session)
	t.s = session.NewTarget(&e.cfg.Session, e.answers, e.holds, session.TargetParams{
		Local: t.slot.id, Hello: *m, MaxFrame: e.maxFrame(&t.path), Lane: h.Lane, Epoch: epoch,
	}, e.now)
	e.nonces[key] = t
	e.count[SessionsAccepted]++
	return t
}

// freeze ends execution in an earlier session of the same initiator, which wants
// to know what became of it, and has its unacknowledged answers sent again. It
// returns the zero value when there is no such session.
func (e *Engine) freeze(r *wire.Resume, src *wire.Source) wire.Resume {
	t, ok := e.table.find(wire.SessionID(r.Session)).(*target)
	if !ok || t.dying || t.s.Epoch() != r.Epoch || t.key.from != *src {
		return wire.Resume{}
	}
	executed := t.s.Freeze(e.now, r.PSN)
	e.touch(t, &t.listed)
	return wire.Resume{Session: r.Session, Epoch: r.Epoch, PSN: executed}
}

func (t *target) receive(h *wire.Header, payload []byte) bool {
	e := t.e
	if h.Epoch != t.s.Epoch() {
		return false
	}
	if t.dying {
		return true
	}
	switch v := t.s.Receive(e.now, h, payload); v {
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

func (t *target) tick(now int64) int64 {
	if t.s.Idle(now) {
		t.e.count[SessionsRetired]++
		t.remove()
	}
	return 0 // idleness is looked for at leisure
}

func (t *target) shutdown() { t.end(wire.ResetShuttingDown) }

// EndTargets ends the accepted sessions of an endpoint that closes: peers learn
// which of their operations never ran. Engine's thread only.
func (e *Engine) EndTargets(endpoint uint16) {
	for _, x := range e.table.snapshot() {
		if t, ok := x.(*target); ok && t.endpoint == endpoint && !t.dying {
			t.end(wire.ResetClosed)
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
	t.e.accepted--
	delete(t.e.nonces, t.key)
	t.e.table.remove(t)
}

// sourceBytes appends what identifies where a packet came from.
func sourceBytes(b []byte, src *wire.Source) []byte {
	b = append(b, byte(src.Kind), byte(src.VLAN), byte(src.VLAN>>8))
	b = append(b, src.Remote[:]...)
	if src.RemoteIP != (netip.Addr{}) {
		ip := src.RemoteIP.As16()
		b = append(b, ip[:]...)
	}
	return b
}
