// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"slices"
	"testing"

	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// riding is a cable with a request in flight, of which nothing arrives any more, and a
// target at its initiator's engine to which riders come.
func riding(t *testing.T, features wire.Features) (c *cable, p *Peer, r *outcomes, at *target) {
	c = newCable(t, session.Config{Features: wire.FeatureRiders})
	p = c.peer(ethernet())
	c.done(c.post(p, 0, 1))
	c.pass = func(int, []byte) bool { return false }
	r = c.post(p, 1, 2)
	for p.r.conn.ini.InFlight() == 0 {
		c.step()
	}
	e := c.nodes[0].eng[0]
	e.at.packet = slices.Clone(c.seen[0][len(c.seen[0])-1])
	return c, p, r, &target{e: e, features: features}
}

// A rider completes the request that it acknowledges, once, if it comes from where that
// went.
func TestRiderCounts(t *testing.T) {
	c, p, r, at := riding(t, wire.FeatureRiders)
	e, ini := at.e, p.r.conn.ini
	ack := wire.Rider{Session: uint32(p.r.conn.slot.id), PSN: ini.Identity().PSN + 1}
	told := func(why string, want int, rider wire.Rider) {
		t.Helper()
		if !at.onRider(rider) {
			t.Errorf("%s: refused", why)
		}
		if e.say(); len(r.all) != want {
			t.Errorf("%s: %d completions, want %d", why, len(r.all), want)
		}
	}
	e.at.packet[6] ^= 2 // the source's MAC address
	told("from another node", 0, ack)
	e.at.packet[6] ^= 2
	told("of no session", 0, wire.Rider{Session: ack.Session ^ 1, PSN: ack.PSN})
	told("of the one before", 0, wire.Rider{Session: ack.Session, PSN: ack.PSN - 1})
	p.r.conn.sealer = &gcm{}
	told("of a session with a sealer", 0, ack)
	p.r.conn.sealer = nil
	told("of the request", 1, ack)
	told("the same again", 1, ack)
	if r.all[0].Outcome != Success || ini.InFlight() != 0 {
		t.Errorf("%+v, %d in flight", r.all, ini.InFlight())
	}
	if n := c.nodes[0].counted(Invalid); n != 0 {
		t.Errorf("%d frames were invalid", n)
	}
}

// A request with a rider, in a session without the feature, is refused as a whole.
func TestRiderWithoutFeature(t *testing.T) {
	c, p, r, at := riding(t, 0)
	h := wire.Header{Type: wire.Request, Ops: 1}
	h.Carry(wire.Rider{Session: uint32(p.r.conn.slot.id), PSN: p.r.conn.ini.Identity().PSN + 1})
	if !at.receive(&h, nil) { // a target without an executor: to run the request would panic
		t.Error("the frame is of another epoch")
	}
	if at.e.say(); len(r.all) != 0 || at.e.count[Invalid] != 1 || c.word(1) != 0 {
		t.Errorf("%d completions, %d invalid frames", len(r.all), at.e.count[Invalid])
	}
}

// A rider that comes with a message to a caller that answers at once is taken in the next
// round, behind the answer, or before the timers are looked at. What comes with another
// message is taken at once.
func TestRiderIsPutOff(t *testing.T) {
	for name, next := range map[string]func(e *Engine){
		"the next round": func(e *Engine) { e.Step() },
		"the timers":     func(e *Engine) { e.allTimers() },
	} {
		t.Run(name, func(t *testing.T) {
			c, p, r, at := riding(t, wire.FeatureRiders)
			e, ini := at.e, p.r.conn.ini
			ack := wire.Rider{Session: uint32(p.r.conn.slot.id), PSN: ini.Identity().PSN + 1}
			e.prompt = prompt{mayWait: true, habit: habitual}
			if !at.onRider(ack) {
				t.Fatal("refused")
			}
			if e.say(); len(r.all) != 0 || ini.InFlight() != 1 || e.NextDue() > e.now {
				t.Errorf("%d completions, %d in flight, and the next step is due in %d ns", len(r.all), ini.InFlight(), e.NextDue()-e.now)
			}
			e.prompt.mayWait = false
			if next(e); len(r.all) != 1 || r.all[0].Outcome != Success || ini.InFlight() != 0 {
				t.Errorf("%+v, %d in flight", r.all, ini.InFlight())
			}
			if n := c.nodes[0].counted(Invalid); n != 0 {
				t.Errorf("%d frames were invalid", n)
			}
		})
	}
	c, p, r, at := riding(t, wire.FeatureRiders)
	e := at.e
	e.prompt = prompt{mayWait: true, habit: habitual}
	at.onRider(wire.Rider{Session: uint32(p.r.conn.slot.id), PSN: p.r.conn.ini.Identity().PSN})
	at.onRider(wire.Rider{Session: uint32(p.r.conn.slot.id), PSN: p.r.conn.ini.Identity().PSN + 1})
	if e.say(); len(r.all) != 1 {
		t.Errorf("%d completions after the second rider, want 1", len(r.all))
	}
	if p.r.conn.close(session.ClosedHere); c.nodes[0].counted(Invalid) != 0 { // the first one is of a session that has ended
		t.Errorf("%d frames were invalid", c.nodes[0].counted(Invalid))
	}
	if e.prompt.mayWait = false; e.Step() < 0 || e.deferredAck.c != nil || e.count[Invalid] != 0 {
		t.Errorf("the rider of a session that has ended: %d invalid frames", e.count[Invalid])
	}
}
