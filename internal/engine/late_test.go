// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// cut drops and keeps the requests to node 1, and drops everything else.
func (c *cable) cut(late *[][]byte) {
	c.pass = func(to int, packet []byte) bool {
		if h, ok := headerOf(packet); ok && to == 1 && h.Type == wire.Request {
			*late = append(*late, packet)
		}
		return false
	}
}

func headerOf(packet []byte) (wire.Header, bool) {
	frame, _, reason := wire.Decap(packet)
	if reason != wire.ReasonOK {
		return wire.Header{}, false
	}
	h, _, reason := wire.Parse(frame)
	return h, reason == wire.ReasonOK
}

// Late frames of an operation that was given up change nothing once a later operation has
// succeeded, whatever happened in between.
func TestLateFrames(t *testing.T) {
	gateway := wire.MAC{2, 0, 0, 0, 0, 0x77}
	tests := []struct {
		name string
		link wire.Link
		gap  time.Duration
		heal func(c *cable)
	}{
		{"at once", ethernet(), 0, nil},
		{"after the suspended session was given up", ethernet(), 61 * time.Second, nil},
		{"after an hour", ethernet(), time.Hour, nil},
		{"through another router", udp(), 0, func(c *cable) {
			c.pass = func(to int, packet []byte) bool {
				if to == 1 {
					copy(packet[6:], gateway[:])
				} else if wire.MAC(packet) == gateway { // packets to the old router are lost
					copy(packet, worldMACs[0][:])
				} else {
					return false
				}
				return true
			}
		}},
		{"on another queue", ethernet(), 0, func(c *cable) { c.steer = 1 }},
		{"on another queue, much later", ethernet(), 100 * time.Second, func(c *cable) { c.steer = 1 }},
	}
	for i := range 2 * len(tests) {
		test, unordered := tests[i/2], i%2 == 1
		t.Run(fmt.Sprintf("%s, ordered %t", test.name, !unordered), func(t *testing.T) {
			c := newCable(t, session.Config{GiveUp: time.Second, Features: wire.FeatureUnordered})
			c.nodes[0].eng[0].origin.unordered = unordered
			p := c.peer(test.link)
			c.write(p, 0, 1)
			var late [][]byte
			c.cut(&late)
			x := c.done(c.post(p, 0, 2))
			if x.Outcome != Unknown || x.Later == nil {
				t.Fatalf("in a partition: %+v", x)
			}
			c.idle(test.gap)
			c.pass = nil
			if test.heal != nil {
				test.heal(c)
			}
			c.write(p, 0, 3)
			if r := c.known(x.Later); r.Outcome == Restarted || r.Outcome == Success {
				t.Errorf("of an operation that never ran: %+v", r)
			} else if test.gap == 0 && r.Outcome != NotExecuted {
				t.Errorf("soon after the partition: %+v, want not executed", r)
			}
			if len(late) == 0 {
				t.Fatal("nothing to come late")
			}
			for _, packet := range late {
				c.deliver(1, packet)
			}
			c.idle(10 * time.Millisecond)
			if c.word(0) != 3 {
				t.Errorf("the word is %d, want 3: a late operation ran", c.word(0))
			}
			c.write(p, 0, 4)
		})
	}
}

