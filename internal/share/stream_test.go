// SPDX-License-Identifier: Apache-2.0

package share

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/wire"
	"github.com/xdpfab/xdpfab/mr"
)

// touches counts what an observer of a region is told.
type touches struct{ reads, writes int }

func (o *touches) Touched(reads, writes, _, _ int) {
	o.reads, o.writes = o.reads+reads, o.writes+writes
}
func (o *touches) Closed() {}

// long is an operation that does not fit the arena, whatever its length in bytes is.
func long(verb wire.Verb, op atomic.Op, dt atomic.Datatype, count int) operation {
	return operation{verb: verb, op: op, datatype: dt, count: uint32(count), operand: 1}
}

var longOnes = []struct {
	name string
	operation
}{
	{"write", long(wire.VerbWrite, atomic.Write, atomic.Uint8, 3*MinArena)},
	{"read", long(wire.VerbRead, atomic.Read, atomic.Uint8, 3*MinArena)},
	{"sum", long(wire.VerbAtomic, atomic.Sum, atomic.Uint64, 3*MinArena/8)},
	{"fetch", long(wire.VerbFetch, atomic.Sum, atomic.Uint64, 3*MinArena/8)},
	{"fetch of bytes", long(wire.VerbFetch, atomic.Bxor, atomic.Uint8, 3*MinArena)},
	{"load", long(wire.VerbFetch, atomic.Read, atomic.Uint64, 3*MinArena/8)},
	{"compare", long(wire.VerbCompare, atomic.Cswap, atomic.Uint64, 3*MinArena/8)},
	{"compare of 16 bytes", long(wire.VerbCompare, atomic.CswapNE, atomic.Uint128, 3*MinArena/16)},
	{"sum of 32 bytes", long(wire.VerbFetch, atomic.Sum, atomic.LongDoubleComplex, 3*MinArena/32)},
}

// A guest's operation that is longer than the arena is one operation: it does what that
// of the host does, is counted once, and leaves nothing behind.
func TestLongOperationIsOne(t *testing.T) {
	for _, c := range longOnes {
		for _, way := range []string{"", ", in pieces", ", at an odd place", ", on extents"} {
			if c.verb.Transfer() && way == ", on extents" || !c.verb.Transfer() && way == ", at an odd place" {
				continue
			}
			t.Run(c.name+way, func(t *testing.T) {
				w := newWorld(t)
				const size = 3*MinArena + 64
				ours, theirs := w.region(1, size), w.region(2, size)
				random(ours)
				copy(theirs, ours)
				var seen [2]touches
				for _, r := range w.table.All() {
					r.Observe(&seen[r.Key()-1])
				}
				g := w.guest(Sizes{Entries: 16, Arena: MinArena, Arrivals: MinArrivals})
				x := c.operation
				switch way {
				case ", in pieces":
					x.inPieces = true
				case ", at an odd place":
					x.offset = 5
				case ", on extents":
					x.extents = scattered(x.count, c.datatype.Size())
				}
				a := w.do(w.host, w.direct, func(s *engine.Submission) { x.fill(s, w.peer.ID(), 1) })
				b := w.do(g.Engine, g.ring, func(s *engine.Submission) { x.fill(s, g.peer.ID(), 2) })
				if a.last.Outcome != engine.Success || b.last.Outcome != a.last.Outcome || b.last.Length != a.last.Length || b.last.Flags != a.last.Flags {
					t.Fatalf("%+v, want %+v", b.last, a.last)
				}
				if !bytes.Equal(a.data, b.data) {
					t.Error("the results differ")
				}
				if !bytes.Equal(ours, theirs) {
					t.Error("the memories differ")
				}
				if seen[1] != seen[0] || x.extents == nil && seen[1].reads+seen[1].writes != 1 {
					t.Errorf("counted %+v, of the host %+v", seen[1], seen[0])
				}
				g.idle(t)
			})
		}
	}
}

// A long operation whose last element lies beyond its region is refused as a whole.
func TestLongOperationIsRefusedWhole(t *testing.T) {
	for _, c := range longOnes {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			mem := w.region(2, int(c.count)*c.datatype.Size()-16)
			random(mem)
			before := bytes.Clone(mem)
			var seen touches
			w.table.All()[0].Observe(&seen)
			g := w.guest(Sizes{Entries: 16, Arena: MinArena, Arrivals: MinArrivals})
			o := w.do(g.Engine, g.ring, func(s *engine.Submission) { c.fill(s, g.peer.ID(), 2) })
			if o.last.Outcome != engine.NotExecuted || o.last.Status != wire.StatusOutOfBounds {
				t.Errorf("fate %d, status %v: want not executed, out of bounds", o.last.Outcome, o.last.Status)
			}
			if !bytes.Equal(mem, before) || seen != (touches{}) {
				t.Errorf("memory has changed, or was counted: %+v", seen)
			}
			g.idle(t)
		})
	}
}

