// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"encoding/binary"
	"net/netip"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// Two peers that are one endpoint share its session, also when one is an Ethernet
// address and the other an IP address; so their operations are in order.
func TestTwoAddresses(t *testing.T) {
	for _, second := range []wire.Link{ethernet(), udp()} {
		c := newCable(t, session.Config{})
		p, q := c.peer(ethernet()), c.peer(second)
		c.write(p, 0, 1)
		c.write(q, 0, 2)
		const words = 4096
		r := &outcomes{}
		op := c.nodes[0].ring.Claim()
		op.Peer, op.Context, op.Key, op.Offset, op.Count = p.ID(), r, 1, 0, words
		op.Verb, op.Opcode, op.Datatype, op.Flags = wire.VerbAtomic, uint8(atomic.Write), uint8(atomic.Uint64), 0
		op.SetOperands(make([]byte, 8*words), nil)
		op.Publish()
		c.write(q, words-1, 77)
		if len(r.all) == 0 || r.all[0].Outcome != Success {
			t.Errorf("the later operation completes before the earlier one: %+v", r.all)
		}
		if c.word(words-1) != 77 {
			t.Errorf("the last word is %d, want 77", c.word(words-1))
		}
		if n := c.sessions(); n != 1 {
			t.Errorf("%d sessions for one pair of endpoints", n)
		}
		p.Close()
		c.write(q, 0, 3)
		if r := c.done(c.post(p, 0, 4)); r.Outcome != NotExecuted || r.Reason != session.ClosedHere {
			t.Errorf("on a closed peer: %+v", r)
		}
		q.Close()
		c.idle(10 * time.Millisecond)
		if n := c.sessions(); n != 0 {
			t.Errorf("%d sessions after both were closed", n)
		}
	}
}

// Operations posted to two new addresses of one endpoint at the same time end up in one
// session too.
func TestTwoAddressesAtOnce(t *testing.T) {
	c := newCable(t, session.Config{})
	a, b := c.post(c.peer(ethernet()), 0, 1), c.post(c.peer(udp()), 1, 2)
	if x, y := c.done(a), c.done(b); x.Outcome != Success || y.Outcome != Success {
		t.Fatalf("%+v, %+v", x, y)
	}
	if n := c.sessions(); n != 1 {
		t.Errorf("%d sessions", n)
	}
}

// After a restart the addresses of an endpoint find together again, and each tells
// of the restart once.
func TestTwoAddressesRestart(t *testing.T) {
	c := newCable(t, session.Config{})
	p, q := c.peer(ethernet()), c.peer(udp())
	c.write(p, 0, 1)
	c.write(q, 0, 2)
	c.idle(35 * time.Second)
	c.nodes[1].boot()
	for _, x := range []*Peer{q, p} {
		if r := c.done(c.post(x, 0, 3)); r.Reason != session.PeerRestarted {
			t.Errorf("first use after the restart: %+v", r)
		}
		c.write(x, 0, 4)
	}
	if n := c.sessions(); n != 1 {
		t.Errorf("%d sessions", n)
	}
}

// Names that hear of a restart at the same time find together before there is a second
// session, which would end the first.
func TestTwoAddressesRestartAtOnce(t *testing.T) {
	c := newCable(t, session.Config{})
	p, q := c.peer(ethernet()), c.peer(udp())
	c.write(p, 0, 1)
	c.write(q, 0, 2)
	for range 3 {
		c.idle(35 * time.Second)
		c.nodes[1].boot()
		for _, r := range []*outcomes{c.post(q, 0, 3), c.post(p, 0, 3)} {
			if got := c.done(r); got.Reason != session.PeerRestarted {
				t.Errorf("first use after the restart: %+v", got)
			}
		}
		a, b := c.post(p, 0, 4), c.post(q, 0, 5)
		c.done(a)
		c.done(b)
		if n := c.nodes[1].counted(SessionsAccepted); n != 1 {
			t.Errorf("%d sessions accepted", n)
		}
	}
}

