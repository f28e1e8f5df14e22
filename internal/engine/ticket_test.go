// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"encoding/binary"
	"math"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// wait makes the operation one that swaps 0 for 1 at once, or 2 for 1 when the word is 2.
func (o *worldOp) wait(op *Submission) {
	o.waits, o.fetch, o.out = true, false, make([]byte, 8)
	op.Verb, op.Opcode, op.Result = wire.VerbWait, uint8(atomic.Cswap), o.out
	compare := make([]byte, 8)
	compare[0] = byte(2 * o.w.rng.IntN(2))
	op.SetOperands(binary.LittleEndian.AppendUint64(nil, 1), compare)
	op.SetLimit(uint64(1 + o.w.rng.IntN(3_000_000)))
}

// release makes the condition of an operation hold, as the owner of the memory does.
func (w *world) release() {
	o, is := w.anyOp().(*worldOp)
	if is && o.waits && w.bytes[8*o.slot] == 0 {
		w.bytes[8*o.slot] = 2
		w.words.Changed()
	}
}

// newWaits returns a cable between nodes that know of operations which wait.
func newWaits(t testing.TB) (*cable, *Peer) {
	c := newCable(t, session.Config{GiveUp: 10 * time.Second, Features: wire.FeatureWaits})
	p := c.peer(ethernet())
	c.write(p, 1, 1)
	return c, p
}

// waitSwap posts a swap of 0 to v that waits in a word of node 1, for so many
// microseconds, or 0 for any time.
func (c *cable) waitSwap(p *Peer, word int, v, limit uint64) *outcomes {
	r := &outcomes{}
	op := c.nodes[0].ring.Claim()
	op.Peer, op.Context, op.Key, op.Offset, op.Count = p.ID(), r, 1, uint64(8*word), 1
	op.Verb, op.Opcode, op.Datatype, op.Flags = wire.VerbWait, uint8(atomic.Cswap), uint8(atomic.Uint64), 0
	op.Result = make([]byte, 8)
	op.SetOperands(binary.LittleEndian.AppendUint64(nil, v), make([]byte, 8))
	op.SetLimit(limit)
	op.Publish()
	return r
}

// set changes a word of node 1 as its owner does.
func (c *cable) set(word int, v uint64) {
	binary.LittleEndian.PutUint64(c.nodes[1].bytes[8*word:], v)
	c.nodes[1].region.Changed()
}

// waiting returns how many operations node 1 has.
func (c *cable) waiting() (n int) {
	for _, x := range c.nodes[1].exec {
		n += x.Usage().Waiting
	}
	return n
}

// until makes rounds until something holds.
func (c *cable) until(what string, done func() bool) {
	c.t.Helper()
	for range 100_000 {
		if done() {
			return
		}
		c.step()
	}
	c.t.Fatalf("never: %s", what)
}

var ranOnce, refused = Result{}, Result{Outcome: NotExecuted, Status: wire.StatusUnsupported}

// An operation waits, and ends in each of the ways in which it can; then neither side has
// anything of it.
func TestWaitEnds(t *testing.T) {
	c, p := newWaits(t)
	for name, x := range map[string]struct {
		limit uint64
		end   func(r *outcomes)
		want  Result
		word  uint64
	}{
		"runs":       {0, func(*outcomes) { c.set(0, 0) }, ranOnce, 7},
		"limit":      {1000, func(*outcomes) {}, Result{Outcome: NotExecuted, Reason: session.Cancelled}, 5},
		"no time":    {1, func(*outcomes) {}, Result{Outcome: NotExecuted, Reason: session.Cancelled}, 5},
		"recalled":   {0, func(r *outcomes) { p.Recall(r) }, Result{Outcome: NotExecuted, Reason: session.Cancelled}, 5},
		"withdrawn":  {0, func(r *outcomes) { p.Cancel(r) }, Result{Outcome: Unknown, Reason: session.Cancelled}, 5},
		"both":       {0, func(r *outcomes) { p.Recall(r); c.set(0, 0) }, ranOnce, 7},
		"long limit": {math.MaxUint64, func(*outcomes) { c.set(0, 0) }, ranOnce, 7},
	} {
		t.Run(name, func(t *testing.T) {
			c.t = t
			c.set(0, 5)
			r := c.waitSwap(p, 0, 7, x.limit)
			if x.limit != 1 {
				c.until("it waits", func() bool { return c.waiting() == 1 })
			}
			x.end(r)
			if got := c.done(r); got.Outcome != x.want.Outcome || got.Reason != x.want.Reason || c.word(0) != x.word {
				t.Errorf("%+v, word %d; want %+v, %d", got, c.word(0), x.want, x.word)
			}
			c.until("both forget it", func() bool { return c.waiting() == 0 && len(p.r.conn.tickets) == 0 })
			if c.set(0, 0); c.word(0) != 0 {
				t.Error("it ran after its end")
			}
		})
	}
}

