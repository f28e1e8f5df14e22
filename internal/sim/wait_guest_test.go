// SPDX-License-Identifier: Apache-2.0

//go:build linux

package sim

import (
	"testing"

	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/share"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// guestUser is the program of a lockUser that is a guest of its node. It has an engine of
// its own, and the host's engine takes its operations to their targets. Rings and checks
// are those that host and guest share in earnest.
type guestUser struct {
	u        *lockUser
	eng      *engine.Engine
	ring     *share.GuestRing
	hosts    *share.HostRing
	direct   *engine.Ring // of the host, for the guest's operations
	segment  *share.Segment
	doorbell *share.Doorbell
}

// waitingSizes leave room beside all operations that may wait.
var waitingSizes = share.Sizes{Entries: 256, Arena: share.MinArena, Arrivals: share.MinArrivals}

// useGuest begins the life of a program that is a guest.
func (t *waitTrial) useGuest(tb testing.TB, i int, ordered bool) {
	tb.Helper()
	check := func(err error) {
		if err != nil {
			tb.Fatal(err)
		}
	}
	w, n := t.w, t.w.nodes[i]
	u := &lockUser{t: t, n: n, ordered: ordered}
	g := &guestUser{u: u}
	own, err := share.NewSegment(waitingSizes)
	check(err)
	g.segment, err = waitingSizes.Map(own.FD())
	check(err)
	bell, other, err := share.NewDoorbells()
	check(err)
	g.doorbell = bell
	g.hosts = share.NewHostRing(g.segment, bell, n.eng, func(err error) { w.fail("%v turns its guest out: %v", n, err) })
	n.eng.AddHostRing(g.hosts, 1)
	g.direct = engine.NewDirect(engine.NewFlights(waitingSizes.Entries, nil), g.hosts)
	origin := n.eng.NewOrigin(7)
	if !ordered {
		origin = n.eng.NewUnorderedOrigin(7)
	}
	origin.Charge(g.hosts)
	n.eng.AddRing(g.direct, origin)
	g.ring, err = share.NewGuestRing(own, other, func(_ uint64, link wire.Link, lane uint8, endpoint uint16) (uint32, error) {
		p, err := origin.NewPeer(link, lane, endpoint)
		if err == nil {
			g.hosts.SetTarget(1, &share.Target{Ring: g.direct, Peer: p, Gone: func() {}})
		}
		return 1, err
	})
	check(err)
	g.ring.Agree(share.Features)
	g.eng, err = engine.New(engine.Config{Port: g.ring.Port(), GuestRing: g.ring, Local: n.link.Local, MTU: w.plan.mtu,
		Session: w.plan.session, Clock: n.clock, Random: w.random})
	check(err)
	engine.NewGroup([]*engine.Engine{g.eng})
	u.ring, err = engine.NewRing(64, engine.Contexts{})
	check(err)
	g.eng.AddRing(u.ring, nil)
	u.eng = g.eng
	u.peer, err = g.eng.NewPeer(n.linkTo(t.w.nodes[0]), 0, 0)
	check(err)
	u.guest, t.users[i] = g, u
	tb.Cleanup(g.die)
}

// step lets the guest run for a moment.
func (g *guestUser) step() {
	if g.u.died == 0 {
		g.eng.Step()
		g.u.n.wake(g.u.t.w.now)
	}
}

// die has the guest end, at whatever it does, and the host notice that.
func (g *guestUser) die() {
	if g.segment == nil {
		return
	}
	g.u.died = g.u.t.w.now
	g.hosts.Close()
	g.u.n.eng.RemoveRing(g.direct)
	g.u.n.eng.RemoveHostRing(g.hosts)
	must(g.ring.Close())
	must(g.segment.Close())
	must(g.doorbell.Close())
	g.segment = nil
	g.u.n.wake(g.u.t.w.now)
}

// hold prepares a takeover of the host, which then does not come about.
func (g *guestUser) hold() {
	w := g.u.t.w
	g.hosts.Hold()
	g.u.n.wake(w.now)
	w.until(w.now+toldBy, func() bool { return g.hosts.Drained() || w.failure != nil })
	if !g.hosts.Drained() {
		w.fail("%v: what its guest waits for hinders a takeover", g.u.n)
	}
	g.hosts.Unhold()
	g.u.n.wake(w.now)
}

// What holds for programs with an interface of their own holds for guests, too, also when
// they die, or another process is about to take the place of their host.
func TestGuestsWaitUnderFaults(t *testing.T) { tryWaits(t, 12, 6, false, (*waitTrial).useGuest) }