// A peer whose next hop has changed is reached through the new one, by the session
// that there is.
func TestSetLink(t *testing.T) {
	c := newCable(t, session.Config{})
	p := c.peer(udp())
	c.write(p, 0, 1)
	router := wire.MAC{2, 0, 0, 0, 0, 0x55}
	c.pass = func(to int, packet []byte) bool { // only packets to the router pass
		if to == 1 {
			ok := wire.MAC(packet) == router
			copy(packet, worldMACs[1][:])
			return ok
		}
		return true
	}
	r := c.post(p, 0, 2)
	c.idle(time.Second)
	if len(r.all) > 0 {
		t.Fatalf("%+v without a way", r.all)
	}
	l := udp()
	l.Remote = router
	if err := p.SetLink(l); err != nil {
		t.Fatal(err)
	}
	before := c.now
	if got := c.done(r); got.Outcome != Success {
		t.Fatalf("%+v", got)
	}
	if took := time.Duration(c.now - before); took > 20*time.Millisecond {
		t.Errorf("reached through the new hop after %v", took)
	}
	if n := c.nodes[1].counted(SessionsAccepted); n != 1 {
		t.Errorf("%d sessions", n)
	}
	if err := p.SetLink(ethernet()); err == nil {
		t.Error("another encapsulation is taken")
	}
}

// An address whose path has changed is asked whether it is still one of the endpoint's;
// meanwhile and afterwards operations stay in order, in one session.
func TestAddressIsAsked(t *testing.T) {
	c := newCable(t, session.Config{})
	p, q := c.peer(ethernet()), c.peer(udp())
	c.write(p, 0, 1)
	c.write(q, 0, 2)
	if p.r != q.r {
		t.Fatal("two addresses of one endpoint are apart")
	}
	hellos := c.nodes[1].counted(Hellos)
	if err := q.SetLink(udp()); err != nil {
		t.Fatal(err)
	}
	a, b := c.post(q, 0, 3), c.post(p, 0, 4)
	c.done(a)
	c.done(b)
	if c.word(0) != 4 {
		t.Errorf("the word is %d, want 4: operations changed places", c.word(0))
	}
	c.idle(time.Second)
	if c.nodes[1].counted(Hellos) == hellos {
		t.Error("an address that moved is not asked whose it is")
	}
	if p.r != q.r || q.asked != nil {
		t.Error("an address that was asked does not mean what it meant")
	}
	if n := c.nodes[1].counted(SessionsAccepted); n != 1 {
		t.Errorf("%d sessions", n)
	}
}

// An address that has moved to another node names that node: operations that waited for
// it fail, and the other addresses of the endpoint go on meaning the endpoint.
func TestAddressMovesToAnotherNode(t *testing.T) {
	c := newCable(t, session.Config{})
	p, q := c.peer(ethernet()), c.peer(udp())
	c.write(p, 0, 1)
	c.write(q, 0, 2)
	other := newCable(t, session.Config{}).nodes[1] // a node elsewhere, to which the address moves
	for i, port := range other.ports {
		port.node = &cableNode{c: c, side: 1}
		other.eng[i].cfg.Life = 12345 << 1
	}
	c.pass = func(to int, packet []byte) bool {
		if h, _ := headerOf(packet); to == 1 && h.Type == wire.Hello {
			other.ports[0].in = append(other.ports[0].in, packet)
			other.eng[0].Step()
			return false
		}
		return true
	}
	var watched outcomes
	c.watch(q, &watched)
	if err := q.SetLink(udp()); err != nil {
		t.Fatal(err)
	}
	c.idle(time.Second)
	if len(watched.all) != 1 || watched.all[0].Outcome != Restarted {
		t.Errorf("a watch by the address: %+v, want restarted", watched.all)
	}
	if p.r == q.r {
		t.Error("an address that is another node's means what it meant")
	}
	c.write(p, 0, 3)
	if n := c.nodes[1].counted(SessionsAccepted); n != 1 {
		t.Errorf("%d sessions", n)
	}
}

