// SPDX-License-Identifier: Apache-2.0

package session

import (
	"net/netip"

	"github.com/xdpfab/xdpfab/internal/wire"
)

// Verdict describes what becomes of a frame at the target.
type Verdict uint8

// The verdicts.
const (
	Drop        Verdict = iota // nothing to do but to take the frame's ack
	Execute                    // it is the next one, or there is no order: it runs
	Duplicate                  // ran before; the cached answer is due again
	Held                       // early; kept until its turn
	Stale                      // its answer has arrived long ago
	OutOfWindow                // outside the window: refused
	NoBuffer                   // no room to answer or to hold it; it will be resent
	NoPlace                    // no room for its event or its messages; it is kept, or will be resent
	Invalid                    // it contradicts the session
	Gone                       // the initiator closed the session
	NumVerdicts
)

var verdictNames = [NumVerdicts]string{
	"drop", "execute", "duplicate", "held", "stale", "out of window", "no buffer", "no place", "invalid", "gone",
}

func (v Verdict) String() string {
	if v < NumVerdicts {
		return verdictNames[v]
	}
	return "unknown verdict"
}

// Outcome is the effect of a frame, once everything that could run has run.
type Outcome struct {
	Verdict Verdict     // on the frame
	Due     bool        // there is something to be sent
	Delays  bool        // only the ack of this frame is due, and it may wait for those that follow at once
	Waits   bool        // the next frame is kept, and waits for room for a message
	Midway  bool        // a message has begun, and is not whole
	Awaited bool        // operations wait for words of the memory
	Answer  int         // length in bytes of the frame that was written to answer it at once; 0 for none
	Frames  int         // request frames that ran: this one, and early ones whose turn had come
	Ops     int         // records of them
	Refused wire.Reason // if not ok, the payload that should run next is malformed, so the session has to end
	// Failed is what was refused in those frames; nil for nothing. The engine that acts
	// on it empties it.
	Failed *Failures
	// Notices are those of the operations that succeeded, in their order. A place
	// has been taken for each. They are valid until the next call.
	Notices []wire.Notice
}

// answer is the cached response to one psn. A clean answer (every operation
// succeeded, none has a result) has no buffer: the ack is enough.
type answer struct {
	buf   []byte
	n     int
	ops   uint8
	flags uint8
}

// early is a request that arrived before its turn.
type early struct {
	buf   []byte
	n     int
	ops   uint8
	flags uint8
}

// Target is the executing half of a session. In an ordered session, early frames are
// held until their turn; in one without order they run ahead of it. Invariants:
// freed < expected; answers exist for the psns in (freed, expected) and for those that
// ran ahead; frames that are held, or ran ahead, have psns in
// (expected, freed+MaxWindow], and those that are away in [expected, freed+MaxWindow].
type Target struct {
	answers    *Share // response cache
	holds      *Share // early requests
	local      wire.SessionID
	remote     uint32 // the initiator's session id
	lane       uint8  // the initiator's lane
	epoch      uint32
	expected   uint32 // lowest psn that has not run: the next one, if there is order
	turn       uint32 // psn that runs now
	freed      uint32 // answers up to here have arrived at the initiator
	cache      [MaxWindow]answer
	spare      []byte // an answer buffer of the session's own, so that others cannot starve it
	held       [MaxWindow]early
	heldMask   uint64 // bit psn%64
	ahead      uint64 // bit psn%64: ran, though an earlier one has not
	away       uint64 // bit psn%64: a function has yet to answer it: see Callee
	toSend     uint64 // bit psn%64: answer due
	infoDue    bool   // ack and sack are due, in whatever frame
	nakDue     bool   // as infoDue, because a frame is missing
	echo       uint32 // number of a probe that wants it back, if echoDue
	echoDue    bool
	resetDue   wire.ResetReason
	anyOrder   bool             // early frames run, unless they have messages
	ordered    bool             // they did, up to a time: see Order
	messages   bool             // the session may have messages
	waits      bool             // the next frame is here, and cannot run yet: see Keep, Wait
	partly     uint8            // records of it that have run
	handed     uint32           // frames, from expected on, that are handed over: see Hand
	unanswered uint32           // frames behind those that were handed over, and are never answered: see DropHanded
	frozen     bool             // no frame runs; cached answers are still given
	ended      wire.ResetReason // why this side ended the session, if it did
	heardAt    int64            // when a frame last brought something new
	probes     uint32           // number of the latest probe
	asks       uint32           // number of the latest frame of tickets
	echoPad    int              // bytes of zeros in the answer: the most of those answered by it
	payload    int
	credit     uint16
}

