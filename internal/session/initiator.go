// SPDX-License-Identifier: Apache-2.0

package session

import (
	"math/bits"
	"time"

	"github.com/xdpfab/xdpfab/internal/wire"
)

// State is the state of an initiator.
//
//	            hello-ack                 silence
//	Connecting ───────────▶ Open ──────────────────────▶ Suspended
//	    │ refused,            │ reset, idle, Close            │ a later session's hello-ack
//	    │ silent              ▼                               ▼ tells how far the target got
//	    └─────────────────▶ Closed ◀───────────────────── Settling
//	                                 all known, silence
//
// A reset by which the target says that it does not know the session suspends it as well:
// its next hello-ack, which names its life, tells whether it has restarted.
//
// A closed initiator is done: the engine makes a new one, with a new nonce and so a new
// epoch, for the next operation. A suspended one keeps its requests: when the target can
// be reached again, the hello of the next session names the suspended one, and the target
// says which requests ran and sends its cached answers once more.
type State uint8

// The states of an initiator.
const (
	Connecting State = iota
	Open
	Suspended
	Settling
	Closed
)

var stateNames = [...]string{"connecting", "open", "suspended", "settling", "closed"}

// String returns the name of the state.
func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return "unknown state"
}

// Params names a session that is to begin.
type Params struct {
	Local    wire.SessionID // this side's id, which the target will put in its frames
	Lane     uint8          // the target's lane
	Endpoint uint16         // the target's endpoint number
	MaxFrame int            // largest frame in bytes on the way to this peer
	// Sure is the longest frame that passes on every path, bytes. Longer ones are sent
	// only when one has passed, both ways, if the target has [wire.FeatureLongProbes].
	Sure   int
	Narrow Narrow      // what the session before has found out of the path
	Nonce  uint64      // fresh and random: tells this session from all others
	Origin uint64      // id of the initiating endpoint; random
	Serial uint32      // of this session among those of the origin
	Resume wire.Resume // the suspended session to be settled, if there is one
	// Unordered means that the target may run requests in any order. It does so if both
	// sides have [wire.FeatureUnordered].
	Unordered bool
	Options   wire.Options // the further options of the hello, without the proof
	Key       *Key         // that both endpoints must have; nil for none
}

// request is one frame of the send window.
type request struct {
	buf    []byte // payload, kept until answered
	n      int    // its length in bytes
	ops    uint8
	flags  uint8  // of the frame: FlagMessages or none
	delays bool   // its ack may have been delayed
	sends  uint32 // transmissions so far
	first  uint64 // sendOrder of the first transmission
	last   uint64 // sendOrder of the latest transmission
	sentAt int64  // time of the latest transmission
}

// Initiator is the requesting half of a session.
type Initiator struct {
	cfg   *Config
	pool  Lender // requests in flight
	fits  bool   // pool has small buffers for short ones
	p     Params
	state State
	why   Reason

	life    uint64      // of the target's process; 0 until it has answered
	lasting uint64      // life of what outlives that process, 0 for nothing
	inquest inquest     // whether the process still lives; its resident sessions may outlive it
	remote  uint32      // the target's session id
	resumed wire.Resume // what the target knows of Params.Resume
	lost    bool        // the answers of the resumed session are forgotten
	shared  wire.Features
	epoch   uint32
	cookie  wire.Cookie
	payload int    // largest payload in bytes that both sides accept
	window  uint32 // frames, both sides' limit
	credit  uint32 // frames, as last granted

	proof // whether long frames pass

	una      uint32 // lowest psn without answer
	next     uint32 // psn of the next new frame
	reqs     [MaxWindow]request
	wait     uint64 // bit psn%64: frame in [una, next) without answer
	toSend   uint64 // bit psn%64: frame due for (re)transmission
	kept     uint64 // bit psn%64: the target has the frame, in a session that has calls
	final    Ran    // what has run, and nothing else ever will, when finalSet
	finalSet bool
	settleBy int64 // until when a Settling session asks in any case

	rider wire.Rider // that the next frame carries, if rides
	rides bool

	follows bool   // see Follow
	delays  uint32 // requests sent since the last one whose ack is due at once

	order      uint64 // transmissions so far; orders them
	helloDue   bool
	ackDue     bool
	resetDue   bool
	probeDue   bool
	watched    bool   // probes are sent while nothing else is
	busy       bool   // the target waits for room for a message: probes are sent
	waited     bool   // the current frame says that the target waits, or has waited
	probeAt    int64  // when the next one is due, if watched or busy
	probes     uint32 // sent so far: numbers them
	ticketed   uint32 // frames of tickets, likewise
	echoed     uint32 // the latest of them that the target has answered, if it says which
	conveyed   uint32 // highest ack that the target has been told
	rtt        rttEstimator
	excused    uint // of the rtt's backoff: until the target last said that a message waits
	cc         congestion
	timer      int64 // when the retransmission or hello timer fires; 0 = off
	ackAt      int64 // when a lone ack is due; 0 = none
	heardAt    int64 // when the target last showed that it lives: see shows
	challenges int   // cookies received
	workedAt   int64 // for IdleClose: when a frame was last sent that the target may have heard, not
	// when its answer was read, since that may have lain in the ring for long
	helloAt int64 // when a hello was last sent
	// helloAgain means that the present hello was sent before, so its answer measures no
	// round trip.
	helloAgain bool
	seenAt     int64  // when this side last looked at the clock
	Resent     uint64 // frames sent again; read by statistics
}