// An address reports at its first use that its endpoint has restarted, if the target at
// its new path said so while no operation waited.
func TestAddressMovesToAnotherLife(t *testing.T) {
	c := newCable(t, session.Config{})
	p, q := c.peer(ethernet()), c.peer(udp())
	c.write(p, 0, 1)
	c.write(q, 0, 2)
	former := q.r
	c.nodes[1].boot()
	if err := q.SetLink(udp()); err != nil {
		t.Fatal(err)
	}
	for deadline := c.now + int64(time.Second); q.r == former; c.step() {
		if c.now > deadline {
			t.Fatal("the address still stands for the former life")
		}
	}
	for _, x := range []*Peer{q, p} {
		if r := c.done(c.post(x, 0, 3)); r.Reason != session.PeerRestarted {
			t.Errorf("first use after the restart: %+v", r)
		}
		c.write(x, 0, 4)
	}
	if p.r != q.r {
		t.Error("the addresses of one endpoint are apart")
	}
	if n := c.nodes[1].counted(SessionsAccepted); n != 1 {
		t.Errorf("%d sessions", n)
	}
}

// A stranger's sessions leave room for others, whatever it does.
func TestSessionsAreShared(t *testing.T) {
	hello := func(c *cable, mac wire.MAC, i int) *target {
		e := c.nodes[1].eng[0]
		src := wire.Source{Local: worldMACs[1], Remote: mac}
		var h wire.Header
		m := wire.HelloMsg{Nonce: uint64(i), Origin: uint64(i) + 1<<32, Serial: 1, Session: uint32(i), MaxFrame: 1500, Window: 64}
		p, _ := e.pairs.own(e, &m)
		var ack wire.HelloAckMsg
		e.accept(&h, &m, &src, p, nil, &ack)
		return p.current
	}
	macOf := func(i int) (m wire.MAC) {
		m[0] = 2
		binary.LittleEndian.PutUint32(m[1:], uint32(i))
		return m
	}
	t.Run("one stranger", func(t *testing.T) {
		c := newCable(t, session.Config{})
		for i := range 5000 {
			hello(c, macOf(1), i)
		}
		p := c.peer(ethernet())
		c.write(p, 0, 1)
		for i := range 5000 {
			hello(c, macOf(1), 5000+i)
		}
		c.write(p, 0, 2)
		if n := c.nodes[0].counted(SessionsOpened); n != 1 {
			t.Errorf("the honest session was put out: %d were opened", n)
		}
	})
	t.Run("a stranger of many addresses", func(t *testing.T) {
		c := newCable(t, session.Config{})
		for i := range 5000 {
			hello(c, macOf(i), i)
		}
		c.idle(2 * time.Second)
		c.write(c.peer(ethernet()), 0, 1)
	})
}

// Addresses that stay with an endpoint while another one of it moves to another node
// go on sharing its session.
func TestAddressesLeftBehind(t *testing.T) {
	c := newCable(t, session.Config{})
	third := udp()
	third.RemoteIP = netip.MustParseAddr("10.0.0.3")
	p, q, s := c.peer(udp()), c.peer(third), c.peer(ethernet())
	for _, x := range []*Peer{p, q, s} { // the last one to be met serves the next session
		c.write(x, 0, 1)
	}
	c.idle(35 * time.Second)
	other := newCable(t, session.Config{}).nodes[1]
	for i, port := range other.ports {
		port.node = &cableNode{c: c, side: 1}
		other.eng[i].cfg.Life = 12345 << 1
	}
	c.pass = func(to int, packet []byte) bool {
		if to == 1 && !isUDP(packet) {
			other.ports[0].in = append(other.ports[0].in, packet)
			other.eng[0].Step()
			return false
		}
		return true
	}
	if r := c.done(c.post(s, 0, 2)); r.Reason != session.PeerRestarted {
		t.Fatalf("on the address that is another node's: %+v", r)
	}
	for range 3 {
		c.write(p, 0, 3)
		c.write(q, 0, 4)
	}
	if p.r != q.r || p.r == s.r {
		t.Errorf("the two that stayed are together: %v, the third is with them: %v", p.r == q.r, p.r == s.r)
	}
	if n := c.sessions(); n != 1 {
		t.Errorf("%d sessions", n)
	}
}

func isUDP(packet []byte) bool { return packet[12] == 8 && packet[13] == 0 }

