// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/node"
	"github.com/xdpfab/xdpfab/internal/residence"
	"github.com/xdpfab/xdpfab/internal/share"
)

// errLeaving ends calls that wait for the network: the next process makes them.
var errLeaving = errors.New("another process takes this one's place")

// succession is the host's part of a handover. Its zero value is that of a host which
// neither leaves nor takes over.
type succession struct {
	Leaving    bool          // HandOver has begun
	shut       bool          // and takes no more guests
	newcomers  []int         // connections of those that came in between
	arriving   []*Guest      // that Resume is to serve
	unrestored []*unrestored // that Resume is to turn out
}

// HandOver closes the domain in favour of another process, which takes over the sessions
// and guests, as the Handover says: peers and guests notice nothing but a pause. HandOver
// waits for the guests' operations in flight, at most for limit; guests run meanwhile,
// except for the last 2 s, or 4 s if one does not take its answers. Operations that have
// not ended by then fail, with what is known of them. The give-up time is long enough for
// all but messages and events for which the peer has no room. The regions of this process
// are its own concern, and so are their keys and incarnations; its endpoints may not post
// nor receive messages. Resident regions and their memory move without a pause. Guests
// that attach during HandOver are handed over as well. Guests that borrowed a queue drive
// it without a pause. After an error the domain is as it was, unless it is Done.
func (host *Host) HandOver(limit time.Duration) (*Handover, error) {
	h := &Handover{}
	guests, err := host.leaving(h)
	if err != nil {
		return nil, errors.Join(err, h.Close())
	}
	host.outwait(guests, limit)
	limit = min(limit, MostHeld)
	paused := pauseGuests(guests, limit)
	deadline := time.Now().Add(limit) // a slow guest costs the others nothing
	leavers := h.copyGuests(quiet(slices.Clone(paused), deadline))
	for _, x := range leavers {
		if g := x.g; g.Ring != nil {
			g.St.Call(g.Ring.Hold)
		}
	}
	host.drainGuests(leavers, deadline)
	leavers = h.stillThere(leavers)
	turnedOut(paused, leavers)
	for _, x := range leavers {
		x.conclude()
	}
	h.addKept(host)
	host.drainSessions(deadline)
	for _, x := range leavers {
		if x.g.holds != nil {
			x.g.holds.halt()
		}
	}
	h.release(deviceFiles + 3*len(leavers))
	err = errors.Join(h.addSessions(host), h.addDevice(host))
	for _, x := range leavers { // only now: messages and frames came as long as there were sessions
		if bad := h.leaveHolding(x); bad != nil {
			x.g.evictStopped(fmt.Errorf("xdpfab: handover: %w", bad))
			h.endTalk(x)
			continue
		}
		if x.s.Attached != nil {
			x.s.Attached.In, x.s.Attached.Passives = x.g.exportArrivals(), x.g.passives()
		}
		h.State.Guests = append(h.State.Guests, x.s)
		close(x.g.left)
	}
	for _, fd := range host.closeDoor() {
		h.State.Guests = append(h.State.Guests, guestState{Talk: h.own(fd)})
	}
	if err == nil {
		err = h.addResident(host) // last: the domain leaves it from here on
	}
	h.release(len(h.spare))
	if err = errors.Join(err, host.n.Owner.CloseAll()); err != nil {
		return nil, errors.Join(fmt.Errorf("xdpfab: handover: %w", err), h.Close())
	}
	return h, nil
}

// leaving begins the handover, which has room for all copies then, and returns the
// guests.
func (host *Host) leaving(h *Handover) ([]*Guest, error) {
	if err := host.CanHandOver(); err != nil {
		return nil, err
	}
	if err := h.reserve(host.descriptors()); err != nil {
		return nil, err
	}
	host.withdrawing.Lock() // what is being withdrawn is not left to anybody
	defer host.withdrawing.Unlock()
	host.Mu.Lock()
	defer host.Mu.Unlock()
	if host.Tenancy.Leaving {
		return nil, fmt.Errorf("xdpfab: handover: domain on %s leaves already: %w", host.n.Dev.Info().Name, errno.Busy)
	}
	host.Tenancy.Leaving = true
	residence.Of(host.n).Handing.Store(true)
	return slices.Collect(maps.Keys(host.Tenancy.guests)), nil
}

// staying returns an error that wraps errLeaving once HandOver has begun. Host.Mu is
// held.
func (h *Host) staying() error {
	if h.Tenancy.Leaving {
		return fmt.Errorf("xdpfab: domain on %s: %w", h.n.Dev.Info().Name, errLeaving)
	}
	return nil
}

