// SPDX-License-Identifier: Apache-2.0

//go:build linux

package resident

import (
	"encoding/binary"
	"math/bits"
	"time"

	"github.com/xdpfab/xdpfab/internal/wire"
)

// losses judges whether the answers that the program sends get to the initiator. A
// driver may drop all of them, as veth does if its other end has no XDP program. The
// program has user space answer a frame that was sent again, so nothing is stuck; but
// each frame then waits for the initiator's timeout first. So after some losses in a
// row user space relays: it sees all frames of the session, and sends all answers. From
// time to time the program may try again.
type losses struct {
	ours    uint64 // bit psn%64: user space has answered it
	acked   uint32 // psn up to which the initiator has answers, when it was last seen
	inRow   int    // frames that were sent again, and not one between them that the program answered
	relays  bool
	retryAt int64 // when the program may send again, if user space relays; engine's time
}

const (
	// lossesInRow is how many losses in a row are no accident.
	lossesInRow = 4
	// retryEvery is the time for which user space relays, in nanoseconds. Each time one
	// answer may be lost.
	retryEvery = int64(10 * time.Second)
)

// arrived records that the initiator has the answers up to ack. If user space has not
// given one of them, the program's gets there.
func (l *losses) arrived(ack uint32) {
	n := wire.Diff(ack, l.acked)
	if n <= 0 {
		return
	}
	set := between(l.acked, ack)
	l.acked = ack
	if n > window || set&^l.ours != 0 {
		l.inRow = 0
	}
	l.ours &^= set
}

// between returns the bits of the psns behind one and up to another.
func between(behind, last uint32) uint64 {
	if n := wire.Diff(last, behind); n < window {
		return bits.RotateLeft64(1<<n-1, int((behind+1)%window))
	}
	return ^uint64(0)
}

// answered records that user space sends an answer: to one frame, to a run of them, or to
// a probe.
func (l *losses) answered(frame []byte) {
	psn, last := binary.LittleEndian.Uint32(frame[10:]), binary.LittleEndian.Uint32(frame[14:])
	switch {
	case frame[0]&0xf != uint8(wire.Ack):
		l.ours |= bit(psn)
	case frame[1]&wire.FlagEcho == 0 && wire.Diff(last, psn) >= 0:
		l.ours |= between(psn-1, last)
	}
}

// again records that a frame was sent again which has run: the program's answer to it is
// lost, or late. If user space has answered it before, that says nothing of the program.
func (s *Session) again(psn uint32) {
	if l := &s.losses; !l.relays && l.ours&bit(psn) == 0 {
		l.inRow++
		s.v.x.lost.Add(1)
	}
}

// judge has user space relay if too many answers are lost, and no longer if the program
// may try again.
func (s *Session) judge() {
	l := &s.losses
	switch now := s.v.now(); {
	case !l.relays && l.inRow >= lossesInRow:
		l.relays, l.retryAt = true, now+retryEvery
		s.v.x.relayed()
	case l.relays && now >= l.retryAt:
		l.relays, l.inRow = false, lossesInRow-1
		l.ours = between(l.acked, s.state.expected()-1)
	default:
		return
	}
	s.attend()
}

// attend tells the program whether user space has to see all frames, and why.
func (s *Session) attend() {
	s.v.c.call(callAttend, uint32(s.p.Local), uint32(s.attended()), nil)
}

// Bits of enum attended.
const (
	attendHolds = 1 << iota
	attendRelays
	attendShown
)

func (s *Session) attended() uint8 {
	why := s.v.attended()
	if s.heldMask != 0 {
		why |= attendHolds
	}
	if s.losses.relays {
		why |= attendRelays
	}
	return why
}

// OnLoss has f called once, by a goroutine of its own, when user space begins to send
// answers in the program's place, as those are lost. It must be called before the first
// session begins.
func (x *Executor) OnLoss(f func()) { x.onLoss = f }

// relayed records that user space relays for another session.
func (x *Executor) relayed() {
	if x.relays.Add(1) == 1 && x.onLoss != nil {
		go x.onLoss()
	}
}