// A session does not use an address that was closed, since its path is not followed
// any more.
func TestClosedAddressIsAvoided(t *testing.T) {
	second := udp()
	second.RemoteIP = netip.MustParseAddr("10.0.0.3")
	for _, test := range []struct {
		name          string
		closed, stays wire.Link
		watch         bool
	}{
		{"of the same encapsulation", udp(), second, false},
		{"of another one", udp(), ethernet(), false},
		{"watched", udp(), ethernet(), true},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := newCable(t, session.Config{})
			q, p := c.peer(test.stays), c.peer(test.closed)
			c.write(p, 0, 1)
			c.write(q, 0, 2)
			var watched outcomes
			if test.watch {
				c.watch(q, &watched)
			}
			p.Close()
			c.pass = func(to int, packet []byte) bool {
				return to != 1 || !isUDP(packet) || netip.AddrFrom4([4]byte(packet[30:])) != test.closed.RemoteIP
			}
			if !test.watch {
				c.write(q, 0, 3)
			}
			c.idle(10 * time.Second)
			if len(watched.all) > 0 {
				t.Errorf("a watch of a live peer: %+v", watched.all)
			}
			if n := c.nodes[0].counted(SessionsFailed); n != 0 {
				t.Errorf("%d sessions failed", n)
			}
		})
	}
}

// An address that is closed while the endpoint, restarted, is asked for a session
// leaves nothing behind.
func TestClosedWhileConnecting(t *testing.T) {
	c := newCable(t, session.Config{})
	p, q := c.peer(udp()), c.peer(ethernet())
	c.write(p, 0, 1)
	c.write(q, 0, 2)
	c.idle(35 * time.Second)
	c.nodes[1].boot()
	gone := p.r.peers[0]
	stays := p
	if gone == p {
		stays = q
	}
	c.pass = func(to int, _ []byte) bool { return to == 1 }
	r := c.post(stays, 0, 3)
	for stays.r.conn.spent() {
		c.step()
	}
	gone.Close()
	c.pass = nil
	if got := c.done(r); got.Reason != session.PeerRestarted {
		t.Errorf("first use after the restart: %+v", got)
	}
	c.write(stays, 0, 4)
	stays.Close()
	c.idle(time.Second)
	if n := c.sessions(); n != 0 {
		t.Errorf("%d sessions after both were closed", n)
	}
	if n := len(stays.origin.remotes); n != 0 {
		t.Errorf("%d remotes after both were closed", n)
	}
}

// A peer's path may change while the engine takes the change before.
func TestSetLinkMeanwhile(t *testing.T) {
	c := newCable(t, session.Config{})
	p := c.peer(udp())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 100 {
			if err := p.SetLink(udp()); err != nil {
				t.Error(err)
			}
		}
	}()
	for running := true; running; c.step() {
		select {
		case <-done:
			running = false
		default:
		}
	}
	c.write(p, 0, 1)
}

// An address that was told of a restart is not told again by the session that it
// takes to get through to the new life.
func TestRestartIsToldOnce(t *testing.T) {
	c := newCable(t, session.Config{})
	a, b := c.peer(ethernet()), c.peer(udp())
	restarted := func(r *outcomes) {
		t.Helper()
		if got := c.done(r); got.Outcome != NotExecuted || got.Reason != session.PeerRestarted {
			t.Fatalf("%+v, want not executed, %v", got, session.PeerRestarted)
		}
	}
	c.write(a, 0, 1)
	c.write(b, 0, 1)
	c.idle(35 * time.Second)
	c.nodes[1].boot()
	restarted(c.post(b, 0, 2)) // a is left behind, and belongs to the former life still
	c.idle(35 * time.Second)
	c.nodes[1].boot()
	// Both are challenged, and then there is no room.
	acks := 0
	c.pass = func(to int, packet []byte) bool {
		if h, _ := headerOf(packet); to == 0 && h.Type == wire.HelloAck {
			if acks++; acks == 2 {
				c.nodes[1].refuse = wire.HelloFull
			}
		}
		return true
	}
	ra, rb := c.post(a, 0, 3), c.post(b, 0, 3)
	restarted(rb) // a is answered first, and b joins it
	if got := c.done(ra); got.Reason != session.RefusedFull {
		t.Fatalf("%+v, want %v", got, session.RefusedFull)
	}
	c.pass, c.nodes[1].refuse = nil, wire.HelloAccepted
	c.write(b, 0, 4)
}