// An operation that waits at a target which restarts ends as one in flight does: the
// session's end alone does not tell of the restart, the next hello-ack does.
func TestWaitMeetsRestart(t *testing.T) {
	c, p := newWaits(t)
	c.set(0, 5)
	r := c.waitSwap(p, 0, 7, 0)
	c.until("it waits", func() bool { return c.waiting() == 1 })
	c.nodes[1].boot()
	if got := c.done(r); got.Outcome != Restarted || got.Reason != session.PeerRestarted {
		t.Errorf("%+v", got)
	}
}

// A flush waits for what waits, and so does an operation with a fence.
func TestWaitHoldsFence(t *testing.T) {
	c, p := newWaits(t)
	c.set(0, 5)
	first := c.waitSwap(p, 0, 7, 0)
	c.until("it waits", func() bool { return c.waiting() == 1 })
	c.write(p, 3, 3) // others pass by
	r := &outcomes{}
	op := c.nodes[0].ring.Claim()
	op.Peer, op.Context, op.Key, op.Offset, op.Count = p.ID(), r, 1, 32, 1
	op.Verb, op.Opcode, op.Datatype, op.Flags = wire.VerbAtomic, uint8(atomic.Write), uint8(atomic.Uint64), FlagFence
	op.Result = nil
	op.SetOperands(binary.LittleEndian.AppendUint64(nil, 4), nil)
	op.Publish()
	c.idle(3 * time.Second)
	if len(r.all) > 0 || c.word(4) != 0 {
		t.Errorf("the fence did not hold: %+v", r.all)
	}
	c.set(0, 0)
	if got := c.done(first); got != ranOnce {
		t.Errorf("%+v", got)
	}
	if got := c.done(r); got != ranOnce || c.word(4) != 4 {
		t.Errorf("%+v", got)
	}
}

// A node of before, and one whose memory is another program's, get and take none.
func TestWaitWithOldNode(t *testing.T) {
	for _, features := range [][2]wire.Features{{0, wire.FeatureWaits}, {wire.FeatureWaits, 0}} {
		c := newCable(t, session.Config{})
		for i, f := range features {
			c.cfg.Features = f
			c.nodes[i].boot()
		}
		p := c.peer(ethernet())
		c.write(p, 1, 1)
		if got := c.done(c.waitSwap(p, 0, 7, 0)); got != refused || c.word(0) != 0 {
			t.Errorf("%+v, word %d", got, c.word(0))
		}
		if c.write(p, 1, 2); c.nodes[1].counted(SessionsAccepted) != 1 {
			t.Error("the session has ended")
		}
	}
}

// rewrite changes the frames of a type on their way.
func (c *cable) rewrite(side int, typ wire.Type, change func(payload []byte)) {
	c.pass = func(to int, packet []byte) bool {
		if h, ok := headerOf(packet); ok && to == side && h.Type == typ && packet[12] == 0x88 {
			frame := packet[14:]
			change(frame[wire.HeaderLen:])
			wire.Seal(frame, len(frame))
		}
		return true
	}
}

