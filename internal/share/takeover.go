// SPDX-License-Identifier: Apache-2.0

//go:build linux

package share

import (
	"errors"

	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/matching"
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// Another host can take the place of a guest's host, with the same segment: its host ring
// and its arrivals go on at the positions of the former ones.

// HostRingState is what a host ring leaves to that of another host.
type HostRingState struct {
	Taken, Completed, Seen uint64
	Counts                 Counts
	Peers                  []PeerState
	Watches                []WatchState
	Open                   []OpenState
	Aside                  []engine.Entry // that were taken, and not posted
}

// OpenState is an operation whose second completion is still to be written.
type OpenState struct {
	Tag    uint64
	Second engine.Completion
}

// PeerState is a peer of the guest.
type PeerState struct {
	Number uint32
	As     Peer
	Link   wire.Link
}

// WatchState is a watch that the next host continues.
type WatchState struct {
	Tag  uint64
	Peer uint32
}

// Hold makes the host ring begin nothing, until Watch or Unhold: entries wait in the
// ring. Operations that have begun, and come part by part, continue. Those that wait at
// their targets are recalled: they have not run, because the host was lost. Engine's
// thread.
func (f *HostRing) Hold() {
	f.held = true
	f.recallAll()
}

// Unhold undoes Hold. Engine's thread.
func (f *HostRing) Unhold() { f.held = false }

// Drained reports whether nothing is under way but watches, and operations that may
// become known later. Engine's thread.
func (f *HostRing) Drained() bool {
	under := len(f.ops) - len(f.free) - f.open.n
	for i := range f.ops {
		if f.ops[i].watch {
			under--
		}
	}
	return under == 0
}

// Starved reports whether an operation waits for a part that the guest has not posted
// yet. Engine's thread.
func (f *HostRing) Starved() bool {
	for _, o := range f.streams {
		if len(o.stream.Parts()) == 0 && o.stream.Fed() < o.stream.length {
			return true
		}
	}
	return false
}

// Export ends the host ring, and returns what another one needs to go on. Operations
// under way complete with what is known of them: more will never be. Watches go on.
// Engine's thread.
func (f *HostRing) Export() HostRingState {
	var s HostRingState
	numbers := map[*Target]uint32{}
	for number, p := range f.peers {
		numbers[p] = number
		s.Peers = append(s.Peers, PeerState{number, p.As, p.Peer.Link()})
	}
	for i := range f.ops {
		if o := &f.ops[i]; o.watch {
			o.moves = true
			s.Watches = append(s.Watches, WatchState{o.tag, numbers[o.peer]})
		}
	}
	f.Close()
	f.Flush()
	s.Open = f.opened()
	s.Taken, s.Completed, s.Seen, s.Counts, s.Aside = f.taken, f.completed, f.seen, f.Counts, f.aside
	return s
}

// opened returns the operations that are left when all peers have been closed.
func (f *HostRing) opened() (all []OpenState) {
	known := map[*op]bool{}
	for _, o := range f.open.known {
		known[o] = true
	}
	for _, o := range f.open.known {
		o.spread()
	}
	free := map[*op]bool{}
	for _, o := range f.free {
		free[o] = true
	}
	for i := range f.ops {
		o := &f.ops[i]
		if free[o] {
			continue
		}
		if !known[o] {
			o.outcome, o.data = engine.Result{Outcome: engine.Unknown, Reason: session.HostLost}, nil
		}
		all = append(all, OpenState{o.tag, f.second(o)})
	}
	return all
}

// Restore makes a new host ring go on where another one has stopped, before the engine
// has it. It is held until Watch.
func (f *HostRing) Restore(s *HostRingState) {
	f.taken, f.completed, f.seen, f.Counts, f.held, f.aside = s.Taken, s.Completed, s.Seen, s.Counts, true, s.Aside
	for _, x := range s.Open {
		o := f.free[len(f.free)-1]
		f.use()
		o.tag, o.ready, o.more = x.Tag, &x.Second, true
		f.open.n++
		f.open.known = append(f.open.known, o)
	}
}

// Watch continues watches, after their peers have been set. Engine's thread.
func (f *HostRing) Watch(watches []WatchState) {
	f.held = false
	for _, w := range watches {
		x := engine.Entry{Verb: engine.VerbWatch, Peer: engine.PeerID(w.Peer), Cookie: w.Tag}
		if f.post(&x) == 0 { // it had a place in as large a ring
			f.fail(errors.New("submission ring: it has no room for the watches that go on"))
		}
	}
}

// ArrivalsState is what arrivals leave to those of another host.
type ArrivalsState struct {
	Written, Read, Sessions uint64
	Late                    []record
	Credits                 map[uint16]matching.Room // by endpoint
	Attendants              []AttendantState         `json:",omitempty"`
	Callees                 []CalleeState            `json:",omitempty"`
}

// Export ends the arrivals, and returns what others need to go on. The engines are
// paused, and the states of the inflows have been taken.
func (a *Arrivals) Export() ArrivalsState {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ended = true
	return ArrivalsState{Written: a.written, Read: a.read, Sessions: a.sessions, Late: a.late,
		Attendants: a.exportAttendants(), Callees: a.exportCallees()}
}

// Restore makes new arrivals go on where others have stopped.
func (a *Arrivals) Restore(s *ArrivalsState) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.written, a.read, a.sessions, a.late = s.Written, s.Read, s.Sessions, s.Late
	a.restoreAttendants(s.Attendants)
	a.restoreCallees(s.Callees)
	a.refused.Store(true) // the guest may have made room in between
}

// State implements session.MobileInflow.
func (in *inflow) State() session.InflowState {
	in.a.mu.Lock()
	defer in.a.mu.Unlock()
	s := session.InflowState{
		Number: in.head.Session, Has: in.has, Lacks: in.lacks, Told: in.told, ForRoom: in.asked.forRoom,
		Admitted: in.asked.admitted, Returns: in.asked.returns, Status: in.asked.status, Values: in.asked.at,
	}
	if in.asked.is {
		s.Announced = &wire.Message{}
		in.asked.as.message(s.Announced)
	}
	return s
}

// Restore implements session.MobileInflow.
func (in *inflow) Restore(s session.InflowState) {
	in.a.mu.Lock()
	defer in.a.mu.Unlock()
	delete(in.a.open, in.head.Session)
	in.a.open[s.Number] = in
	in.head.Session, in.has, in.lacks, in.told = s.Number, s.Has, s.Lacks, s.Told
	in.asked = asked{is: s.Announced != nil, forRoom: s.ForRoom, admitted: s.Admitted, returns: s.Returns,
		status: s.Status, at: s.Values}
	if s.Announced != nil {
		in.asked.as = in.head
		in.asked.as.describe(s.Announced)
	}
	if in.asked.admitted {
		in.asked.values, _ = partOf(in.a.segment.arena, s.Values, uint64(s.Returns)) // it was checked
	}
	if in.asked.forRoom {
		in.credit.waiting++
	}
}
