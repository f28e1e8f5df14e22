// SPDX-License-Identifier: Apache-2.0

package share

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// The parts of an operation that has begun come through while those behind it have no
// room at the host, and all keep their order.
func TestPartsPassWhatHasNoRoom(t *testing.T) {
	w := newWorld(t)
	w.flights = 2
	mem := w.region(1, 3*MinArena)
	g := w.guest(Sizes{Entries: 64, Arena: MinArena, Arrivals: MinArrivals})
	var all []*outcome
	for i := range 12 {
		x := longOnes[0].operation // a write
		if x.operand = byte(i + 1); i%3 == 2 {
			x.count = 8
		}
		all = append(all, w.post(g.Engine, g.ring, func(s *engine.Submission) { x.fill(s, g.peer.ID(), 1) }))
	}
	for i, o := range all {
		w.until("completed", func() bool { return o.n > 0 })
		if o.last.Outcome != engine.Success {
			t.Fatalf("operation %d: %+v", i, o.last)
		}
	}
	if want := append(bytes.Repeat([]byte{12}, 8), bytes.Repeat([]byte{11}, len(mem)-8)...); !bytes.Equal(mem, want) {
		t.Errorf("memory has %d at the beginning and %d behind it, want 12 and 11", mem[0], mem[8])
	}
	if len(g.hostRing.aside) > 0 {
		t.Errorf("%d entries are aside", len(g.hostRing.aside))
	}
	g.idle(t)
}

