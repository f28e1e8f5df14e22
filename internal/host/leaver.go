// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/matching"
	"github.com/xdpfab/xdpfab/internal/share"
)

// A guest that cannot move to another process is turned out, and the others move. So
// everything of a guest that can fail comes first: its conversation is stopped, and all
// its file descriptors are copied, before anything of it ends.

// departure is how another process takes a guest over: see HandOver.
type departure struct {
	Paused     chan struct{} // closed once no call is being answered
	finished   bool          // the guest ended before that
	left       chan struct{} // closed when another process has what the guest has, or it is dismissed
	dismissed  error         // why it does not move; written before left is closed
	unanswered []share.Call  // under mu
	watches    []share.WatchState
	told       func(error) // see AdmitGuest
}

func newDeparture() departure {
	return departure{Paused: make(chan struct{}), left: make(chan struct{})}
}

// endPaused ends a guest whose conversation is paused, once another process has it or it
// is dismissed. A guest that moves notices nothing of that end.
func (g *Guest) endPaused(cancel context.CancelCauseFunc) error {
	cancel(errLeaving)
	g.calls.Wait()
	close(g.Paused)
	<-g.left
	g.end()
	return g.dismissed
}

// movesCall leaves a call to the next process that waited for the network, and has done
// nothing yet.
func (g *Guest) movesCall(ctx context.Context, c *share.Call, err error) bool {
	if !errors.Is(err, errLeaving) && !(errors.Is(err, context.Canceled) && context.Cause(ctx) == errLeaving) {
		return false
	}
	g.Mu.Lock()
	defer g.Mu.Unlock()
	g.unanswered = append(g.unanswered, *c)
	return true
}

// finish records that the guest has ended before it could be handed over.
func (g *Guest) finish() {
	g.finished = true
	close(g.Paused)
}

// leaver is a guest that moves to another process.
type leaver struct {
	g *Guest
	s guestState
}

// pauseGuests stops the conversations, between two calls, and returns the guests that
// have not ended. One that does not take its answers is turned out.
func pauseGuests(guests []*Guest, limit time.Duration) (stay []*Guest) {
	for _, g := range guests {
		g.talk.Pause()
	}
	patience := time.After(limit)
	for _, g := range guests {
		select {
		case <-g.Paused:
		case <-patience:
			patience = nil
			for _, x := range guests {
				select {
				case <-x.Paused:
				default:
					x.endTalk()
				}
			}
			<-g.Paused
		}
		if !g.finished {
			stay = append(stay, g)
		}
	}
	return stay
}

// copyGuests returns the guests with copies of their file descriptors, and turns out
// those that have gone by now.
func (h *Handover) copyGuests(guests []*Guest) (leavers []*leaver) {
	for _, g := range guests {
		x := &leaver{g, guestState{Info: g.info, Talk: -1, Unanswered: g.unanswered}}
		if err := h.copyGuest(x); err != nil {
			h.endTalk(x)
			g.evictStopped(fmt.Errorf("xdpfab: handover: %w", err))
			continue
		}
		leavers = append(leavers, x)
	}
	return leavers
}

func (h *Handover) copyGuest(x *leaver) (err error) {
	g, s := x.g, &x.s
	if s.Talk, err = h.dupTalk(g.talk); err != nil {
		return err
	}
	if g.holds != nil {
		g.holds.note(g, s)
	}
	if g.Ring == nil {
		return nil
	}
	a := &AttachedState{Sizes: g.sizes, PeersGiven: g.peers, GiveUp: time.Duration(g.giveUp.Load()), Tallies: -1,
		Features: g.features}
	s.Attached = a
	for number, s := range g.blocks {
		a.Blocks = append(a.Blocks, share.Block{Number: int(number), Length: s.Length})
	}
	var errs [4]error
	if g.Tallies != nil {
		a.Tallies, errs[0] = h.dup(g.Tallies.FD())
	}
	a.Segment, errs[1] = h.dup(g.Segment.FD())
	a.Doorbell, errs[2] = h.dup(g.doorbell.FD())
	g.h.Mu.Lock()
	a.Regions, errs[3] = h.regionsOf(g)
	g.h.Mu.Unlock()
	return errors.Join(errs[:]...)
}

// stillThere turns out the guests that have broken a rule, or have died, since their
// conversations have stopped.
func (h *Handover) stillThere(leavers []*leaver) (stay []*leaver) {
	for _, x := range leavers {
		if why := x.g.broken.Load(); why != nil {
			h.endTalk(x)
			x.g.evictStopped(*why)
			continue
		}
		stay = append(stay, x)
	}
	return stay
}

// conclude ends what the guest has here, but for messages and frames of peers: its
// operations are over.
func (x *leaver) conclude() {
	g, a := x.g, x.s.Attached
	if a == nil {
		return
	}
	a.Left = g.serving()
	g.St.Call(func() {
		a.Ring = g.Ring.Export()
		for _, ep := range g.endpoints {
			if !ep.left {
				a.Endpoints = append(a.Endpoints, ep.state())
			}
		}
	})
}

// endTalk ends the conversation of a guest that does not move: the handover may have a
// copy of it.
func (h *Handover) endTalk(x *leaver) {
	if x.s.Talk >= 0 {
		_ = unix.Shutdown(h.fds[x.s.Talk], unix.SHUT_RDWR)
	}
}

// evictStopped ends a guest that cannot move to another process, whose conversation has
// stopped.
func (g *Guest) evictStopped(why error) {
	g.endTalk()
	if broken := g.broken.Load(); broken != nil {
		why = *broken
	}
	g.dismissed = why
	close(g.left)
}

// exportArrivals returns what the next host needs to go on with messages. The engines
// are paused.
func (g *Guest) exportArrivals() share.ArrivalsState {
	g.Mu.Lock()
	defer g.Mu.Unlock()
	s := g.in.Export()
	s.Credits = map[uint16]matching.Room{}
	for number, ep := range g.endpoints {
		s.Credits[number] = g.in.Room(&ep.credit)
	}
	return s
}