// TargetParams names an accepted session, and says what was agreed.
type TargetParams struct {
	Local    wire.SessionID
	Remote   uint32 // the initiator's session id
	Lane     uint8  // the initiator's lane
	Endpoint uint16 // the target's endpoint number
	Epoch    uint32
	MaxFrame int // largest frame in bytes, both ways
	Window   int // frames in flight, 1..MaxWindow
	Features wire.Features
	Kind     wire.Kind  // encapsulation of its packets
	Class    wire.Class // of traffic, that of its answers
	Party    Party
	Places   Places // for events; nil if the session has no notices
	Inflow   Inflow // for messages; nil if the session has none
	// Attendant has operations on other memory than the target's executed; nil for none.
	Attendant Attendant
	Callee    Callee // answers calls; nil if the session has none
	Key       *Key   // that the initiator has proven; nil for none
	// Soon has a function called on the engine's thread, and Wake has the engine look
	// whether something is due. Any thread may call them, with any locks held.
	Soon func(f func())
	Wake func()
	// Memo returns what another process must know to continue the session and its
	// executor does not know. It may be nil.
	Memo func() []byte
}

// Party names all initiators at one source address: the shared room that one of them
// takes is taken from the others of its party first.
type Party struct {
	MAC wire.MAC   // on its own segment
	IP  netip.Addr // with UDP, where the MAC address is a router's
}

// NewTarget returns the executing half of a session.
func NewTarget(answers, holds *Share, p TargetParams, now int64) *Target {
	first := FirstPSN(p.Epoch)
	return &Target{
		answers: answers, holds: holds,
		local: p.Local, remote: p.Remote, lane: p.Lane, epoch: p.Epoch,
		expected: first, turn: first, freed: first - 1, heardAt: now,
		anyOrder: p.Features&wire.FeatureUnordered != 0,
		messages: p.Inflow != nil,
		payload:  min(p.MaxFrame-wire.HeaderLen, answers.Size(), holds.Size()),
		spare:    answers.pool.Smallest(),
		credit:   uint16(p.Window),
	}
}

// HeardAt returns when the initiator last sent something new. Frames that were
// received before do not count, even if another node sends them again.
func (t *Target) HeardAt() int64 { return t.heardAt }

// Receive takes a frame that names this session; the caller has checked CRC and
// epoch. After Execute the caller must run the payload and call Executed, and
// then drain NextHeld in the same way.
func (t *Target) Receive(now int64, h *wire.Header, payload []byte) Verdict {
	if h.Type == wire.Reset { // whatever it acknowledges
		return t.onReset(payload)
	}
	switch h.Type {
	case wire.Request, wire.Probe, wire.Ack:
	default: // only a target sends it, perhaps this one: the ack in it is of requests
		return Invalid
	}
	freed, early := t.freed, t.heldMask
	if !t.free(h.Ack) {
		return Invalid
	}
	if t.freed != freed {
		t.heardAt = now
	}
	if h.Type == wire.Request || h.Type == wire.Probe {
		t.resetDue = t.ended // the initiator has not heard of it
	}
	switch h.Type {
	case wire.Request:
		v := t.onRequest(h, payload)
		if v == Execute && !t.waits || t.heldMask != early { // a frame that waits has come before
			t.heardAt = now
		}
		return v
	case wire.Probe:
		if wire.Diff(h.PSN, t.probes) > 0 { // not a replay of a captured one
			t.probes, t.heardAt = h.PSN, now
		}
		t.infoDue = true
		if h.Flags&wire.FlagEcho != 0 && (!t.echoDue || wire.Diff(h.PSN, t.echo) > 0) {
			t.echo, t.echoDue, t.echoPad = h.PSN, true, max(t.echoPad, min(len(payload), t.payload))
		}
	}
	return Drop
}

func (t *Target) onReset(payload []byte) Verdict {
	var r wire.ResetMsg
	if r.Parse(payload) == wire.ReasonOK && r.Session == uint32(t.local) {
		return Gone
	}
	return Invalid
}

func (t *Target) onRequest(h *wire.Header, payload []byte) Verdict {
	bit := uint64(1) << (h.PSN & slotMask)
	switch d := wire.Diff(h.PSN, t.expected); {
	case wire.Diff(h.PSN, t.freed) > MaxWindow, len(payload) > t.payload:
		return OutOfWindow
	case h.Flags&wire.FlagMessages != 0 && !t.messages:
		return Invalid
	case wire.Diff(h.PSN, t.freed) <= 0: // though it may be ahead of expected, if it is 2^31 away
		return Stale
	case d > 0 && t.ahead&bit != 0:
		t.toSend |= bit
		return Duplicate
	case d >= 0 && t.away&bit != 0:
		t.infoDue = true
		return NoPlace
	case d >= 0 && t.frozen:
		return Stale
	case d == 0 && t.Kept(): // it is tried when there is room
		t.infoDue = true
		return NoPlace
	case d == 0:
		t.turn, t.infoDue = h.PSN, t.infoDue || t.waits
		return Execute
	case d > 0:
		return t.early(h, payload, bit)
	}
	t.toSend |= bit
	t.infoDue = true // so that the ack does not ride
	return Duplicate
}

