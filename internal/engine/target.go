// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"math"

	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// target is an accepted session, as far as the network is concerned: the peer sends
// requests, and served executes them.
type target struct {
	e         *Engine
	s         Served
	events    Events    // nil: the session has no notices
	from      wire.Addr // of the initiator's node, by which it has proved to be reached
	slot                // whose path leads to the source of the last frame that was not late
	pair      *pair     // of endpoints
	party     *party    // whose share of the room it takes
	nonce     uint64    // of its hello
	epoch     uint32
	remote    uint32 // the initiator's session id
	endpoint  uint16
	key       *session.Key // that the initiator has proven; nil for none
	class     wire.Class   // of traffic
	features  wire.Features
	frame     int    // bytes of the longest frame, as its hello was answered
	keep      int64  // nanoseconds of silence until the session is forgotten
	why       string // it ends, once that is known
	listed    bool   // on the engine's dirty list
	unsettled bool   // on the engine's list of those in which something ran
	dying     bool   // is removed once its last frame is sent
	ended     bool   // this side ended it: no frame runs
	waits     bool   // on the engine's list of those whose next message waits for room
	midway    bool   // a message has begun, and lacks what the initiator has to send
	answered  bool   // on the engine's list of those in which calls have ended; under its lock
	sought    bool   // the journal knows of a name that was looked up in vain
	stall     stall
}

func (t *target) place() *slot      { return &t.slot }
func (t *target) due() bool         { return t.s.Due() }
func (t *target) emit(b []byte) int { return t.s.Emit(b) }

func (t *target) clean() {
	t.listed = false
	if t.dying {
		t.remove(t.why)
	}
}

func (t *target) receive(h *wire.Header, payload []byte) bool {
	e := t.e
	if h.Epoch != t.epoch {
		return false
	}
	if t.dying {
		return true
	}
	t.traffic.received(len(e.at.packet))
	if h.Flags&wire.FlagRider != 0 && !t.onRider(h.Rider()) {
		return true
	}
	if h.Flags&wire.FlagPadded != 0 && t.features&wire.FeaturePadding == 0 ||
		h.Flags&wire.FlagDelay != 0 && t.features&wire.FeatureDelays == 0 ||
		h.Flags&wire.FlagEcho != 0 && t.features&wire.FeatureEchoes == 0 ||
		h.Type == wire.Probe && len(payload) > 0 && t.features&wire.FeatureLongProbes == 0 {
		e.count[Invalid]++
		return true
	}
	var buffer, out []byte
	known := t.path.Answers(e.at.packet)
	if known { // otherwise the verdict decides first whether the answer goes there
		if buffer = e.port.Buffer(); buffer != nil {
			out = buffer[t.path.Len():]
		}
	}
	o := t.execute(h, payload, out)
	if !known && fresh(o.Verdict, h) {
		t.follow(e.source())
	}
	if o.Answer > 0 {
		e.transmit(&t.slot, buffer, o.Answer)
		e.sent++
	}
	if h.Flags&wire.FlagMessages != 0 && o.Frames > 0 {
		e.prompt.came, e.messenger = true, t
	}
	return t.came(&o)
}

// came acts on the verdict on a frame.
func (t *target) came(o *session.Outcome) bool {
	e := t.e
	if t.midway = o.Midway && !o.Waits; o.Waits || o.Verdict == session.NoPlace {
		t.stall.since = 0 // the time for which there is no room here does not count
	}
	if o.Frames > 0 {
		e.count[RequestsExecuted] += uint64(o.Frames)
		e.count[OpsExecuted] += uint64(o.Ops)
		t.traffic.Frames += uint64(o.Frames)
		t.traffic.Ops += uint64(o.Ops)
		if !t.unsettled {
			t.unsettled = true
			e.unsettled = append(e.unsettled, t)
		}
		e.awaited = e.awaited || o.Awaited
	}
	if len(o.Notices) > 0 {
		t.deliver(o.Notices)
	}
	if o.Failed != nil {
		t.refused(o.Failed)
	}
	switch o.Verdict {
	case session.Gone:
		t.remove(endedByPeer)
		return true
	case session.Drop, session.Execute:
	default:
		if o.Verdict == session.Duplicate {
			t.traffic.AnswersResent++
		}
		e.count[verdictBase+Counter(o.Verdict)]++
	}
	if o.Refused != wire.ReasonOK {
		e.refuse(o.Refused)
		t.why = "malformed request: " + o.Refused.String()
		t.end(wire.ResetClosed)
	}
	if o.Waits {
		t.wait()
	}
	if o.Delays {
		e.delayed++
	}
	if o.Due {
		e.touch(t, &t.listed)
	}
	return true
}