// Everything that was ever sent is sent again, in order, at any later time: nothing
// runs twice, no session begins anew, and none is kept alive.
func TestReplayOfEverything(t *testing.T) {
	for _, gap := range []time.Duration{0, 5 * time.Second, 35 * time.Second, 3 * time.Hour} {
		t.Run(gap.String(), func(t *testing.T) {
			c := newCable(t, session.Config{GiveUp: time.Second})
			p := c.peer(ethernet())
			for i := range uint64(10) {
				c.write(p, 0, i)
			}
			first := c.seen[1]
			c.idle(35 * time.Second) // the session is closed as idle
			c.write(p, 0, 100)
			capture := append(first[:len(first):len(first)], c.seen[1]...)
			c.idle(gap)
			accepted := c.nodes[1].counted(SessionsAccepted)
			for range 3 {
				for _, packet := range capture {
					c.deliver(1, packet)
					c.step()
				}
			}
			c.idle(time.Second)
			if c.word(0) != 100 {
				t.Errorf("the word is %d, want 100", c.word(0))
			}
			if n := c.nodes[1].counted(SessionsAccepted); n != accepted {
				t.Errorf("%d sessions were begun by a replay", n-accepted)
			}
			for range 300 {
				c.idle(time.Second)
				for _, packet := range capture {
					c.deliver(1, packet)
				}
			}
			if n := c.sessions(); n != 0 {
				t.Errorf("a replay keeps %d sessions", n)
			}
			c.write(p, 0, 200)
		})
	}
}

// A hello of a session that ended is of no use, also while its cookie is good.
func TestReplayedHelloOfTheFormer(t *testing.T) {
	c := newCable(t, session.Config{GiveUp: time.Second})
	p := c.peer(ethernet())
	c.write(p, 0, 1)
	hellos := append([][]byte(nil), c.seen[1]...)
	p.r.conn.close(session.ClosedHere)
	c.idle(10 * time.Millisecond)
	if c.sessions() != 0 {
		t.Fatal("the session has not ended")
	}
	for _, packet := range hellos {
		if h, _ := headerOf(packet); h.Type == wire.Hello {
			c.deliver(1, packet)
			c.idle(time.Millisecond)
		}
	}
	if n := c.sessions(); n != 0 {
		t.Errorf("%d sessions begun by an old hello", n)
	}
	c.write(p, 0, 2)
	for _, packet := range hellos {
		c.deliver(1, packet)
		c.idle(time.Millisecond)
	}
	c.write(p, 0, 3)
	if n := c.nodes[1].counted(SessionsAccepted); n != 2 {
		t.Errorf("%d sessions accepted, want 2", n)
	}
}

// A frame that seems to come from the target itself, since a bit of its source address
// has changed on the way, does not send the answers there.
func TestOwnSourceAddress(t *testing.T) {
	c := newCable(t, session.Config{})
	p := c.peer(ethernet())
	c.write(p, 0, 1)
	c.pass = func(to int, packet []byte) bool {
		if h, _ := headerOf(packet); to == 1 && h.Type == wire.Request {
			copy(packet[6:12], worldMACs[1][:])
			c.pass = nil
		}
		return true
	}
	c.write(p, 0, 2)
	if n := c.nodes[0].counted(FramesResent); n != 0 {
		t.Errorf("%d requests were sent again, want none: their answers went astray", n)
	}
}

// A caller that comes back after a long pause, and posts to the engine itself, does not
// send operations that others have published by a session that has expired meanwhile: the
// target may have forgotten it.
func TestBeginAfterPause(t *testing.T) {
	c := newCable(t, session.Config{})
	n, p := c.nodes[0], c.peer(ethernet())
	c.write(p, 0, 1)
	for end := c.now + int64(time.Hour); c.now < end; c.now += int64(time.Second) { // the target goes on, alone
		for _, e := range c.nodes[1].eng {
			e.Step()
		}
	}
	var all []*outcomes
	for i := range 600 { // several frames
		all = append(all, c.post(p, i, 2))
	}
	s, r := n.eng[0].Begin(n.ring), &outcomes{}
	s.Peer, s.Context, s.Key, s.Offset, s.Count = p.ID(), r, 1, 0, 1
	s.Verb, s.Opcode, s.Datatype = wire.VerbFetch, wire.OpRead, uint8(atomic.Uint64)
	n.eng[0].Submit(n.ring)
	for i, r := range append(all, r) {
		if got := c.done(r); got.Outcome != Success {
			t.Fatalf("operation %d after the pause: %+v", i, got)
		}
	}
}
