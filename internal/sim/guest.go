// SPDX-License-Identifier: Apache-2.0

//go:build linux

package sim

import (
	"sync/atomic"

	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/memory"
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/share"
	"github.com/xdpfab/xdpfab/internal/wire"
	"github.com/xdpfab/xdpfab/mr"
)

// Some nodes are hosts, and some of their regions the memory of a guest, which the host
// cannot reach. Rings, tickets and checks are those that host and guest share in
// earnest. The guest looks at its ring when it pleases, now and then not for long, and
// dies; the host goes on. Everything that holds for the memory of a node holds for that
// of its guest.

// guest is the program that has memory of a node, in one of its lives.
type guest struct {
	n       *node
	ring    *share.GuestRing
	hosts   *share.HostRing
	in      *share.Arrivals
	segment *share.Segment // as the host has mapped it
	bell    *share.Doorbell
	table   *mr.Table
	memory  *memory.Memory
	on      atomic.Bool
	handed  map[handed]bool
	owes    int  // frames that it has been handed, and the host has no answers to
	coming  bool // it will look at its ring
	gone    bool
}

// handed is a frame that was handed over, which happens once.
type handed struct {
	session uint64
	psn     uint32
}

var guestSizes = share.Sizes{Entries: share.MinEntries, Arena: share.MinArena, Arrivals: share.MinArrivals}

// table is where a region is registered.
func (r *region) table() *mr.Table {
	if r.attends() {
		return r.n.guest.table
	}
	return r.n.table
}

// copyForGuest registers a region of the host with the guest, which has mapped it, too:
// frames that it is handed may have operations on it.
func (r *region) copyForGuest() {
	if r.n.guest == nil || r.attends() || r.reg == nil {
		return
	}
	key := r.key()
	var err error
	r.copied, err = r.n.guest.table.Register(r.memory, mr.Options{Key: &key, Access: r.reg.Access(),
		Length: r.reg.Len(), Incarnation: r.reg.Incarnation()})
	must(err)
}

// attach begins a life of the node's guest, if it has one. The engines are there.
func (n *node) attach() {
	if n.w.plan.attends == 0 {
		return
	}
	g := &guest{n: n, table: mr.NewTable(), handed: map[handed]bool{}}
	g.memory = memory.New(g.table)
	own, err := share.NewSegment(guestSizes)
	must(err)
	g.segment, err = guestSizes.Map(own.FD())
	must(err)
	bell, other, err := share.NewDoorbells()
	must(err)
	g.bell = bell
	g.ring, err = share.NewGuestRing(own, other, nil)
	must(err)
	g.ring.Deliver(g)
	g.on.Store(true)
	n.guest = g
	g.host()
}

func must(err error) {
	if err != nil {
		panic(err) // the machine is at fault
	}
}

// host makes the host's end.
func (g *guest) host() {
	evicted := func(err error) { g.n.w.fail("%v turns its guest out: %v", g.n, err) }
	g.in = share.NewArrivals(g.segment, g.bell, evicted)
	g.hosts = share.NewHostRing(g.segment, g.bell, g.n.engs[0], evicted)
	g.hosts.OnAnswer(func(session, ticket uint64, answer []byte) error {
		err := g.in.Answer(session, ticket, answer)
		g.owes--
		g.room()
		return err
	})
	g.hosts.OnReply(g.in.Reply)
}

// attendTo has the host's engine take what the guest posts.
func (g *guest) attendTo() { g.n.engs[0].AddHostRing(g.hosts, 1) }

// room has sessions try again that wait for the guest.
func (g *guest) room() {
	if g.in.Refused() {
		g.n.roomMade()
	}
}

// detach ends the guest, as its death does. Its memory stays, for the next life.
func (g *guest) detach() {
	g.gone = true
	g.on.Store(false)
	g.in.End()
	g.hosts.Close()
	for _, e := range g.n.engs {
		e.RemoveHostRing(g.hosts)
	}
	for _, r := range g.n.regions {
		if r.closeCopy(); r.attends() {
			r.deregister()
		}
	}
	g.memory.Close()
	must(g.ring.Close())
	must(g.segment.Close())
	must(g.bell.Close())
	g.n.guest = nil
}