// settle tells the sessions in which something ran that the burst is over. It must come
// before the calls of other goroutines: an executor may keep regions mapped until then,
// and a call may wait for a region to be free.
func (e *Engine) settle() {
	for _, t := range e.unsettled {
		t.unsettled = false
		t.s.Settle()
	}
	clear(e.unsettled)
	e.unsettled = e.unsettled[:0]
}

// fresh reports whether the initiator may be waiting for an answer to a frame of this
// verdict. Any other frame is a late one.
func fresh(v session.Verdict, h *wire.Header) bool {
	switch v {
	case session.Execute, session.Duplicate, session.Held, session.NoBuffer, session.NoPlace:
		return true
	}
	return h.Type != wire.Ack && v == session.Drop // a probe, or a call that is under way
}

// follow makes the answers go to where a frame came from: the initiator, or a router
// before it, has another address now. The encapsulation stays, so frames still fit. A
// frame that claims to come from this node itself is not followed, unless the initiator
// is on this node.
func (t *target) follow(src *wire.Source) {
	if to := t.e.pathTo(src, t.class); to.Kind() == t.path.Kind() && to.self == t.path.self {
		t.path = to
		t.path.SetFlow(t.remote)
	}
}

func (t *target) tick(int64) int64 {
	if t.e.lived >= t.deadline() {
		t.e.count[SessionsRetired]++
		t.remove(endedSilent)
		return 0
	}
	if r, is := t.s.(Restless); is {
		r.Tick(t.e.lived)
	}
	next := int64(math.MaxInt64)
	if s, is := t.s.(Timed); is {
		if at := s.Expire(t.e.lived); at != math.MaxInt64 {
			next = t.e.now + at - t.e.lived
		}
		t.woken()
	}
	if t.midway {
		return soonest(t.stalled(), next)
	}
	return soonest(0, next) // idleness is checked in the next period
}

// limit returns when, in lived, the next of the operations that wait has waited for too
// long, or math.MaxInt64.
func (t *target) limit() int64 {
	if s, is := t.s.(Timed); is {
		return s.Limit()
	}
	return math.MaxInt64
}

// woken is called when something may be due that no frame has brought about: a parked
// operation has ended.
func (t *target) woken() {
	if t.slot.id != 0 && t.s.Due() {
		t.e.touch(t, &t.listed)
	}
}

// deadline returns when, in lived, the session is forgotten if nothing is heard until
// then.
func (t *target) deadline() int64 { return t.s.HeardAt() + t.keep }

// used reports whether the session has executed something.
func (t *target) used() bool { return t.s.Ran() != session.Ran{PSN: session.FirstPSN(t.epoch) - 1} }

// progress names the session, and says what ran in it.
func (t *target) progress(ran session.Ran) wire.Resume {
	if ran.Torn {
		return wire.Resume{} // as of an unknown session: the initiator takes all for unknown
	}
	return wire.Resume{Session: uint32(t.slot.id), Epoch: t.epoch, PSN: ran.PSN, Early: ran.Early}
}

func (t *target) shutdown() { t.end(wire.ResetShuttingDown) }

// EndTargets ends the accepted sessions of an endpoint that closes: peers learn which of
// their operations never ran. The answers are kept as long as after a silence, in case a
// peer does not receive the farewell. Engine's thread only.
func (e *Engine) EndTargets(endpoint uint16) {
	for _, x := range e.table.snapshot() {
		if t, ok := x.(*target); ok && t.endpoint == endpoint && !t.dying {
			t.finish(wire.ResetClosed)
		}
	}
}

// finish ends a session, and keeps its answers. With ResetUnknownSession the initiator
// begins another one, which it asks about what has run in this one.
func (t *target) finish(why wire.ResetReason) {
	t.ended = true
	t.midway = false
	t.s.Freeze(t.e.lived, t.s.Acked())
	t.s.Shutdown(why)
	t.e.touch(t, &t.listed)
}

// end refuses everything from here on, and tells the initiator which frames
// never ran.
func (t *target) end(why wire.ResetReason) {
	t.dying = true
	t.s.Shutdown(why)
	t.e.touch(t, &t.listed)
}

// remove forgets the session, and tells the journal why. It may stay on the dirty list,
// since nothing is due.
func (t *target) remove(why string) {
	if t.slot.id == 0 {
		return
	}
	t.s.Freeze(t.e.lived, t.s.Acked())
	carried, _ := t.carried()
	t.pair.past.add(&carried)
	t.e.pairs.ended(t.pair, t, t.e.now) // which asks what ran
	t.note(SessionForgotten, why, &carried)
	t.s.Release()
	t.e.leave(t.party)
	t.e.waiters.leave(t)
	if t.e.messenger == t {
		t.e.messenger = nil
	}
	t.e.table.remove(t)
}