// A host ring that is held goes on with what has begun: then it is drained, and another
// one goes on with what came behind that.
func TestHoldBetweenParts(t *testing.T) {
	w := newWorld(t)
	mem := w.region(1, 3*MinArena)
	g := w.guest(Sizes{Entries: 64, Arena: MinArena, Arrivals: MinArrivals})
	x := longOnes[0].operation
	post := func(value byte) *outcome {
		x.operand = value
		return w.post(g.Engine, g.ring, func(s *engine.Submission) { x.fill(s, g.peer.ID(), 1) })
	}
	first := post(1)
	w.until("a part is taken", func() bool { return len(g.hostRing.streams) == 1 && g.hostRing.Counts.Taken >= 3 })
	g.hostRing.Hold()
	var behind []*outcome
	for i := range 3 {
		behind = append(behind, post(byte(i+2)))
	}
	w.until("drained", g.hostRing.Drained)
	w.until("completed", func() bool { return first.n == 1 })
	if first.last.Outcome != engine.Success || mem[0] != 1 || mem[len(mem)-1] != 1 || behind[0].n > 0 {
		t.Fatalf("%+v, memory %d to %d, the one behind it has completed: %t", first.last, mem[0], mem[len(mem)-1], behind[0].n > 0)
	}
	text, err := json.Marshal(g.hostRing.Export())
	if err != nil {
		t.Fatal(err)
	}
	var s HostRingState
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	if len(s.Aside) == 0 || len(s.Peers) != 1 {
		t.Fatalf("%d entries were put aside and %d peers left, want some and one", len(s.Aside), len(s.Peers))
	}
	w.host.RemoveHostRing(g.hostRing)
	w.host.RemoveRing(g.hosts)
	doorbell := g.hostRing.doorbell
	g.hostRing = NewHostRing(g.theirs, doorbell, w.host, func(err error) { g.broken = err })
	g.hostRing.Restore(&s)
	g.hosts = engine.NewDirect(engine.NewFlights(64, nil), g.hostRing)
	origin := w.host.NewOrigin(1)
	w.host.AddHostRing(g.hostRing, 1)
	origin.Charge(g.hostRing)
	w.host.AddRing(g.hosts, origin)
	p, err := origin.NewPeer(link, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	g.hostRing.SetTarget(s.Peers[0].Number, &Target{Ring: g.hosts, Peer: p, Gone: func() {}})
	g.hostRing.Watch(s.Watches)
	for i, o := range behind {
		w.until("completed", func() bool { return o.n > 0 })
		if o.last.Outcome != engine.Success {
			t.Errorf("operation %d behind it: %+v", i, o.last)
		}
	}
	if mem[0] != 4 || mem[len(mem)-1] != 4 {
		t.Errorf("memory %d to %d, want 4", mem[0], mem[len(mem)-1])
	}
	g.idle(t)
}

// An operation whose next part does not come holds up nothing but what is behind it: the
// guest's other endpoints, other guests and the host go on. When the guest gives it up,
// what was never begun is not executed.
func TestPartThatDoesNotCome(t *testing.T) {
	w := newWorld(t)
	mem := w.region(1, 3*MinArena)
	w.region(2, 4096)
	sizes := Sizes{Entries: 64, Arena: MinArena, Arrivals: MinArrivals}
	g, other := w.guest(sizes), w.guest(sizes)
	x := longOnes[0].operation
	o := w.post(g.Engine, g.ring, func(s *engine.Submission) { x.fill(s, g.peer.ID(), 1) })
	w.until("a part is taken", func() bool { return len(g.hostRing.streams) == 1 && g.hostRing.Counts.Taken >= 3 })
	w.guests = w.guests[1:] // it has stopped
	add := func(e *engine.Engine, r *engine.Ring, p *engine.Peer) {
		t.Helper()
		y := operation{verb: wire.VerbFetch, op: atomic.Sum, datatype: atomic.Uint64, count: 1, operand: 1}
		if o := w.do(e, r, func(s *engine.Submission) { y.fill(s, p.ID(), 2) }); o.last.Outcome != engine.Success {
			t.Errorf("%+v", o.last)
		}
	}
	for range 100 {
		add(other.Engine, other.ring, other.peer)
		add(w.host, w.direct, w.peer)
	}
	if err := w.host.Check(); err != nil {
		t.Error(err)
	}
	if n := w.host.Usage().Requests.Lent; n > 0 {
		t.Errorf("%d buffers of the host are lent while the operation waits", n)
	}
	if !g.hostRing.Starved() || g.hostRing.Drained() {
		t.Errorf("starved: %t, drained: %t; want the first", g.hostRing.Starved(), g.hostRing.Drained())
	}
	if o.n > 0 || mem[len(mem)-1] != 0 {
		t.Errorf("the operation has completed %d times; the last byte is %d", o.n, mem[len(mem)-1])
	}
	w.guests = append(w.guests, g)
	if !g.peer.Cancel(o) {
		t.Fatal("cancel")
	}
	w.until("known", func() bool { return len(g.hostRing.streams) == 0 && len(g.hostRing.free) == len(g.hostRing.ops) })
	if o.last.Outcome != engine.Unknown || mem[0] != 1 || mem[len(mem)-1] != 0 {
		t.Errorf("%+v, memory %d to %d: want an unknown outcome, and the end unchanged", o.last, mem[0], mem[len(mem)-1])
	}
	for range 10 {
		w.step()
	}
	g.idle(t)
	if g.hostRing.Starved() || !g.hostRing.Drained() {
		t.Errorf("starved: %t, drained: %t; want the second", g.hostRing.Starved(), g.hostRing.Drained())
	}
	if r := w.do(g.Engine, g.ring, func(s *engine.Submission) { x.fill(s, g.peer.ID(), 1) }); r.last.Outcome != engine.Success || mem[len(mem)-1] != 1 {
		t.Errorf("the next one: %+v", r.last)
	}
}

// A guest that dies in the middle of long operations leaves nothing at its host, and
// nothing of what was not begun is executed. Others notice nothing.
func TestGuestDiesBetweenParts(t *testing.T) {
	w := newWorld(t)
	mem := w.region(1, 3*MinArena)
	w.region(2, 4096)
	sizes := Sizes{Entries: 64, Arena: MinArena, Arrivals: MinArrivals}
	g, other := w.guest(sizes), w.guest(sizes)
	for i := range 4 {
		x := longOnes[i].operation // of different kinds
		w.post(g.Engine, g.ring, func(s *engine.Submission) { x.fill(s, g.peer.ID(), 1) })
	}
	w.until("parts are taken", func() bool { return len(g.hostRing.streams) == 4 && g.hostRing.Counts.Taken >= 10 })
	w.guests = w.guests[1:]
	g.hostRing.Close()
	if n := len(g.hostRing.streams) + len(g.hostRing.aside); n > 0 || g.hostRing.lists.bytes > 0 || len(g.hostRing.free) < len(g.hostRing.ops)-g.hostRing.open.n {
		t.Errorf("%d operations are left, %d bytes of lists, %d of %d places are free and %d open", n, g.hostRing.lists.bytes, len(g.hostRing.free), len(g.hostRing.ops), g.hostRing.open.n)
	}
	if err := w.host.Check(); err != nil {
		t.Error(err)
	}
	y := operation{verb: wire.VerbFetch, op: atomic.Sum, datatype: atomic.Uint64, count: 1, operand: 1}
	for range 10 {
		if o := w.do(other.Engine, other.ring, func(s *engine.Submission) { y.fill(s, other.peer.ID(), 2) }); o.last.Outcome != engine.Success {
			t.Errorf("another guest's: %+v", o.last)
		}
	}
	if n := w.host.Usage().Requests.Lent; mem[len(mem)-1] != 0 || n > 0 {
		t.Errorf("the last byte is %d, and %d buffers are lent: want neither", mem[len(mem)-1], n)
	}
	g.guestRing.segment.h.posted.Add(5) // what it has posted last is not looked at
	for range 100 {
		w.step()
	}
}

// Whatever is said of the parts of an operation, it fails truly, or does what fits: parts
// that are too many, too long, outside the arena, on too few extents, of no operation, or
// cut in the middle of a word.
func TestPartsThatLie(t *testing.T) {
	write := engine.Entry{Cookie: 1, Peer: 1, Key: 1, Verb: wire.VerbWrite, Opcode: wire.OpWrite, Datatype: wire.Byte, Count: 4096, Flags: engine.FlagStream}
	sum := engine.Entry{Cookie: 1, Peer: 1, Key: 1, Verb: wire.VerbAtomic, Opcode: uint8(atomic.Sum), Datatype: uint8(atomic.Uint64), Count: 512, Flags: engine.FlagStream | engine.FlagExtents}
	part := func(of uint64, n uint32, p places) engine.Entry {
		x := engine.Entry{Cookie: 2, Key: of, Verb: VerbFeed, Count: n}
		*placesOf(&x) = p
		return x
	}
	for name, c := range map[string]struct {
		head  engine.Entry
		parts []engine.Entry
		fate  engine.Outcome // of the operation
	}{
		"too many elements":     {write, []engine.Entry{part(1, 4097, places{})}, engine.NotExecuted},
		"none":                  {write, []engine.Entry{part(1, 0, places{})}, engine.NotExecuted},
		"too many in the end":   {write, []engine.Entry{part(1, 2048, places{}), part(1, 2049, places{})}, engine.NotExecuted},
		"outside the arena":     {write, []engine.Entry{part(1, 2048, places{Operand: MinArena - 2047})}, engine.NotExecuted},
		"far outside the arena": {write, []engine.Entry{part(1, 2048, places{Operand: 1<<64 - 1024})}, engine.NotExecuted},
		"a word is cut":         {write, []engine.Entry{part(1, 2047, places{}), part(1, 2049, places{})}, engine.Unknown},
		"no extents":            {sum, []engine.Entry{part(1, 512, places{})}, engine.NotExecuted},
		"of none":               {write, []engine.Entry{part(9, 4096, places{}), {Key: 1, Verb: VerbSever}}, engine.NotExecuted},
		"severed twice":         {write, []engine.Entry{{Key: 1, Verb: VerbSever}, {Key: 1, Verb: VerbSever}}, engine.NotExecuted},
		"begun twice":           {write, []engine.Entry{write, part(1, 4096, places{})}, engine.Success},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.region(1, 4096)
			g := w.guest(Sizes{Entries: 16, Arena: MinArena, Arrivals: MinArrivals})
			w.guests = nil // its entries are made here
			var fates []engine.Outcome
			for i, x := range append([]engine.Entry{c.head}, c.parts...) {
				g.theirs.entries[i] = x
			}
			g.theirs.h.posted.Store(uint64(1 + len(c.parts)))
			w.until("all have completed", func() bool {
				return g.hostRing.Counts.Taken == uint64(1+len(c.parts)) && len(g.hostRing.free)+g.hostRing.open.n == len(g.hostRing.ops)
			})
			for i := range g.hostRing.completed {
				if x := &g.theirs.done[i]; x.Cookie == 1 {
					fates = append(fates, x.Outcome)
				}
			}
			if len(fates) == 0 || fates[len(fates)-1] != c.fate {
				t.Errorf("fates %v, want %v", fates, c.fate)
			}
			if err := w.host.Check(); err != nil || g.broken != nil {
				t.Error(err, g.broken)
			}
		})
	}
}