// Whatever a target says of an operation that waits, it ends once, and its end is kept in
// a bounded number of tickets.
func TestWaitLyingTarget(t *testing.T) {
	for name, lie := range map[string]func(n uint64, payload []byte){
		"another ticket": func(n uint64, b []byte) { binary.LittleEndian.PutUint32(b, uint32(n)*77) },
		"one ticket":     func(_ uint64, b []byte) { binary.LittleEndian.PutUint32(b, 77) },
		"any kind":       func(n uint64, b []byte) { b[4] = byte(n) },
		"a question":     func(_ uint64, b []byte) { b[4] = byte(wire.TicketAsk) },
	} {
		t.Run(name, func(t *testing.T) {
			c, p := newWaits(t)
			n := uint64(0)
			c.set(0, 5)
			c.rewrite(0, wire.Response, func(b []byte) {
				if len(b) >= wire.TicketLen {
					n++
					lie(n, b)
				}
			})
			var all []*outcomes
			for range 40 {
				all = append(all, c.waitSwap(p, 0, 7, 2_000_000))
				c.idle(time.Millisecond)
			}
			for _, r := range all {
				c.done(r)
			}
			c.idle(2 * time.Minute)
			for _, r := range all {
				if len(r.all) != 1 {
					t.Errorf("it ended %d times", len(r.all))
				}
			}
			if x := p.r.conn; x != nil && len(x.tickets) > 0 {
				t.Errorf("%d tickets are left", len(x.tickets))
			}
			if c.word(0) != 5 {
				t.Errorf("word %d", c.word(0))
			}
		})
	}
}

// A target that says for ever that an operation waits has the operation wait, and the
// caller that lets it go leaves.
func TestWaitDenyingTarget(t *testing.T) {
	c, p := newWaits(t)
	c.set(0, 5)
	r := c.waitSwap(p, 0, 7, 1000)
	c.rewrite(0, wire.Tickets, func(b []byte) {
		b[4] = byte(wire.TicketParked)
		clear(b[8:wire.TicketLen])
	})
	c.idle(time.Minute)
	if len(r.all) > 0 {
		t.Fatalf("%+v", r.all)
	}
	if p.Recall(r); !p.Cancel(r) {
		t.Error("it cannot be let go")
	}
	if got := c.done(r); got.Outcome != Unknown {
		t.Errorf("%+v", got)
	}
	c.write(p, 1, 9)
}

// another returns a peer of another endpoint of node 0, which posts from now on.
func (c *cable) another() *Peer {
	n := c.nodes[0]
	o := n.eng[0].NewOrigin(9)
	n.ring, _ = NewRing(1024, Contexts{})
	n.eng[0].AddRing(n.ring, o)
	p, err := o.NewPeer(ethernet(), 0, 0)
	if err != nil {
		c.t.Fatal(err)
	}
	return p
}

// An initiator that asks of what never was, that cancels what others have, and that asks
// and posts without end gets no more than its room, and harms nobody.
func TestWaitLyingInitiator(t *testing.T) {
	c, p := newWaits(t)
	c.set(0, 5)
	honest := c.waitSwap(p, 0, 7, 0)
	c.until("it waits", func() bool { return len(p.r.conn.tickets) == 1 })
	waits := p.r.conn.tickets[0]

	liar := c.another()
	c.write(liar, 1, 1)
	conn := liar.r.conn
	if conn == p.r.conn {
		t.Fatal("one session")
	}
	for _, kind := range []wire.TicketKind{wire.TicketAsk, wire.TicketCancel, wire.TicketTaken} {
		conn.tickets = append(conn.tickets, &ticket{psn: waits.psn, index: waits.index, kind: kind, due: true})
		for i := range 700 {
			conn.tickets = append(conn.tickets, &ticket{psn: uint32(i), index: uint8(i), kind: kind, due: true})
		}
	}
	c.nodes[0].eng[0].touch(conn, &conn.dirty)
	c.until("all are asked", func() bool { return !conn.ticketsDue() })
	conn.tickets = nil
	c.idle(time.Second)
	if len(honest.all) > 0 || c.waiting() != 1 {
		t.Errorf("another session ended it: %+v", honest.all)
	}
	var all []*outcomes
	for range 100 {
		all = append(all, c.waitSwap(liar, 0, 8, 0))
		c.step()
	}
	c.until("the room is full", func() bool { return c.waiting() == 1+64 })
	for _, r := range all[64:] {
		if got := c.done(r); got.Outcome != NotExecuted || got.Reason != session.Crowded {
			t.Errorf("%+v", got)
		}
	}
	c.set(0, 0)
	if got := c.done(honest); got != ranOnce || c.word(0) != 7 {
		t.Errorf("%+v, word %d", got, c.word(0))
	}
	liar.Close()
	c.idle(time.Minute)
	c.nodes[0].eng[0].Close()
	c.until("nothing waits", func() bool { return c.waiting() == 0 })
}
