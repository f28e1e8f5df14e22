// SPDX-License-Identifier: Apache-2.0

package xdpfab

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/share"
)

// errLeaving ends calls that wait for the network: the next process makes them.
var errLeaving = errors.New("another process takes this one's place")

// HandOver closes the domain in favour of another process, which goes on with what
// peers and guests have here, as the Handover says: they notice nothing but a pause.
// What guests have in flight is waited for, at most so long; what has not ended by then
// fails, with what is known of it. The regions of this process are its own concern, and
// so are their keys and incarnations; its endpoints may not post nor receive messages.
// Resident regions and their memory move, and go on meanwhile. Guests that come during
// HandOver are handed over as well. Those that have borrowed a queue drive it all the
// while. After an error the domain is as it was if it is not Done.
func (d *Domain) HandOver(limit time.Duration) (*Handover, error) {
	guests, err := d.leaving()
	if err != nil {
		return nil, err
	}
	deadline := time.Now().Add(limit)
	paused := pauseGuests(guests, limit)
	guests = quiet(slices.Clone(paused), deadline)
	turnedOut(paused, guests)
	h := &Handover{}
	for _, g := range guests {
		if g.feed != nil {
			g.st.Call(g.feed.Hold)
		}
	}
	d.drainGuests(guests, deadline)
	for _, g := range guests {
		err = errors.Join(err, h.addGuest(g))
	}
	err = errors.Join(err, h.addKept(d))
	d.farewells(deadline)
	for _, g := range guests {
		g.haltLoan()
	}
	err = errors.Join(err, h.addSessions(d), h.addDevice(d))
	for i, g := range guests { // only now: messages and frames came as long as there were sessions
		s := &h.state.Guests[i]
		if s.Attached != nil {
			s.Attached.In, s.Attached.Passives = g.exportArrivals(), g.passives()
		}
		err = errors.Join(err, h.leaveLoan(g, s.Loan))
		close(g.left)
	}
	late := d.closeDoor()
	for _, fd := range late {
		h.state.Guests = append(h.state.Guests, guestState{Talk: h.own(fd)})
	}
	if err == nil {
		err = h.addResident(d) // last: the domain leaves it from here on
	}
	if err = errors.Join(err, d.CloseAll()); err != nil {
		return nil, errors.Join(fmt.Errorf("xdpfab: handover: %w", err), h.Close())
	}
	return h, nil
}

// leaving begins the handover, and returns the guests.
func (d *Domain) leaving() ([]*guest, error) {
	if err := d.CanHandOver(); err != nil {
		return nil, err
	}
	d.withdrawing.Lock() // what is being withdrawn is not left to anybody
	defer d.withdrawing.Unlock()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.lodging.leaving {
		return nil, fmt.Errorf("xdpfab: handover: domain on %s leaves already: %w", d.dev.Info().Name, ErrBusy)
	}
	d.lodging.leaving = true
	return slices.Collect(maps.Keys(d.lodging.guests)), nil
}

// CanHandOver returns nil if HandOver is possible at present.
func (d *Domain) CanHandOver() error {
	if d.attached != nil || d.borrowed != nil {
		return fmt.Errorf("xdpfab: handover: domain on %s is a guest itself: %w", d.dev.Info().Name, ErrNotImplemented)
	}
	if err := errors.Join(d.residence.canMove(), d.canReopen()); err != nil {
		return fmt.Errorf("xdpfab: handover: domain on %s: %w", d.dev.Info().Name, err)
	}
	d.mu.Lock()
	err := d.open()
	endpoints := slices.Collect(maps.Values(d.endpoints))
	d.mu.Unlock()
	for _, ep := range endpoints {
		if !ep.isTarget() {
			err = fmt.Errorf("xdpfab: handover: endpoint %d posts or receives: want endpoints that are nothing but targets: %w", ep.number, ErrNotImplemented)
		}
	}
	for _, st := range d.steppers {
		st.Call(func() {
			if e := st.eng.Movable(); e != nil {
				err = fmt.Errorf("xdpfab: handover: %w: %w", e, ErrNotImplemented)
			}
		})
	}
	return err
}

// isTarget reports whether the endpoint neither posts nor receives messages, at present.
func (ep *Endpoint) isTarget() bool {
	ep.mu.Lock()
	defer ep.mu.Unlock()
	return ep.av == nil && ep.recv == nil && ep.inbox == nil && ep.conn == nil && !ep.attr.dials
}

// canReopen returns nil if the interface can be opened as it is at present. Otherwise no
// process could take over, and this one could not go on after a takeover that has failed.
func (d *Domain) canReopen() error {
	dev, is := d.dev.(netInterface)
	if !is {
		return nil
	}
	return dev.Reopens()
}

