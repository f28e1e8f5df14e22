// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
	"github.com/xdpfab/xdpfab/mr"
)

// A session ends in the middle of a long write with a signal, before the first parts are
// answered, and the rest goes on in the next session. The signal comes, once, if all
// parts have been executed; it never does if the first ones did not arrive, or were
// refused for want of the region, which is there again for the last one.
func TestSignalAfterFormerSession(t *testing.T) {
	const parts = 4 // in flight when the session ends, of many
	for _, x := range []struct {
		name             string
		unordered, named bool
		lost, refused    bool
		want             Outcome
	}{
		{name: "executed", want: Success},
		{name: "executed, named", named: true, want: Success},
		{name: "executed, unordered", unordered: true, named: true, want: Success},
		{name: "lost", lost: true, want: NotExecuted},
		{name: "lost, named", lost: true, named: true, want: NotExecuted},
		{name: "lost, unordered", lost: true, unordered: true, named: true, want: NotExecuted},
		{name: "refused", refused: true, want: Unknown},
		{name: "refused, named", refused: true, named: true, want: NotExecuted},
		{name: "refused, unordered", refused: true, unordered: true, want: Unknown},
	} {
		t.Run(x.name, func(t *testing.T) {
			c := newCable(t, session.Config{Window: parts, StaticWindow: true, GiveUp: 10 * time.Second,
				Features: wire.FeatureUnordered | wire.FeatureMemory | wire.FeatureSignals})
			c.nodes[0].eng[0].origin.unordered = x.unordered
			p, n := c.peer(ethernet()), c.nodes[1]
			c.write(p, 1, 1)
			old, incarnation := p.r.conn, uint32(0)
			if x.named {
				incarnation = n.region.Incarnation()
			}
			if x.refused {
				n.withdraw()
			}
			id, asked := old.slot.id, 0
			c.pass = func(to int, packet []byte) bool { // no answer of the session arrives, and perhaps no request
				h, ok := headerOf(packet)
				switch {
				case ok && to == 1 && h.Type == wire.Request && p.r.conn == old:
					asked++
					return !x.lost
				case ok && to == 0 && wire.SessionID(h.Session) == id:
					return false
				}
				return true
			}
			r := c.writeSignal(p, 20_000, incarnation)
			for asked < parts {
				c.step()
			}
			c.step()
			if x.refused {
				n.registerAnew()
			}
			c.forgotten(old)
			c.idle(100 * time.Millisecond)
			if p.r.conn == old || p.r.conn.spent() {
				t.Fatal("no session follows")
			}
			if x.want != Success && c.word(0) != 0 {
				t.Errorf("the signal is %d while parts have no answer", c.word(0))
			}
			c.pass = nil
			if got := c.done(r); got.Outcome != x.want {
				t.Errorf("%+v, want %v", got, x.want)
			}
			c.idle(10 * time.Millisecond)
			signal := uint64(0)
			if x.want == Success {
				signal = 1
			}
			if c.word(0) != signal {
				t.Errorf("in the end the signal is %d, want %d", c.word(0), signal)
			}
		})
	}
}

// forgotten has a session hear that its target does not know it.
func (c *cable) forgotten(old *conn) {
	c.t.Helper()
	known := old.ini.Identity()
	var payload [wire.ResetLen]byte
	(&wire.ResetMsg{Session: known.Session, Reason: wire.ResetUnknownSession}).Put(payload[:])
	old.receive(&wire.Header{Type: wire.Reset, Epoch: known.Epoch}, payload[:])
	if !old.doubted {
		c.t.Fatal("not in doubt")
	}
}

// Of a write that names no registration the first parts find no region, and the last one,
// which comes later, would: in one session, too, the signal has to wait for their
// answers.
func TestSignalOfRegionThatIsBack(t *testing.T) {
	c := newCable(t, session.Config{GiveUp: 10 * time.Second, Features: wire.FeatureMemory | wire.FeatureSignals})
	p, n := c.peer(ethernet()), c.nodes[1]
	c.write(p, 1, 1)
	first := session.FirstPSN(p.r.conn.ini.Identity().Epoch) + 1
	n.withdraw()
	away := true
	c.pass = func(to int, packet []byte) bool {
		h, ok := headerOf(packet)
		return !away || to == 1 && ok && h.PSN-first < 2
	}
	r := c.writeSignal(p, 4000, 0)
	for range 12 {
		c.step()
	}
	n.registerAnew()
	away = false
	if got := c.done(r); got != (Result{Outcome: NotExecuted, Status: wire.StatusNoKey}) {
		t.Errorf("%+v", got)
	}
	if c.idle(10 * time.Millisecond); c.word(0) != 0 {
		t.Errorf("the signal is %d, though two of three parts were refused", c.word(0))
	}
}

// withdraw ends the registration of the node's region.
func (n *cableNode) withdraw() {
	n.c.t.Helper()
	if err := n.region.Close(); err != nil {
		n.c.t.Fatal(err)
	}
}

// registerAnew has it back, by the same key.
func (n *cableNode) registerAnew() {
	n.c.t.Helper()
	m, err := mr.Adopt(n.bytes)
	if err == nil {
		n.region, err = n.table.Register(m, mr.Options{Key: &n.c.key, Access: mr.RemoteRead | mr.RemoteWrite})
	}
	if err != nil {
		n.c.t.Fatal(err)
	}
}

// The region is registered anew, with other memory, when all but the last part of a long
// write have been executed. If the write names the registration, its signal does not
// come. If it names none, it goes on in the new memory, as it was told: the signal comes,
// and the first parts were in the former memory.
func TestSignalBehindOtherMemory(t *testing.T) {
	for _, x := range []struct {
		name   string
		named  bool
		signal uint64
		want   Outcome
	}{{"named", true, 0, Unknown}, {"not named", false, 1, Success}} {
		t.Run(x.name, func(t *testing.T) {
			c := newCable(t, session.Config{GiveUp: 10 * time.Second, Features: wire.FeatureMemory | wire.FeatureSignals})
			p, n := c.peer(ethernet()), c.nodes[1]
			c.write(p, 1, 1)
			last, incarnation := session.FirstPSN(p.r.conn.ini.Identity().Epoch)+3, uint32(0)
			if x.named {
				incarnation = n.region.Incarnation()
			}
			c.pass = func(to int, packet []byte) bool {
				if h, ok := headerOf(packet); ok && to == 1 && h.Type == wire.Request && h.PSN == last {
					if c.word(2) != 0x0101010101010101 { // those before it have not been executed
						return false
					}
					c.pass = nil
					n.withdraw()
					n.bytes = make([]byte, len(n.bytes))
					n.registerAnew()
				}
				return true
			}
			if got := c.done(c.writeSignal(p, 4000, incarnation)); got.Outcome != x.want {
				t.Errorf("%+v, want %v", got, x.want)
			}
			if c.idle(10 * time.Millisecond); c.word(0) != x.signal || c.word(2) != 0 {
				t.Errorf("in the new memory the signal is %d, want %d, and the first word %#x", c.word(0), x.signal, c.word(2))
			}
		})
	}
}
