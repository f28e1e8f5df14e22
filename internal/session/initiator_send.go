// SPDX-License-Identifier: Apache-2.0

package session

import (
	"math/bits"
	"time"

	"github.com/xdpfab/xdpfab/internal/wire"
)

// Emit writes the next frame that is due, without its seal, into b and returns its
// length, or 0 when none is due. Call it until it returns 0. b holds at least MaxFrame
// bytes.
func (s *Initiator) Emit(now int64, b []byte) int {
	switch {
	case s.helloDue:
		s.helloDue, s.helloAt = false, now
		return s.emitHello(b)
	case s.toSend != 0:
		return s.emitRequest(now, b)
	case s.probeDue:
		s.probeDue = false
		return s.emitProbe(b, s.proving() && !s.short)
	case s.tryDue:
		s.tryDue = false
		return s.emitProbe(b, true)
	case s.inquest.due:
		s.inquest.due = false
		return s.emitInquest(b)
	case s.ackDue:
		s.ackDue = false
		return s.emitBare(b, wire.Ack, s.next-1)
	case s.resetDue:
		s.resetDue = false
		return s.emitClose(b)
	}
	return 0
}

// Due reports whether Emit has something to write.
func (s *Initiator) Due() bool {
	return s.helloDue || s.toSend != 0 || s.probeDue || s.tryDue || s.inquest.due || s.ackDue || s.resetDue
}

func (s *Initiator) emitHello(b []byte) int {
	return emitHello(b, s.cfg, &s.p, s.cookie, s.asks())
}

// emitHello writes the frame of a hello into b and returns its length.
func emitHello(b []byte, cfg *Config, p *Params, cookie wire.Cookie, features wire.Features) int {
	h := wire.Header{Type: wire.Hello, Session: wire.HelloSession(p.Lane), Lane: p.Local.Lane()}
	h.Put(b)
	m := wire.HelloMsg{
		Nonce: p.Nonce, Session: uint32(p.Local), Endpoint: p.Endpoint,
		MaxFrame: uint16(p.MaxFrame), Window: uint16(cfg.Window), Cookie: cookie,
		Resume: p.Resume, Origin: p.Origin, Serial: p.Serial,
		Keep: uint16(cfg.Keep() / time.Second), Features: features, Options: p.Options,
	}
	m.Options.Proven = p.Key != nil
	n := wire.HeaderLen + m.Put(b[wire.HeaderLen:])
	p.Key.sign(ofHello, &h, b[wire.HeaderLen:n])
	return n
}

// asks returns the features to announce: those that this side knows, and the absence of
// order only if it is wanted.
func (s *Initiator) asks() wire.Features {
	if s.p.Unordered {
		return s.cfg.Features
	}
	return s.cfg.Features &^ wire.FeatureUnordered
}

// header fills the fields that every frame of an open session carries. The ack
// goes out with it, so a pending lone ack is done.
func (s *Initiator) header(t wire.Type) wire.Header {
	s.conveyed, s.ackAt, s.ackDue = s.acked(), 0, false
	return wire.Header{
		Type: t, Session: s.remote, Epoch: s.epoch, Ack: s.conveyed,
		Credit: uint16(s.window), Lane: s.p.Local.Lane(),
	}
}

// emitRequest sends the lowest psn that is due.
func (s *Initiator) emitRequest(now int64, b []byte) int {
	psn := s.una + uint32(bits.TrailingZeros64(bits.RotateLeft64(s.toSend, -int(s.una&slotMask))))
	s.toSend &^= 1 << (psn & slotMask)
	r := &s.reqs[psn&slotMask]
	h := s.header(wire.Request)
	h.PSN, h.Ops, h.Flags = psn, r.ops, r.flags
	if s.rides {
		h.Carry(s.rider)
		s.rides = false
	}
	if r.delays = s.mayDelay(r); r.delays {
		h.Flags |= wire.FlagDelay
	}
	s.order++
	if r.sends > 0 {
		h.Flags |= wire.FlagRetx
		s.Resent++
	} else {
		r.first = s.order
	}
	r.last, r.sentAt = s.order, now
	r.sends++
	if s.timer == 0 {
		s.timer = now + s.rtt.rto(s.cfg)
	}
	h.Put(b)
	return wire.HeaderLen + copy(b[wire.HeaderLen:], r.buf[:r.n])
}

func (s *Initiator) emitBare(b []byte, t wire.Type, psn uint32) int {
	h := s.header(t)
	h.PSN = psn
	if t == wire.Probe && s.shared&wire.FeatureEchoes != 0 {
		h.Flags = wire.FlagEcho
	}
	h.Put(b)
	return wire.HeaderLen
}

func (s *Initiator) emitClose(b []byte) int {
	h := s.header(wire.Reset)
	h.Put(b)
	m := wire.ResetMsg{Session: s.remote, PSN: s.next, Reason: wire.ResetClosed}
	m.Put(b[wire.HeaderLen:])
	return wire.HeaderLen + wire.ResetLen
}

// Deadline returns the time at which Tick has to be called next, or 0 for
// never.
func (s *Initiator) Deadline() int64 {
	d := s.timer
	if s.ackAt != 0 && (d == 0 || s.ackAt < d) {
		d = s.ackAt
	}
	if s.state == Open && (s.watched || s.busy) && (d == 0 || s.probeAt < d) {
		d = s.probeAt
	}
	if s.inquires() && (d == 0 || s.inquest.at < d) {
		d = s.inquest.at
	}
	if d == 0 && s.state == Open {
		d = s.workedAt + int64(IdleClose)
	}
	if at := s.triesAt(); at != 0 && at < d {
		d = at
	}
	return d
}

