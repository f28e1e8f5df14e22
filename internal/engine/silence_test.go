// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// Of a target that was given up it is known for how long it was silent, how many packets
// it did not answer, whether it had answered before, and the way: over all sessions that
// it did not answer, until it answers again.
func TestSilence(t *testing.T) {
	for _, link := range []wire.Link{ethernet(), udp()} {
		c := newCable(t, session.Config{GiveUp: time.Second})
		p := c.peer(link)
		known := func() *Silence { return p.origin.Silence(p.ID()) }
		asked := uint64(0)
		mute := func(to int, packet []byte) bool {
			if h, ok := headerOf(packet); ok && to == 1 && (h.Type == wire.Hello || h.Type == wire.Request) {
				asked++
			}
			return false
		}
		fails := func(outcome Outcome, answered bool, atLeast, atMost time.Duration) {
			t.Helper()
			if x := c.done(c.post(p, 0, 1)); x.Outcome != outcome {
				t.Fatalf("of a silent target: %+v", x)
			}
			k := known()
			// the hello of the session that asks on may have left
			if k == nil || k.Long || k.Answered != answered || k.For < atLeast || k.For > atMost || asked-k.Packets > 1 || k.Link != p.Link() {
				t.Fatalf("known is %+v; want answered %t, for %v to %v, %d packets, by %+v", k, answered, atLeast, atMost, asked, p.Link())
			}
		}
		if known() != nil {
			t.Fatalf("before anything was sent: %+v", known())
		}
		c.pass = mute
		fails(NotExecuted, false, time.Second, 2*time.Second)
		c.idle(10 * time.Second)
		fails(NotExecuted, false, 12*time.Second, 14*time.Second)
		c.pass = nil
		c.write(p, 0, 2)
		c.idle(10 * time.Second)
		c.pass, asked = mute, 0
		fails(Unknown, true, time.Second, 2*time.Second)
		fails(NotExecuted, true, 2*time.Second, 4*time.Second)
		if p.Close(); known() != nil {
			t.Errorf("of a closed peer: %+v", known())
		}
	}
}

// A target that forgets the session, refuses the next one, and falls silent then is
// called silent, with what is known of that.
func TestSilenceAfterRefusal(t *testing.T) {
	c := newCable(t, session.Config{GiveUp: time.Second})
	p := c.peer(ethernet())
	c.write(p, 0, 1)
	c.nodes[1].boot()
	c.nodes[1].refuse = wire.HelloNoEndpoint
	refused := 0
	c.pass = func(to int, packet []byte) bool {
		h, ok := headerOf(packet)
		if ok && to == 0 && h.Type == wire.HelloAck {
			refused++
		}
		return refused < 4
	}
	if x := c.done(c.post(p, 0, 2)); x.Outcome != Unknown || x.Reason != session.GaveUp {
		t.Errorf("in flight: %+v", x)
	}
	if k := p.origin.Silence(p.ID()); k == nil || !k.Answered || k.Packets == 0 || k.For > time.Second {
		t.Errorf("known is %+v after %d refusals", k, refused)
	}
}

// That long frames got no answer is known as well: those of many operations, and those
// whose answer is long.
func TestSilenceOfLongFrames(t *testing.T) {
	for name, count := range map[string]int{"one": 1, "many": 200} {
		c := newCable(t, session.Config{GiveUp: time.Second})
		p := c.peer(ethernet())
		c.write(p, 0, 1)
		c.pass = func(int, []byte) bool { return false }
		var last *outcomes
		for range count {
			last = c.post(p, 0, 1)
		}
		c.done(last)
		if k := p.origin.Silence(p.ID()); k == nil || k.Long != (count > 1) {
			t.Errorf("%s: %+v", name, k)
		}
	}
}
