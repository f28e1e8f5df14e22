// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"slices"
	"testing"

	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// require gives the endpoints of node 1 keys. Their number there is that of the regions,
// which have none: 0.
func (c *cable) require(keys ...*session.Key) {
	for _, e := range c.nodes[1].eng {
		e.cfg.Keys = func(uint16) (session.Keys, bool) { return keys, true }
	}
}

// An endpoint of several keys accepts a session with each of them, and with none only if
// that is one of them.
func TestEndpointOfSeveralKeys(t *testing.T) {
	one, two, three := session.NewKey([]byte("one"), 0), session.NewKey([]byte("two"), 0), session.NewKey([]byte("three"), 0)
	for name, k := range map[string]struct {
		keys []*session.Key
		ours *session.Key
		why  session.Reason
	}{
		"the first":              {[]*session.Key{one, two}, one, session.Alive},
		"the last":               {[]*session.Key{nil, one, two}, two, session.Alive},
		"none among keys":        {[]*session.Key{nil, one, two}, nil, session.Alive},
		"another among keys":     {[]*session.Key{nil, one, two}, three, session.RefusedOtherKey},
		"none to keys alone":     {[]*session.Key{one, two}, nil, session.RefusedKeyless},
		"a key to none of them":  {[]*session.Key{nil}, one, session.RefusedKey},
		"a key to an empty list": {nil, one, session.RefusedKey},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCable(t, session.Config{})
			c.require(k.keys...)
			c.nodes[0].eng[0].origin.SetKey(k.ours)
			r := c.done(c.post(c.peer(ethernet()), 0, 5))
			if ok := k.why == session.Alive; (r.Outcome == Success) != ok || r.Reason != k.why {
				t.Errorf("fate %v, %v; want success: %t, %v", r.Outcome, r.Reason, ok, k.why)
			}
		})
	}
}

// An endpoint with another key, or with a key on one side only, has no session: the
// operation fails as never executed, with the reason.
func TestKeyOfEndpoints(t *testing.T) {
	one, same, other := session.NewKey([]byte("one"), 0), session.NewKey([]byte("one"), 9), session.NewKey([]byte("other"), 0)
	for name, k := range map[string]struct {
		ours, theirs *session.Key
		why          session.Reason
	}{
		"none":         {nil, nil, session.Alive},
		"the same":     {same, one, session.Alive},
		"another":      {other, one, session.RefusedOtherKey},
		"none to one":  {nil, one, session.RefusedKeyless},
		"one to none":  {one, nil, session.RefusedKey},
		"to old nodes": {one, nil, session.Unproven},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCable(t, session.Config{})
			c.require(k.theirs)
			c.nodes[0].eng[0].origin.SetKey(k.ours)
			if name == "to old nodes" { // they skip the remainder
				c.pass = func(to int, packet []byte) bool {
					if frame := packet[14:]; to == 1 && wire.Type(frame[0]&15) == wire.Hello {
						frame = frame[:wire.Seal(frame, wire.HeaderLen+wire.HelloLen)]
						c.deliver(to, packet[:14+len(frame)])
						return false
					}
					return true
				}
			}
			p := c.peer(ethernet())
			r := c.done(c.post(p, 0, 5))
			ok := k.why == session.Alive
			if got := r.Outcome == Success; got != ok || r.Reason != k.why || !ok && r.Outcome != NotExecuted {
				t.Errorf("fate %v, %v; want success: %t, %v", r.Outcome, r.Reason, ok, k.why)
			}
			if got := c.word(0) == 5; got != ok {
				t.Errorf("the word is %d, the operation ran: %t, want %t", c.word(0), got, ok)
			}
			if n := c.nodes[1].counted(HellosUnauthorized); (n > 0) != (!ok && k.why != session.Unproven) {
				t.Errorf("%d hellos are counted as unauthorized, though the end is %v", n, k.why)
			}
		})
	}
}

// A captured handshake begins nothing, neither from another address nor by itself, and
// neither does one whose proof was taken off.
func TestKeyAgainstReplay(t *testing.T) {
	c := newCable(t, session.Config{})
	key := session.NewKey([]byte("key"), 0)
	c.require(key)
	c.nodes[0].eng[0].origin.SetKey(key)
	p := c.peer(ethernet())
	c.write(p, 0, 1)
	captured := slices.Clone(c.seen[1])
	stranger := wire.MAC{2, 9, 9, 9, 9, 9}
	for _, packet := range captured {
		c.deliver(1, packet)
		fromElsewhere := slices.Clone(packet)
		copy(fromElsewhere[6:], stranger[:])
		c.deliver(1, fromElsewhere)
		if frame := slices.Clone(packet[14:]); wire.Type(frame[0]&15) == wire.Hello {
			frame[wire.HeaderLen+20] = 0 // no options
			c.deliver(1, append(packet[:14:14], frame[:wire.Seal(frame, wire.HeaderLen+wire.HelloLen)]...))
		}
		for range 10 {
			c.step()
		}
	}
	if n := c.nodes[1].counted(SessionsAccepted); n != 1 {
		t.Errorf("%d sessions were accepted, want the one of the initiator", n)
	}
	if n := c.nodes[1].counted(HellosUnauthorized); n == 0 {
		t.Error("no hello without its proof was refused")
	}
	c.write(p, 0, 2)
	if c.word(0) != 2 {
		t.Errorf("the session does not go on: the word is %d, want 2", c.word(0))
	}
}

// A session goes on in another process only if its endpoint has there the key that the
// initiator has proven, whatever numbers the two processes have for keys.
func TestKeyAtTakeover(t *testing.T) {
	one, same, other := session.NewKey([]byte("one"), 0), session.NewKey([]byte("one"), 0), session.NewKey([]byte("other"), 0)
	for name, k := range map[string]struct {
		before *session.Key
		after  session.Keys
		goesOn bool
	}{
		"none": {nil, session.Keys{nil}, true}, "the same": {one, session.Keys{same}, true}, "another": {one, session.Keys{other}, false},
		"none any more": {one, nil, false}, "one by now": {nil, session.Keys{one}, false},
		"one of several": {one, session.Keys{nil, other, same}, true}, "none of several": {one, session.Keys{nil, other}, false},
		"none beside a key": {nil, session.Keys{other, nil}, true},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCable(t, session.Config{})
			c.require(k.before)
			c.nodes[0].eng[0].origin.SetKey(k.before)
			p := c.peer(ethernet())
			if r := c.done(c.post(p, 0, 5)); r.Outcome != Success {
				t.Fatalf("fate %v", r.Outcome)
			}
			c.require(k.after...)
			for _, e := range c.nodes[1].eng {
				e.Pause()
				all, err := e.Export()
				if err == nil {
					err = e.Import(all, nil)
				}
				if err != nil {
					t.Fatal(err)
				}
				e.Resume()
			}
			r := c.done(c.post(p, 0, 7))
			if (r.Outcome == Success) != k.goesOn || (c.word(0) == 7) != k.goesOn {
				t.Errorf("fate %v, %v, and the word is %d; want success: %t", r.Outcome, r.Reason, c.word(0), k.goesOn)
			}
		})
	}
}
