// SPDX-License-Identifier: Apache-2.0

//go:build linux

package resident

import (
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// early is a request that arrived before its turn.
type early struct {
	payload []byte
	psn     uint32
	ops     uint8
}

// hold keeps an early frame until its turn, if there is a buffer for it, and has the
// initiator told. From the first one on the program gives every frame of the session to
// user space, until there is none: otherwise the program would execute the one that is
// missing, and nobody the one that is held.
func (s *Session) hold(psn uint32, payload []byte, ops uint8) session.Verdict {
	s.nakDue = true
	if e := &s.held[psn%window]; s.heldMask&bit(psn) != 0 {
		if e.psn == psn {
			return session.Held
		}
		s.unhold(e.psn) // one that the program has run by itself, a window ago
	}
	b := s.holds.Get()
	if b == nil {
		return session.NoBuffer
	}
	first := s.heldMask == 0
	s.held[psn%window] = early{b[:copy(b, payload)], psn, ops}
	if s.heldMask |= bit(psn); first {
		s.attend()
	}
	return session.Held
}

// takeHeld hands the program the held frames whose turn has come. It looks also if none
// has run just now: the program may have run one by itself, before it was told that user
// space attends.
func (s *Session) takeHeld(o *session.Outcome) {
	for o.Refused == wire.ReasonOK && s.heldMask != 0 {
		psn := s.state.expected()
		s.releaseHeld(psn)
		e := s.held[psn%window]
		if s.heldMask&bit(psn) == 0 || e.psn != psn {
			break
		}
		h := wire.Header{Type: wire.Request, Session: uint32(s.p.Local), Epoch: s.p.Epoch, PSN: psn,
			Ack: s.Acked(), Ops: e.ops}
		verdict := o.Verdict
		s.take(&h, e.payload, o)
		ran := o.Verdict == session.Execute
		if o.Verdict = verdict; !ran {
			break
		}
	}
	if s.heldMask == 0 {
		s.attend()
	}
}

// releaseHeld drops the held frames before psn, which have run.
func (s *Session) releaseHeld(psn uint32) {
	for i := range s.held {
		if e := &s.held[i]; e.payload != nil && wire.Diff(e.psn, psn) < 0 {
			s.unhold(e.psn)
		}
	}
}

func (s *Session) unhold(psn uint32) {
	if s.heldMask&bit(psn) != 0 {
		s.holds.Put(s.held[psn%window].payload[:maxPayload])
		s.held[psn%window] = early{}
		s.heldMask &^= bit(psn)
	}
}

// dropHeld drops all of them.
func (s *Session) dropHeld() {
	for psn := range uint32(window) {
		s.unhold(psn)
	}
}
