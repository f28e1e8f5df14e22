// SPDX-License-Identifier: Apache-2.0

package executor

import (
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// A frame that needs memory which is not here is handed over, if there is an attendant:
// see session.Attendant. Frames that need none run here, but not while others are handed
// over, so that the order of the session is kept. The buffer for the answer, and the
// place for the event, are taken before: what has been executed can always be answered.

// tickets are the answer buffers of the frames that are handed over, by psn.
type tickets [8][]byte

func (t *tickets) of(psn uint32) *[]byte { return &t[psn%uint32(len(t))] }

// attend hands the frame at hand over, if it is for the attendant, and b for its answer.
// It returns Execute, and does nothing, if the frame runs here, now.
func (s *Session) attend(payload, b []byte, ops, flags uint8, notice bool) session.Verdict {
	if s.Handed() == 0 && !s.attendant.Attends() && s.attendant.Alone() {
		return session.Execute
	}
	foreign := s.attendant.Attends() && s.x.memory.Foreign(len(b))
	if !foreign && s.Handed() == 0 && s.attendant.Alone() {
		return session.Execute
	}
	s.x.memory.Leave()
	if !foreign || !s.MayHand() {
		s.Unbuffer(b)
		return s.await(payload, ops, flags)
	}
	if notice && !s.places.Take() {
		s.Unbuffer(b)
		s.Wait(true) // and not for the attendant, as any frame with a notice
		return session.NoPlace
	}
	if v := s.await(payload, ops, flags); v != session.NoPlace || !s.attendant.Hand(s.PSN(), payload, int(ops)) {
		if notice {
			s.places.Return()
		}
		s.Unbuffer(b)
		return v
	}
	if s.tickets == nil {
		s.tickets = new(tickets)
	}
	*s.tickets.of(s.PSN()) = b
	s.Target.Hand()
	return session.NoPlace
}

// await keeps the frame at hand until it can be handed over, or has its turn.
func (s *Session) await(payload []byte, ops, flags uint8) session.Verdict {
	if !s.Await(payload, ops, flags) {
		return session.NoBuffer
	}
	return session.NoPlace
}

// takeAnswers answers the frames for which the attendant has answers.
func (s *Session) takeAnswers(o *session.Outcome) {
	for s.ticketed() > 0 && s.attendant.Answered() {
		payload, ops := s.HandedOver()
		notice := s.recheck(payload, ops)
		b := s.tickets.of(s.PSN())
		n, said := s.x.memory.Answer(*b, s.streak, s.attendant)
		s.streak = s.x.memory.Streak()
		if said&wire.FlagStatus != 0 {
			s.x.refused.Note((*b)[:n], s.x.memory.Refused())
		}
		s.Executed(*b, n, ops, said|wire.FlagBusy) // so that its round trip is not taken for a queue
		*b = nil
		s.attendant.Take()
		if notice {
			s.noted()
		}
		if s.observer != nil {
			s.observer.Touched(s.x.memory.Touched())
		}
		o.Frames++
		o.Ops += int(ops)
	}
}

// recheck has memory look at a frame again that was handed over, and reports whether it
// ends in a notice.
func (s *Session) recheck(payload []byte, ops uint8) (notice bool) {
	if s.x.auth != s.auth {
		s.x.auth = s.auth
		s.x.memory.Present(s.auth)
	}
	uses, _ := s.x.memory.Check(payload, int(ops))
	return uses&wire.FeatureNotices != 0
}

// endTickets gives up the frames that are handed over: nobody wants their answers now.
func (s *Session) endTickets() {
	if s.attendant != nil {
		s.dropTickets()
		s.attendant.Close()
	}
}

// dropTickets gives back what is kept to answer the frames that are handed over.
func (s *Session) dropTickets() {
	for i := range s.ticketed() {
		psn, payload, ops := s.Frame(i)
		if s.recheck(payload, ops) {
			s.places.Return()
		}
		b := s.tickets.of(psn)
		s.Unbuffer(*b)
		*b = nil
	}
}

// detachTickets gives back what the frames that are handed over hold here: another
// process has their answers.
func (s *Session) detachTickets() {
	if s.attendant == nil {
		return
	}
	for i := range s.ticketed() {
		psn, _, _ := s.Frame(i)
		b := s.tickets.of(psn)
		s.Unbuffer(*b)
		*b = nil
	}
	if a, can := s.attendant.(session.MobileAttendant); can {
		a.Detach()
	}
	s.attendant = nil
}

// ticketed is how many frames are handed over, and have their buffers.
func (s *Session) ticketed() int {
	if s.tickets == nil {
		return 0
	}
	return s.Handed()
}