// guestDeath ends a guest, and begins its next life. Meanwhile its endpoints are closed.
func (w *world) guestDeath(length int64) {
	if n := w.anyNode(); n.up && n.guest != nil {
		w.guestDeathOf(n, length)
	}
}

// guestDeathOf is guestDeath of one node.
func (w *world) guestDeathOf(n *node, length int64) {
	w.count(guestDeaths)
	w.excuse(n.index, -1, w.now+length)
	w.trace.event("death of the guest of %v for %d ms", n, length/millisecond)
	n.guest.detach()
	n.shut = max(n.shut, w.now+length)
	for _, e := range n.engs {
		for i := range uint16(endpoints) {
			e.EndTargets(i)
		}
	}
	for _, x := range n.execs {
		if u := x.Usage(); u.Handed > 0 {
			w.fail("%v keeps %d frames that its guest had, which has died", n, u.Handed)
		}
	}
	n.wake(w.now)
	life := n.life
	w.at(w.now+length, func() {
		if n.up && n.life == life && n.guest == nil {
			n.attach()
			n.guest.attendTo()
			for _, r := range n.regions {
				r.register()
				if r.copied == nil {
					r.copyForGuest()
				}
			}
		}
	})
}

// attendant returns what hands frames of a session over to the guest.
func (n *node) attendant(endpoint uint16, from wire.Addr, origin uint64) session.Attendant {
	if n.guest == nil {
		return nil
	}
	a := n.guest.in.NewAttendant(endpoint, from, origin, &n.guest.on)
	return &attendTap{a.(session.MobileAttendant), n.guest}
}

// attendTap looks at what is handed over.
type attendTap struct {
	session.MobileAttendant
	g *guest
}

// Hand implements session.Attendant.
func (t *attendTap) Hand(psn uint32, payload []byte, ops int) bool {
	if !t.MobileAttendant.Hand(psn, payload, ops) {
		return false
	}
	w, id := t.g.n.w, handed{t.State(), psn}
	if t.g.handed[id] {
		w.fail("%v: frame %d of session %d is handed over twice", t.g.n, psn, id.session)
	}
	t.g.handed[id] = true
	t.g.owes++
	w.count(framesHanded)
	t.g.look()
	return true
}

// look has the guest look at its ring some time later.
func (g *guest) look() {
	if g.coming || g.gone {
		return
	}
	w := g.n.w
	after := w.dice.scale(microsecond, 200*microsecond)
	if !w.calm && w.dice.chance(0.02) { // it is stopped
		after = w.dice.scale(millisecond, 3*int64(w.plan.session.GiveUp)+millisecond)
	}
	g.coming = true
	w.at(w.now+after, func() {
		if g.coming = false; g.gone {
			return
		}
		g.ring.Receive(func(uint32, *engine.Completion, uint64, []byte) {
			w.fail("%v: a completion for its guest", g.n)
		})
		g.room()
		g.n.wake(w.now)
		if g.owes > 0 {
			g.look()
		}
	})
}

// Operate implements share.Receiver.
func (g *guest) Operate(_ uint16, rec *wire.Record, result []byte) wire.Status {
	return g.memory.Apply(rec, 0, result)
}

// Settle implements share.Receiver.
func (g *guest) Settle() { g.memory.Leave() }

// Inflow implements share.Receiver. The messages of these nodes are the host's.
func (g *guest) Inflow(uint16, wire.Addr) (share.Inflow, uint64) { return nil, 0 }

// Callee implements share.Receiver.
func (g *guest) Callee(_ uint16, _ wire.Addr, told func()) session.Callee {
	if g.n.function == nil {
		return nil
	}
	return g.n.function(g, func() { told(); g.look() })
}

// Events implements share.Receiver.
func (g *guest) Events(uint16) engine.Events { return nil }

// Lost implements share.Receiver.
func (g *guest) Lost() {}
