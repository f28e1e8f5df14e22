// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// A target that never restarted is never said to have.
func TestNoFalseRestart(t *testing.T) {
	t.Run("nobody runs for a while", func(t *testing.T) {
		c := newCable(t, session.Config{})
		p := c.peer(ethernet())
		for _, d := range []time.Duration{95 * time.Second, 3 * time.Hour} {
			c.write(p, 0, 1)
			c.now += int64(d)
			c.write(p, 0, 2)
		}
	})
	t.Run("the initiator is stopped", func(t *testing.T) {
		c := newCable(t, session.Config{})
		p := c.peer(ethernet())
		c.write(p, 0, 1)
		r := c.post(p, 0, 2)
		c.nodes[0].eng[0].Step() // it is on its way
		for range 95 {
			c.now += int64(time.Second)
			for _, e := range c.nodes[1].eng {
				e.Step()
			}
		}
		if got := c.done(r); got.Outcome != Success {
			t.Errorf("an operation under way: %+v", got)
		}
		c.write(p, 0, 3)
	})
	t.Run("the target is stopped", func(t *testing.T) {
		c := newCable(t, session.Config{GiveUp: 200 * time.Second})
		p := c.peer(ethernet())
		c.write(p, 0, 1)
		r := c.post(p, 0, 2)
		for range 95_000 {
			c.now += int64(time.Millisecond)
			c.nodes[0].eng[0].Step()
		}
		if got := c.done(r); got.Outcome != Success {
			t.Errorf("an operation under way: %+v", got)
		}
	})
	t.Run("the link is down for less than the give-up time", func(t *testing.T) {
		c := newCable(t, session.Config{GiveUp: 200 * time.Second})
		p := c.peer(ethernet())
		c.write(p, 0, 1)
		c.pass = func(int, []byte) bool { return false }
		r := c.post(p, 0, 2)
		c.idle(95 * time.Second)
		c.pass = nil
		if got := c.done(r); got.Outcome != Success {
			t.Errorf("an operation under way: %+v", got)
		}
	})
	t.Run("a router's address changes", func(t *testing.T) {
		c := newCable(t, session.Config{})
		p := c.peer(udp())
		c.write(p, 0, 1)
		other := wire.MAC{2, 0, 0, 0, 0, 0x77}
		c.pass = func(to int, packet []byte) bool {
			if to == 1 {
				copy(packet[6:], other[:])
				return true
			}
			if wire.MAC(packet) != other {
				return false
			}
			copy(packet, worldMACs[0][:])
			return true
		}
		c.write(p, 0, 2)
	})
	t.Run("a forged reset", func(t *testing.T) {
		c := newCable(t, session.Config{})
		p := c.peer(ethernet())
		c.write(p, 0, 1)
		c.pass = func(to int, packet []byte) bool {
			h, _ := headerOf(packet)
			if to == 1 && h.Type == wire.Request { // a node that is not the target answers
				b := make([]byte, 2048)
				tmpl, _ := wire.NewTemplate(wire.Link{Local: worldMACs[1], Remote: worldMACs[0]})
				n := wire.Seal(b[tmpl.Len():], session.Strange(b[tmpl.Len():], &h, 0, wire.ResetUnknownSession))
				c.pass = nil
				c.deliver(0, b[:tmpl.Put(b, n)])
				return false
			}
			return true
		}
		if got := c.done(c.post(p, 0, 2)); got.Outcome != NotExecuted || got.Reason == session.PeerRestarted {
			t.Errorf("an operation that was lost: %+v, want not executed", got)
		}
		c.write(p, 0, 3)
	})
}

// The first use of memory after a restart says so, for an idle initiator too; the
// next one meets the new life.
func TestRestartIsTold(t *testing.T) {
	c := newCable(t, session.Config{})
	p := c.peer(ethernet())
	c.write(p, 0, 7)
	c.idle(35 * time.Second)
	c.nodes[1].boot()
	if got := c.done(c.post(p, 0, 8)); got.Outcome != NotExecuted || got.Reason != session.PeerRestarted {
		t.Errorf("first use after a restart: %+v", got)
	}
	if c.word(0) != 0 {
		t.Error("it ran")
	}
	c.write(p, 0, 9)
}