// pauseGuests stops the conversations, between two calls, and returns the guests that
// have not ended. One that does not take its answers is turned out.
func pauseGuests(guests []*guest, limit time.Duration) (stay []*guest) {
	for _, g := range guests {
		g.talk.Pause()
	}
	patience := time.After(limit)
	for _, g := range guests {
		select {
		case <-g.paused:
		case <-patience:
			patience = nil
			for _, x := range guests {
				select {
				case <-x.paused:
				default:
					x.hang()
				}
			}
			<-g.paused
		}
		if !g.finished {
			stay = append(stay, g)
		}
	}
	return stay
}

// drainGuests waits until the guests have nothing in flight.
func (d *Domain) drainGuests(guests []*guest, deadline time.Time) {
	for _, g := range guests {
		for done := g.feed == nil; !done && time.Now().Before(deadline); {
			if g.st.Call(func() { done = g.feed.Drained() }); !done {
				time.Sleep(drainPoll)
			}
		}
	}
}

// farewells waits until the ends of sessions that were begun here have been sent.
func (d *Domain) farewells(deadline time.Time) {
	for _, st := range d.steppers {
		for idle := false; !idle && time.Now().Before(deadline); {
			if st.Call(func() { idle = st.eng.Idle() }); !idle {
				time.Sleep(drainPoll)
			}
		}
	}
}

// closeDoor returns the connections of programs that have come since leaving, and lets in
// no more.
func (d *Domain) closeDoor() (late []int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	late, d.lodging.late = d.lodging.late, nil
	d.lodging.shut = true
	return late
}

// keepForNext keeps the connection of a program that comes while the domain leaves, for
// the next process, and reports whether it does leave.
func (d *Domain) keepForNext(talk *share.Talk) (leaves bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.lodging.leaving || d.lodging.shut {
		return false
	}
	fd, err := talk.FD()
	if err != nil {
		return false
	}
	d.lodging.late = append(d.lodging.late, fd)
	return true
}

// addGuest adds what a guest has, which ends here: its operations are over.
func (h *Handover) addGuest(g *guest) error {
	s := guestState{Info: g.info, Talk: -1, Unanswered: g.unanswered}
	fd, err := g.talk.FD()
	if err == nil {
		s.Talk = h.own(fd)
	}
	if g.feed != nil {
		var bad error
		s.Attached, bad = h.attachedState(g)
		err = errors.Join(err, bad)
	}
	if g.loan != nil {
		s.Loan = g.loanState()
	}
	h.state.Guests = append(h.state.Guests, s)
	return err
}

func (h *Handover) attachedState(g *guest) (*attachedState, error) {
	a := &attachedState{Sizes: g.sizes, PeersGiven: g.peers, GiveUp: time.Duration(g.giveUp.Load()), Tallies: -1}
	var errs [4]error
	if g.tallies != nil {
		a.Tallies, errs[3] = h.dup(g.tallies.FD())
	}
	for number, s := range g.blocks {
		a.Blocks = append(a.Blocks, share.Block{Number: int(number), Length: s.attr.RXContexts})
	}
	a.Area, errs[0] = h.dup(g.area.FD())
	a.Bell, errs[1] = h.dup(g.bell.FD())
	g.d.mu.Lock()
	a.Regions, errs[2] = h.regionsOf(g)
	g.d.mu.Unlock()
	a.Left = g.serving()
	g.st.Call(func() {
		a.Feed = g.feed.Export()
		for _, ep := range g.endpoints {
			if !ep.left {
				a.Endpoints = append(a.Endpoints, ep.state())
			}
		}
	})
	return a, errors.Join(errs[:]...)
}

// state returns what there is of an endpoint. Engine's thread.
func (ep *guestEndpoint) state() endpointState {
	as := ep.as
	as.Number, as.Serial = int(ep.number), ep.origin.Serial()
	serve := share.Serve{Endpoint: ep.number, On: ep.serves.Load(), Events: ep.events.Load(), Messages: ep.messages.Load(), Tally: ep.tally}
	return endpointState{As: as, Serve: serve, Heir: ep.heir, Spoken: ep.spoken, Connection: ep.connection()}
}

// addSessions adds the sessions of peers, which have come to a halt.
func (h *Handover) addSessions(d *Domain) (err error) {
	for _, st := range d.steppers {
		st.Call(st.eng.Pause)
	}
	for _, st := range d.steppers {
		st.Call(func() {
			sessions, bad := st.eng.Export()
			h.state.Sessions, err = append(h.state.Sessions, sessions), errors.Join(err, bad)
		})
	}
	first := d.steppers[0]
	first.Call(func() { h.state.Idle = first.eng.ExportIdle() })
	h.state.Version, h.state.Life, h.state.MAC = HandoverVersion, first.eng.Life(), d.dev.MAC()
	return err
}

// own adds a file descriptor to the handover's, and returns its place.
func (h *Handover) own(fd int) int {
	h.fds = append(h.fds, fd)
	return len(h.fds) - 1
}

// dup is own for a copy.
func (h *Handover) dup(fd int) (int, error) {
	own, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	return h.own(own), nil
}

// Close frees the handover. The domains that it was opened as stay.
func (h *Handover) Close() error {
	share.CloseAll(h.fds)
	h.fds = nil
	return nil
}
