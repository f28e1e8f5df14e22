// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"slices"
	"time"
)

// migratable is a holding as a takeover sees it. The calls come in this order, with the
// guest's conversation stopped.
type migratable interface {
	// quiet ends what the guest is told unasked, and reports whether that ended
	// before the deadline.
	quiet(deadline time.Time) bool
	// note adds what the next process has to know.
	note(g *Guest, to *guestState)
	// halt stops what the guest does through this process, and leave adds what the next
	// one needs for that.
	halt()
	leave(h *Handover, to *guestState) error
	// resume goes on with it in the next process.
	resume(g *Guest)
}

// heldState is what a guest held that was handed over.
type heldState interface {
	// restore gives it to the guest. It does nothing before resume, and is left to the
	// former process if it does not come to that.
	restore(h *Handover, g *Guest) error
	// giveBack takes it from a guest that cannot go on here.
	giveBack(host *Host)
}

// held returns what the guest held; nil for nothing.
func (s *guestState) held() heldState {
	if s.Loan != nil {
		return s.Loan
	}
	return nil
}

// quiet silences the guests that hold something, and turns out those that do not take
// what they are being told before the deadline. It returns the others.
func quiet(guests []*Guest, deadline time.Time) []*Guest {
	return slices.DeleteFunc(guests, func(g *Guest) bool {
		if g.holds == nil || g.holds.quiet(deadline) {
			return false
		}
		g.evictStopped(errors.New("xdpfab: the program does not take what it is told"))
		return true
	})
}

// leaveHolding adds what a guest holds to what moves.
func (h *Handover) leaveHolding(x *leaver) error {
	if x.g.holds == nil {
		return nil
	}
	return x.g.holds.leave(h, &x.s)
}