// early takes a frame before which one is missing.
func (t *Target) early(h *wire.Header, payload []byte, bit uint64) Verdict {
	t.nakDue = t.handed == 0 && t.away == 0 || t.gap(h.PSN)
	if t.anyOrder && h.Flags&wire.FlagMessages == 0 && t.heldMask&bit == 0 {
		t.turn = h.PSN
		return Execute
	}
	if t.heldMask&bit != 0 {
		t.infoDue = t.infoDue || t.handed > 0 // the initiator may take it for lost
	} else if !t.hold(h.PSN, payload, h.Ops, h.Flags) {
		return NoBuffer
	}
	return Held
}

// hold keeps a frame until it can run, if there is a buffer for it.
func (t *Target) hold(psn uint32, payload []byte, ops, flags uint8) bool {
	b := t.holds.GetFor(len(payload))
	if b == nil {
		return false
	}
	t.held[psn&slotMask] = early{buf: b, n: copy(b, payload), ops: ops, flags: flags}
	t.heldMask |= 1 << (psn & slotMask)
	return true
}

// free forgets the answers up to ack, which arrived. It returns false when
// ack names a frame that has not been executed. An ack from the past changes
// nothing.
func (t *Target) free(ack uint32) bool {
	if wire.Diff(ack, t.expected) >= 0 {
		return false
	}
	for wire.Diff(ack, t.freed) > 0 {
		t.freed++
		a := &t.cache[t.freed&slotMask]
		t.give(a.buf)
		*a = answer{}
		t.toSend &^= 1 << (t.freed & slotMask)
	}
	return true
}

// Buffer lends the payload buffer for the answer to the frame about to run, or
// nil when the pool is exhausted: then the frame must not run. Pass it to
// Executed. The session's own buffer is kept for the frame that others wait for: the
// answer to any other cannot be freed before that one has run.
func (t *Target) Buffer() []byte {
	b := t.answers.Get()
	if b == nil && t.turn == t.expected {
		b, t.spare = t.answers.pool.Full(t.spare), nil
	}
	if b == nil {
		t.waits = t.waits && t.turn != t.expected // for a buffer now: it is tried with every frame that comes
		return nil
	}
	return b[:t.payload]
}

// Unbuffer gives an unused buffer of Buffer back.
func (t *Target) Unbuffer(b []byte) { t.give(b) }

// give takes an answer buffer back; the session keeps the first as its spare
// one.
func (t *Target) give(b []byte) {
	if t.spare == nil && b != nil {
		t.spare = b[:cap(b)]
		return
	}
	t.answers.Put(b)
}

// Executed records that the frame whose turn it was, of ops records, has run, with n
// bytes of answer in b. With n == 0 and no flags the answer is clean.
func (t *Target) Executed(b []byte, n int, ops, flags uint8) {
	a := &t.cache[t.turn&slotMask]
	if n == 0 && flags == 0 {
		t.give(b)
		*a = answer{ops: ops}
	} else {
		*a = answer{buf: t.answers.Fit(b, n), n: n, ops: ops, flags: flags}
	}
	t.toSend |= 1 << (t.turn & slotMask)
	if t.turn != t.expected {
		t.ahead |= 1 << (t.turn & slotMask)
		return
	}
	t.unhold(t.expected) // it, or a second copy of it, may have come early
	if t.waits = false; t.handed > 0 {
		t.answered()
	}
	t.expected++
	for t.ahead&(1<<(t.expected&slotMask)) != 0 {
		t.ahead &^= 1 << (t.expected & slotMask)
		t.expected++
	}
}

// Holds reports whether early frames are held.
func (t *Target) Holds() bool { return t.heldMask != 0 }

// NextHeld returns the payload of the held frame whose turn has come, the number of its
// records and its flags, or false. The view is valid until Executed.
func (t *Target) NextHeld() (payload []byte, ops, flags uint8, ok bool) {
	next := t.expected + t.handed
	if t.heldMask&(1<<(next&slotMask)) == 0 {
		return nil, 0, 0, false
	}
	t.turn = next
	e := &t.held[next&slotMask]
	return e.buf[:e.n], e.ops, e.flags, true
}

// unhold gives back the buffer of frame psn, if the frame is held.
func (t *Target) unhold(psn uint32) {
	e := &t.held[psn&slotMask]
	t.holds.Put(e.buf)
	*e = early{}
	t.heldMask &^= 1 << (psn & slotMask)
}