// The initiator waits for a target that has restarted and does not serve its endpoint
// yet: operations in flight, and those that wait, fail with the restart and not with the
// refusal.
func TestRestartIsToldByOneThatDoesNotServeYet(t *testing.T) {
	c := newCable(t, session.Config{})
	p := c.peer(ethernet())
	c.write(p, 0, 7)
	c.nodes[1].boot()
	c.nodes[1].refuse = wire.HelloNoEndpoint
	flying := c.post(p, 0, 8)
	c.step()
	c.step()
	waiting := c.post(p, 0, 9)
	c.idle(300 * time.Millisecond)
	if len(flying.all)+len(waiting.all) > 0 {
		t.Fatalf("completed by a refusal: %+v, %+v", flying.all, waiting.all)
	}
	if n := c.nodes[1].counted(Hellos); n > 20 {
		t.Errorf("%d hellos in 300 ms", n)
	}
	c.nodes[1].refuse = wire.HelloAccepted
	if got := c.done(flying); got.Outcome != Restarted {
		t.Errorf("in flight: %+v", got)
	}
	if got := c.done(waiting); got.Outcome != NotExecuted || got.Reason != session.PeerRestarted {
		t.Errorf("waiting: %+v", got)
	}
	c.write(p, 0, 10)
}

// A target that never serves again is not waited for beyond the give-up time.
func TestRefusalAfterRestart(t *testing.T) {
	c := newCable(t, session.Config{GiveUp: time.Second})
	p := c.peer(ethernet())
	c.write(p, 0, 7)
	c.nodes[1].boot()
	c.nodes[1].refuse = wire.HelloNoEndpoint
	flying := c.post(p, 0, 8)
	c.step()
	c.step()
	waiting := c.post(p, 0, 9)
	start := c.now
	if got := c.done(flying); got.Outcome != Unknown || got.Later == nil || got.Reason != session.RefusedEndpoint {
		t.Errorf("in flight: %+v", got)
	}
	if got := c.done(waiting); got.Outcome != NotExecuted || got.Reason != session.RefusedEndpoint {
		t.Errorf("waiting: %+v", got)
	}
	if took := time.Duration(c.now - start); took > 3*time.Second {
		t.Errorf("after %v", took)
	}
}

// A target that refuses is asked again ever more seldom.
func TestRefusedIsAskedSeldom(t *testing.T) {
	c := newCable(t, session.Config{GiveUp: time.Second})
	p := c.peer(ethernet())
	c.write(p, 0, 1)
	var late [][]byte
	c.cut(&late)
	c.done(c.post(p, 0, 2))
	c.pass = nil
	c.nodes[1].refuse = wire.HelloNoEndpoint
	before := c.nodes[1].counted(Hellos)
	c.idle(50 * time.Second)
	if n := c.nodes[1].counted(Hellos) - before; n < 5 || n > 100 {
		t.Errorf("%d hellos in 50 s, want 5 to 100", n)
	}
}