// NewInitiator returns a session that begins with a hello on the next Emit. pool lends
// the buffers for requests; the size of its buffers bounds the payload.
func NewInitiator(cfg *Config, pool Lender, p Params, now int64) *Initiator {
	s := &Initiator{cfg: cfg, pool: pool, fits: hasSmall(pool.Size()), p: p, helloDue: true,
		proof: proof{narrow: p.Narrow}, heardAt: now, workedAt: now, seenAt: now}
	s.timer = now + s.rtt.rto(cfg)
	return s
}

// State returns the state and, when it is Closed, the reason.
func (s *Initiator) State() (State, Reason) { return s.state, s.why }

// Life names the life of the target's process; it is 0 until the target has answered.
func (s *Initiator) Life() uint64 { return s.life }

// Lasting names the life of what outlives the target's process, and may go on with the
// session after its death; 0 for nothing.
func (s *Initiator) Lasting() uint64 { return s.lasting }

// Features returns the features that both sides of an open session know.
func (s *Initiator) Features() wire.Features { return s.shared }

// Expired reports whether an open session has been without work for so long that it must
// not be used again: the target may have forgotten it.
func (s *Initiator) Expired(now int64) bool {
	return s.state == Open && s.wait == 0 && !s.watched && now-s.workedAt >= int64(IdleClose)
}

// Doubtful reports whether the target may have forgotten the session, in which frames
// wait for an answer: nothing was sent for so long that a session without work would be
// Expired. Nothing new should go into it until one of the frames is answered.
func (s *Initiator) Doubtful(now int64) bool {
	return s.state == Open && s.wait != 0 && now-s.workedAt >= int64(IdleClose)
}

// attend records that this side is looking at the clock. The time for which it did not,
// because it was stopped, does not count as silence of the target. A method that sets
// heardAt to the present calls attend first, or the next call would move heardAt into the
// future.
func (s *Initiator) attend(now int64) {
	if gap := now - s.seenAt; gap > int64(Stalled) {
		s.heardAt, s.probeAt = s.heardAt+gap, s.probeAt+gap
	}
	s.seenAt = now
}

// Troubled reports whether the target has left a question unanswered for longer than the
// network should take. It is no trouble that a message waits for room.
func (s *Initiator) Troubled() bool { return s.rtt.backoff >= s.excused+2 || s.unheard() }

// Names reports whether a reset that quotes session id and epoch means this session.
// Resets cannot be looked up by id: their sender has lost it.
func (s *Initiator) Names(id, epoch uint32) bool {
	return s.live() && s.remote == id && s.epoch == epoch
}

// Nonce returns the number in its hello that tells the session from all others.
func (s *Initiator) Nonce() uint64 { return s.p.Nonce }

// live reports whether the target can still send frames of this session.
func (s *Initiator) live() bool { return s.state == Open || s.state == Settling }

// RTT returns the smoothed round trip, 0 before the first sample.
func (s *Initiator) RTT() time.Duration { return time.Duration(s.rtt.srtt) }

// HeardAt returns when the target last showed that it lives, or when silence of it began
// to count.
func (s *Initiator) HeardAt() int64 { return s.heardAt }

// InFlight returns the number of frames without answer.
func (s *Initiator) InFlight() int { return bits.OnesCount64(s.wait) }

// Stage lends the payload buffer of the next frame, or nil when the window, the credit,
// the congestion window or the pool is exhausted. Follow with Commit or Unstage.
func (s *Initiator) Stage() []byte {
	if s.state != Open || s.next-s.una >= min(s.window, s.credit) {
		return nil
	}
	if !s.cfg.StaticWindow && bits.OnesCount64(s.wait&^s.kept) >= int(s.cc.frames()) {
		return nil
	}
	b := s.pool.Get()
	if b == nil {
		return nil
	}
	return b[:s.payload]
}

// Unstage gives an unused buffer of Stage back.
func (s *Initiator) Unstage(b []byte) { s.pool.Put(b) }

// Commit makes b, of which n bytes hold ops records, the next request frame and returns
// its psn. b is the buffer of the last Stage. flags is FlagMessages, if the records are
// those of messages, or 0.
func (s *Initiator) Commit(now int64, b []byte, n int, ops, flags uint8) uint32 {
	s.attend(now)
	if s.fits && n <= SmallPayload {
		b = s.pool.Fit(b, n)
	}
	psn := s.next
	s.next++
	s.reqs[psn&slotMask] = request{buf: b, n: n, ops: ops, flags: flags}
	bit := uint64(1) << (psn & slotMask)
	if s.wait == 0 {
		s.heardAt = now // silence counts from the first question
	}
	s.wait |= bit
	s.toSend |= bit
	s.workedAt = now
	return psn
}