// idle checks that nothing is left of the guest's operations, on either side.
func (g *guest) idle(t *testing.T) {
	t.Helper()
	if len(g.hostRing.free) != len(g.hostRing.ops) || len(g.hostRing.streams) > 0 || g.hostRing.lists.bytes != 0 || g.hostRing.open.bytes != 0 {
		t.Errorf("%d of %d operations are free at the host, %d come in parts, %d bytes of lists, %d open", len(g.hostRing.free), len(g.hostRing.ops), len(g.hostRing.streams), g.hostRing.lists.bytes, g.hostRing.open.bytes)
	}
	c := g.guestRing
	if at, ok := c.space.get(c.space.largest()); !ok {
		t.Error("a part of the arena is not given back")
	} else {
		c.space.put(at, c.space.largest())
	}
	if g.broken != nil {
		t.Error(g.broken)
	}
}

func random(b []byte) {
	r := rand.New(rand.NewPCG(7, 8))
	for i := range b {
		b[i] = byte(r.Uint32())
	}
}

// scattered divides count elements into extents of many lengths.
func scattered(count uint32, size int) (all []mr.Extent) {
	r := rand.New(rand.NewPCG(9, 10))
	for at := uint32(0); at < count; {
		n := min(count-at, []uint32{1, 1, 2, 3, 100, 4000}[r.IntN(6)])
		all = append(all, mr.Extent{Offset: uint64(at) * uint64(size), Count: n})
		at += n
	}
	return all
}

// scribbleStream makes an entry that begins an operation in parts, or is a part of one,
// or the end of one.
func (g *guest) scribbleStream(x *engine.Entry, r *rand.Rand) {
	verbs := []wire.Verb{wire.VerbAtomic, wire.VerbFetch, wire.VerbCompare, wire.VerbWrite, wire.VerbRead, wire.VerbSend}
	tag := uint64(r.IntN(4))
	*x = engine.Entry{Cookie: 8 + uint64(r.IntN(8)), Key: tag, Verb: VerbFeed, Count: 1 + uint32(r.IntN(900))}
	switch *placesOf(x) = (places{Operand: uint64(r.IntN(9000)), Compare: uint64(r.IntN(9000)), Result: uint64(r.IntN(MinArena)), ExtentCount: uint32(r.IntN(3))}); r.IntN(4) {
	case 0:
		*x = engine.Entry{Cookie: tag, Key: 2, Offset: uint64(r.IntN(5000)), Count: 1 + uint32(r.IntN(2000)), Peer: 1, Verb: verbs[r.IntN(len(verbs))],
			Opcode: uint8(atomic.Sum), Datatype: uint8(atomic.Uint8), Flags: engine.FlagStream}
		if x.Verb == wire.VerbWrite || x.Verb == wire.VerbRead {
			x.Transfer(x.Verb, x.Count)
		} else if r.IntN(4) == 0 {
			x.Flags |= engine.FlagExtents
		}
	case 1:
		if r.IntN(4) == 0 {
			*x = engine.Entry{Key: tag, Verb: VerbSever}
		}
	}
}

// In a partition that begins at any moment, the outcome of a long operation is told as it
// is: one that may become known later does, with the whole result, and leaves nothing
// behind.
func TestLongOperationInPartition(t *testing.T) {
	for _, verb := range []wire.Verb{wire.VerbFetch, wire.VerbAtomic} {
		succeeded, later := 0, 0
		for steps := range 40 {
			w := newWorld(t)
			x := long(verb, atomic.Sum, atomic.Uint64, 3*MinArena/2/8)
			mem := w.region(2, 8*int(x.count))
			random(mem)
			before := bytes.Clone(mem)
			g := w.guest(Sizes{Entries: 16, Arena: MinArena, Arrivals: MinArrivals})
			o := w.post(g.Engine, g.ring, func(s *engine.Submission) { x.fill(s, g.peer.ID(), 2) })
			for range steps {
				w.step()
			}
			w.cut = true
			w.until("given up", func() bool { w.now += 1e8; return o.n > 0 })
			w.cut = false
			r, data := o.last.Result(o.later), o.data
			if o.later != nil {
				later++
				w.until("known", func() bool {
					select {
					case <-o.later.Done():
						return true
					default:
						return false
					}
				})
				r, data = o.later.Outcome()
			}
			if r.Outcome == engine.Success {
				if o.later != nil {
					succeeded++
				}
				if mem[len(mem)-8] != before[len(before)-8]+1 || mem[0] != before[0]+1 {
					t.Errorf("%v, %d steps: success, and memory is %x", verb, steps, mem[len(mem)-8:])
				}
				if verb.Returns() && !bytes.Equal(data, before) {
					t.Errorf("%v, %d steps: the result is wrong from %d on, of %d", verb, steps, differ(data, before), len(data))
				}
			} else if r.Outcome == engine.NotExecuted && !bytes.Equal(mem, before) {
				t.Errorf("%v, %d steps: not executed, and memory differs", verb, steps)
			}
			for range 100 {
				w.step()
			}
			g.idle(t)
		}
		t.Logf("%v: %d outcomes were told later, %d of them success", verb, later, succeeded)
		if later == 0 || succeeded == 0 {
			t.Errorf("%v: %d outcomes were told later, %d of them success: want some of both", verb, later, succeeded)
		}
	}
}

// differ is the index of the first byte that two texts have not in common.
func differ(a, b []byte) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	return min(len(a), len(b))
}