// A target without room is asked again, ever less often, for the give-up time: operations
// wait for a place, and fail only if none comes free.
func TestFullTargetIsAskedAgain(t *testing.T) {
	c := newCable(t, session.Config{GiveUp: 20 * time.Second})
	p := c.peer(ethernet())
	for round := range 2 { // the second one has a give-up time of its own
		c.nodes[1].refuse = wire.HelloFull
		r, began, before := c.post(p, 0, 1), c.now, c.nodes[1].counted(Hellos)
		c.idle(15 * time.Second)
		if len(r.all) > 0 {
			t.Fatalf("round %d: %+v after 15 s, want it to wait", round, r.all[0])
		}
		if n := c.nodes[1].counted(Hellos) - before; n < 10 || n > 80 {
			t.Errorf("round %d: %d hellos in 15 s, want 10 to 80", round, n)
		}
		c.nodes[1].refuse = wire.HelloAccepted
		if got := c.done(r); got.Outcome != Success || time.Duration(c.now-began) > 17*time.Second {
			t.Fatalf("round %d: %+v after %v, want success soon after a place is free", round, got, time.Duration(c.now-began))
		}
		c.idle(35 * time.Second) // the session is idle and ends
	}
	c.nodes[1].refuse = wire.HelloFull
	began := c.now
	got := c.done(c.post(p, 0, 1))
	if took := time.Duration(c.now - began); got.Outcome != NotExecuted || got.Reason != session.RefusedFull || took < 19*time.Second || took > 22*time.Second {
		t.Errorf("%+v after %v, want %v after some 20 s", got, took, session.RefusedFull)
	}
}

// After a pause of this side, a target that is silent is given up as soon as ever.
func TestGiveUpAfterPause(t *testing.T) {
	c := newCable(t, session.Config{})
	p := c.peer(ethernet())
	c.write(p, 0, 1)
	c.idle(time.Second)
	c.now += int64(25 * time.Second)
	c.pass = func(int, []byte) bool { return false }
	before := c.now
	c.done(c.post(p, 0, 2))
	if took := time.Duration(c.now - before); took > 6*time.Second {
		t.Errorf("given up after %v, want some 5 s", took)
	}
}

// An answer of a former life that arrives after one of the present life is no restart.
func TestLateAnswerOfFormerLife(t *testing.T) {
	for _, known := range []bool{true, false} {
		c := newCable(t, session.Config{})
		p := c.peer(ethernet())
		if known {
			c.write(p, 0, 1)
			c.idle(35 * time.Second)
		}
		var late []byte
		c.pass = func(to int, packet []byte) bool {
			if h, _ := headerOf(packet); to == 0 && h.Type == wire.HelloAck {
				late = packet
			}
			return to == 1
		}
		r := c.post(p, 0, 2)
		for late == nil {
			c.step()
		}
		c.nodes[1].boot()
		c.pass = func(to int, _ []byte) bool { return to == 0 || p.Life() < c.nodes[1].eng[0].cfg.Life }
		for p.Life() != c.nodes[1].eng[0].cfg.Life {
			c.step()
		}
		c.deliver(0, late)
		c.step()
		c.pass = nil
		if got := c.done(r); known && got.Reason != session.PeerRestarted || !known && got.Outcome != Success {
			t.Errorf("known before: %v: the first operation: %+v", known, got)
		}
		c.write(p, 0, 3)
		if n := c.nodes[0].counted(PeersRestarted); known && n != 1 || !known && n != 0 {
			t.Errorf("known before: %v: %d restarts, want one if it was", known, n)
		}
	}
}

// An operation that is posted after a long stop of the initiator does not join those in
// flight before it, in a session that the target has forgotten meanwhile.
func TestNothingJoinsWhatWasInFlightBeforeAStop(t *testing.T) {
	c := newCable(t, session.Config{})
	p := c.peer(ethernet())
	c.write(p, 0, 1)
	c.pass = func(int, []byte) bool { return false }
	flying := c.post(p, 0, 2)
	c.nodes[0].eng[0].Step()
	for range 300 {
		c.now += int64(time.Second)
		for _, e := range c.nodes[1].eng {
			e.Step()
		}
	}
	if n := c.sessions(); n != 0 {
		t.Fatalf("the target still has %d sessions after 300 s", n)
	}
	c.pass = nil
	later := c.post(p, 0, 3)
	if got := c.done(later); got.Outcome != Success {
		t.Errorf("posted after the stop: %+v, want success", got)
	}
	if got := c.done(flying); got.Outcome != Unknown {
		t.Errorf("in flight during the stop: %+v, want unknown", got)
	}
}