// Tick lets time pass. It returns Ended when the session has given up or was
// idle for too long, and Nothing otherwise.
func (s *Initiator) Tick(now int64) Event {
	s.attend(now)
	if s.state == Closed || s.state == Suspended {
		return Event{Kind: Nothing}
	}
	if s.ackAt != 0 && now >= s.ackAt {
		s.ackAt = 0
		s.ackDue = s.conveyed != s.acked()
	}
	if s.proving() && now >= s.timer {
		return s.proveAgain(now)
	}
	s.tryAgain(now)
	if s.timer != 0 && now >= s.timer {
		if now-s.heardAt >= int64(s.cfg.GiveUp) {
			return s.giveUp()
		}
		s.onTimeout(now)
	}
	if s.state == Open && s.busy && now >= s.probeAt {
		s.probeDue, s.probeAt = true, now+s.probeEvery() // so that the target does not forget the session
	}
	if s.inquires() && now >= s.inquest.at {
		s.inquest.due, s.inquest.at = true, now+s.probeEvery()
	}
	if s.state != Open || s.wait != 0 {
		return Event{Kind: Nothing}
	}
	switch {
	case s.watched && now >= s.probeAt:
		return s.probe(now)
	case s.Expired(now):
		return s.end(Idle)
	}
	return Event{Kind: Nothing}
}

// probesPerGiveUp is how many probes a watched session sends while the target has
// the time to answer one of them.
const probesPerGiveUp = 8

// probe makes a watched target show that it lives.
func (s *Initiator) probe(now int64) Event {
	if now-s.heardAt >= int64(s.cfg.GiveUp) {
		return s.end(GaveUp)
	}
	s.probeDue, s.probeAt, s.workedAt = true, now+s.probeEvery(), now
	return Event{Kind: Nothing}
}

// probeEvery is the time between two probes. Targets that are short of places let go of
// sessions that show nothing new for longer than mostSilent.
func (s *Initiator) probeEvery() int64 {
	return int64(min(s.cfg.GiveUp/probesPerGiveUp, mostSilent))
}

// mostSilent is the longest time between two probes.
const mostSilent = 10 * time.Second

// giveUp ends the wait for a silent target. What an open session had in flight is
// kept, as it may become known later; so the target is not told to forget it.
func (s *Initiator) giveUp() Event {
	switch s.state {
	case Connecting:
		return s.end(PeerSilent)
	case Settling:
		return s.settleOn()
	}
	return s.suspend(GaveUp)
}

// settleOn asks again as long as the target keeps its answers. The network may have
// failed once more, or passes hellos, but no answer as long as this one.
func (s *Initiator) settleOn() Event {
	now := s.seenAt
	if now >= s.settleBy {
		return s.end(GaveUp)
	}
	s.onTimeout(now)
	s.timer = now + s.rtt.rto(s.cfg)
	return Event{Kind: Nothing}
}

// suspend keeps what is in flight. What became of it is unknown until a later session
// tells.
func (s *Initiator) suspend(why Reason) Event {
	s.state, s.why = Suspended, why
	s.ackDue, s.probeDue, s.tryDue, s.toSend, s.timer, s.ackAt = false, false, false, 0, 0, 0
	s.inquest.due = false
	return Event{Kind: Ended}
}

// onTimeout asks again: hello, or the oldest unanswered request. One frame is
// enough, because the answer's ack and sack tell about all others.
func (s *Initiator) onTimeout(now int64) {
	s.excused = min(s.excused, s.rtt.backoff) // which may have begun again
	s.rtt.backoff++
	s.timer = min(now+s.rtt.rto(s.cfg), max(s.heardAt+int64(s.cfg.GiveUp), now+1))
	if s.state == Connecting {
		s.helloDue, s.helloAgain = true, true
		return
	}
	s.toSend |= 1 << (s.una & slotMask)
	if s.kept != 0 {
		s.askAllKept(now)
	}
	if r := &s.reqs[s.una&slotMask]; !s.hasKept(s.una) && !(r.sends == 1 && s.called(r)) {
		s.cc.timedOut(now)
	}
}

// Unheeded returns how many packets of an open session have asked for an answer that has
// not come: frames, as often as they were sent, and probes.
func (s *Initiator) Unheeded() (packets uint64) {
	for psn := s.una; psn != s.next; psn++ {
		if s.Waits(psn) {
			packets += uint64(s.reqs[psn&slotMask].sends)
		}
	}
	if s.shared&wire.FeatureEchoes != 0 {
		packets += uint64(s.probes - s.echoed)
	}
	return packets
}

// Await is called when an operation begins to wait for the session, and no other does. If
// the session is not open yet, the silence of the target counts from this question on, as
// it does from the first one of an open session: until now the session may have asked for
// the sake of a suspended one alone, for as long as that takes. If the target is slow to
// answer, it is asked again at once.
func (s *Initiator) Await(now int64) {
	if s.state != Connecting {
		return
	}
	s.attend(now)
	s.heardAt = now
	if s.rtt.backoff > 0 {
		s.rtt.backoff, s.timer = 0, now
	}
}

// Hurry makes the initiator ask again at once, because the path to the target
// has changed.
func (s *Initiator) Hurry(now int64) {
	s.rtt.backoff = 0
	if s.narrow.is() { // what is known of lengths is about the former path
		s.tryAnew(now)
	}
	switch {
	case s.proving():
		s.prove(now, s.length)
	case s.timer != 0:
		s.timer = now
	}
}

// Longest returns the length in bytes of the longest request without an answer.
func (s *Initiator) Longest() (longest int) {
	for psn := s.una; psn != s.next; psn++ {
		if s.wait&(1<<(psn&slotMask)) != 0 {
			longest = max(longest, s.reqs[psn&slotMask].n)
		}
	}
	return longest
}