// leavesKept refuses to withdraw a kept region which is about to be the next process's.
func (h *Host) leavesKept(uid uint32, name string) error {
	h.Mu.Lock()
	defer h.Mu.Unlock()
	if h.Tenancy.Leaving {
		return errno.Refuse(errno.Busy,
			"xdpfab: region %q of user %d: another process takes over just now: ask that one", name,
			uid)
	}
	return nil
}

// CanHandOver returns nil if HandOver is possible at present.
func (h *Host) CanHandOver() error {
	if err := h.n.Dev.MayHost(); err != nil {
		return fmt.Errorf("xdpfab: handover: %w", err)
	}
	if err := errors.Join(residence.Of(h.n).CanMove(), h.canReopen()); err != nil {
		return fmt.Errorf("xdpfab: handover: domain on %s: %w", h.n.Dev.Info().Name, err)
	}
	err := h.n.Open()
	h.n.Numbers.Each(func(number uint16, t node.Tenant) {
		if !t.IsTarget() {
			err = errno.Refuse(errno.NotImplemented,
				"xdpfab: handover: endpoint %d posts or receives: want endpoints that are nothing but targets",
				number)
		}
	})
	for _, st := range h.n.Steppers {
		st.Call(func() {
			if e := st.Eng.CanMove(); e != nil {
				err = fmt.Errorf("xdpfab: handover: %w: %w", e, errno.NotImplemented)
			}
		})
	}
	return errors.Join(err, mayOpen(h.descriptors()))
}

// canReopen returns nil if the interface can be opened as it is at present. Otherwise no
// process could take over, and this one could not go on after a takeover that failed.
func (h *Host) canReopen() error {
	dev, is := h.n.Dev.(node.NetInterface)
	if !is {
		return nil
	}
	return dev.Reopens(residence.Of(h.n).Loaded())
}

// endPoll is the time between two looks whether the ends of sessions have been sent.
const endPoll = 100 * time.Microsecond

// drainGuests waits until the guests have nothing in flight.
func (h *Host) drainGuests(leavers []*leaver, deadline time.Time) {
	var all []*outwaited
	for _, x := range leavers {
		if g := x.g; g.Ring != nil {
			all = append(all, g.outwaited(g.Ring))
		}
	}
	h.undrained(all, deadline)
}

// drainSessions waits until the ends of sessions that were begun here have been sent.
func (h *Host) drainSessions(deadline time.Time) {
	for _, st := range h.n.Steppers {
		for idle := false; !idle && time.Now().Before(deadline); {
			if st.Call(func() { idle = st.Eng.Idle() }); !idle {
				time.Sleep(endPoll)
			}
		}
	}
}

// closeDoor returns the connections of programs that came since leaving, and lets in
// no more.
func (h *Host) closeDoor() (late []int) {
	h.Mu.Lock()
	defer h.Mu.Unlock()
	late, h.Tenancy.newcomers = h.Tenancy.newcomers, nil
	h.Tenancy.shut = true
	return late
}

// keepForNext keeps the connection of a program that comes while the domain leaves, for
// the next process, and reports whether it does leave.
func (h *Host) keepForNext(talk *share.Talk) (leaves bool) {
	h.Mu.Lock()
	defer h.Mu.Unlock()
	if !h.Tenancy.Leaving || h.Tenancy.shut {
		return false
	}
	fd, err := talk.FD()
	if err != nil {
		return false
	}
	h.Tenancy.newcomers = append(h.Tenancy.newcomers, fd)
	return true
}

// state returns an endpoint's state for the handover. Engine's thread.
func (ep *GuestEndpoint) state() endpointState {
	as := ep.as
	as.Number, as.Serial = int(ep.number), ep.origin.Serial()
	serve := share.Serve{Endpoint: ep.number, On: ep.on.Load(), Events: ep.events.Load(), Messages: ep.messages.Load(),
		Attends: ep.attends.Load(), Calls: ep.calls.Load(), Tally: ep.tally}
	return endpointState{As: as, Serve: serve, Successor: ep.successor, Spoken: ep.spoken, Connection: ep.connection()}
}

// addSessions adds the sessions of peers, which came to a halt.
func (h *Handover) addSessions(host *Host) (err error) {
	for _, st := range host.n.Steppers {
		st.Call(st.Eng.Pause)
	}
	for _, st := range host.n.Steppers {
		st.Call(func() {
			sessions, bad := st.Eng.Export()
			h.State.Sessions, err = append(h.State.Sessions, sessions), errors.Join(err, bad)
		})
	}
	first := host.n.Steppers[0]
	first.Call(func() { h.State.Idle = first.Eng.ExportIdle() })
	h.State.Version, h.State.Life, h.State.MAC = HandoverVersion, first.Eng.Life(), host.n.Dev.MAC()
	return err
}