// FrameOutcome reports what became of frame psn of a closed session.
func (s *Initiator) FrameOutcome(psn uint32) FrameOutcome {
	r := &s.reqs[psn&slotMask]
	switch {
	case s.wait&(1<<(psn&slotMask)) == 0:
		return Answered
	case r.sends == 0, s.finalSet && !s.final.Has(psn):
		return NeverRan
	case s.why == PeerRestarted:
		return LostToCrash
	}
	return MayHaveRun
}

// Unanswered calls f for every psn without answer, in order. After f returns the frame's
// buffer is given back, so it may be called on a closed session only.
func (s *Initiator) Unanswered(f func(psn uint32, outcome FrameOutcome)) {
	for psn := s.una; psn != s.next; psn++ {
		bit := uint64(1) << (psn & slotMask)
		if s.wait&bit == 0 {
			continue
		}
		f(psn, s.FrameOutcome(psn))
		s.drop(psn)
	}
	s.una, s.toSend = s.next, 0
}

// Identity names an open or suspended session for the hello of a later one.
func (s *Initiator) Identity() wire.Resume {
	return wire.Resume{Session: s.remote, Epoch: s.epoch, PSN: s.acked()}
}

// Resumed returns what the target said of Params.Resume: how far it got, or the zero
// value if it does not know that session. If lost is true, it will not send the answers
// again.
func (s *Initiator) Resumed() (known wire.Resume, lost bool) { return s.resumed, s.lost }

// DropUnsent drops the frames of a suspended session that never left, after calling f for
// each: they never ran.
func (s *Initiator) DropUnsent(f func(psn uint32)) {
	for s.next != s.una && s.reqs[(s.next-1)&slotMask].sends == 0 {
		s.next--
		f(s.next)
		s.drop(s.next)
	}
}

// Watch keeps the session alive by probes also while nothing is in flight, or stops doing
// so.
func (s *Initiator) Watch(now int64, on bool) {
	if on && !s.watched {
		s.attend(now)
		s.heardAt = now
		s.probeAt = now + s.probeEvery()
		s.inquest.at = now
	}
	s.watched = on
}

// Ask makes the target show whether it still knows the session, unless a frame in flight
// does. A target that has restarted does not, and the next session tells what it can do.
func (s *Initiator) Ask() {
	if s.state == Open && s.wait == 0 {
		s.probeDue = true
	}
}

// Settle wakes a suspended session. The target says what ran, and will never run the
// rest: f is called for the frames that will not run. For the others the target sends its
// answers again; when the last has arrived, the session is Closed. It also is if answers
// are missing at the time by, and for a give-up time.
func (s *Initiator) Settle(now, by int64, ran Ran, f func(psn uint32)) {
	s.attend(now)
	s.state, s.heardAt, s.settleBy = Settling, now, by
	s.final, s.finalSet = ran, true
	for psn := s.una; psn != s.next; psn++ {
		if s.Waits(psn) && !ran.Has(psn) {
			f(psn)
			s.drop(psn)
		}
	}
	s.slide()
	s.toSend, s.rtt.backoff = 0, 0
	s.timer = now + s.rtt.rto(s.cfg)
	s.settled()
}

// settled closes a settling session that has nothing left to wait for.
func (s *Initiator) settled() {
	if s.state == Settling && s.wait == 0 {
		s.Close(Settled)
	}
}

// slide moves the lower end of the window up to the oldest request without answer.
func (s *Initiator) slide() {
	for s.una != s.next && s.wait&(1<<(s.una&slotMask)) == 0 {
		s.una++
	}
}

// acked returns the psn up to which the target may forget its answers. The window of a
// session that is being settled may begin behind requests that will never run; the target
// has no answers to these, and nothing can be said of them.
func (s *Initiator) acked() uint32 {
	if s.state == Settling && wire.Diff(s.una-1, s.final.PSN) > 0 {
		return s.final.PSN
	}
	return s.una - 1
}

// drop forgets a request.
func (s *Initiator) drop(psn uint32) {
	bit := uint64(1) << (psn & slotMask)
	s.wait &^= bit
	s.toSend &^= bit
	s.kept &^= bit
	s.pool.Put(s.reqs[psn&slotMask].buf)
	s.reqs[psn&slotMask].buf = nil
}

// Close ends the session from this side. The target is told once, by the reset that the
// next Emit writes.
func (s *Initiator) Close(why Reason) {
	if s.state == Closed {
		return
	}
	s.resetDue = s.state != Connecting && why != PeerRestarted && why != PeerClosed && why != Forgotten
	s.state, s.why = Closed, why
	s.helloDue, s.ackDue, s.probeDue, s.tryDue, s.toSend, s.timer, s.ackAt = false, false, false, false, 0, 0, 0
	s.inquest.due = false
}
