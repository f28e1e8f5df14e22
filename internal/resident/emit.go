// SPDX-License-Identifier: Apache-2.0

//go:build linux

package resident

import (
	"math/bits"

	"github.com/xdpfab/xdpfab/internal/wire"
)

// Due reports whether Emit has something to write.
func (s *Session) Due() bool {
	return s.toSend != 0 || s.infoDue || s.nakDue || s.echoDue || s.resetDue != 0
}

// Emit writes the next frame that is due, without its seal, into b and returns its
// length, or 0 when none is due. Answers leave in the order of psn.
func (s *Session) Emit(b []byte) int {
	for s.toSend != 0 {
		if n := s.emitAnswer(b); n > 0 {
			return n
		}
	}
	switch {
	case s.nakDue:
		return s.emitBare(b, wire.Nak)
	case s.infoDue, s.echoDue:
		return s.emitBare(b, wire.Ack)
	case s.resetDue != 0:
		return s.emitReset(b)
	}
	return 0
}

// Rider returns nothing: a session whose acks could ride is one with messages.
func (s *Session) Rider() (wire.Rider, bool) { return wire.Rider{}, false }

// emitAnswer writes the answer of the lowest psn that is due, unless it has arrived
// meanwhile. One ack answers a run of frames.
func (s *Session) emitAnswer(b []byte) int {
	base := s.Acked() + 1
	psn := base + uint32(bits.TrailingZeros64(bits.RotateLeft64(s.toSend, -int(base%window))))
	s.toSend &^= bit(psn)
	_, answer, err := s.v.c.call(callAnswer, uint32(s.p.Local), psn, nil)
	if err != nil || len(answer) == 0 {
		return 0
	}
	s.losses.answered(answer)
	var h wire.Header
	if h.Get(answer); h.Type == wire.Ack {
		for p := psn; wire.Diff(p, h.Ack) <= 0; p++ {
			s.toSend &^= bit(p)
		}
	}
	return copy(b, answer)
}

// header fills the fields that tell the initiator where the target stands.
func (s *Session) header(ty wire.Type) wire.Header {
	s.infoDue, s.nakDue = false, false
	expected := s.state.expected()
	early := (s.heldMask | s.state.ahead()) &^ bit(expected)
	return wire.Header{
		Type: ty, Session: s.p.Remote, Epoch: s.p.Epoch, Ack: expected - 1,
		Sack:   bits.RotateLeft64(early, -int((expected+1)%window)),
		Credit: uint16(s.p.Window), Lane: s.p.Local.Lane(),
	}
}

func (s *Session) emitBare(b []byte, ty wire.Type) int {
	h := s.header(ty)
	h.PSN = h.Ack + 1 // an ack from there to Ack is an empty run
	if ty == wire.Ack && s.echoDue {
		zeros := s.echoPad
		h.Flags, h.PSN, s.echoDue, s.echoPad = wire.FlagEcho, s.echo, false, 0
		h.Put(b)
		clear(b[wire.HeaderLen:][:zeros])
		return wire.HeaderLen + zeros
	}
	h.Put(b)
	return wire.HeaderLen
}

func (s *Session) emitReset(b []byte) int {
	h := s.header(wire.Reset)
	h.Sack = s.Ran().Early // what is held never runs
	h.Put(b)
	if s.Ran().Torn {
		s.resetDue = wire.ResetUnknownSession // it promises nothing of what ran
	}
	m := wire.ResetMsg{Session: uint32(s.p.Local), PSN: h.Ack + 1, Reason: s.resetDue}
	m.Put(b[wire.HeaderLen:])
	s.resetDue = 0
	return wire.HeaderLen + wire.ResetLen
}
