// SPDX-License-Identifier: Apache-2.0

package share

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/wire"
	"github.com/xdpfab/xdpfab/mr"
)

// An operation of a guest does what the same operation of the host does, in memory and in
// its result: one word or many, operands in the entry or in the arena, extents, and
// transfers that are divided.
func TestGuestsDoTheSame(t *testing.T) {
	const size = 64 << 10
	w := newWorld(t)
	ours, theirs := w.region(1, size), w.region(2, size)
	g := w.guest(Sizes{Entries: 16, Arena: MinArena, Arrivals: MinArrivals})
	r := rand.New(rand.NewPCG(1, 2))
	for i := range ours {
		ours[i] = byte(r.Uint32())
	}
	copy(theirs, ours)
	same := func(t interface{ Fatalf(string, ...any) }, x *operation) engine.Outcome {
		a := w.do(w.host, w.direct, func(s *engine.Submission) { x.fill(s, w.peer.ID(), 1) })
		b := w.do(g.Engine, g.ring, func(s *engine.Submission) { x.fill(s, g.peer.ID(), 2) })
		if a.last.Outcome != b.last.Outcome || a.last.Status != b.last.Status || a.last.Flags != b.last.Flags || a.last.Length != b.last.Length {
			t.Fatalf("%+v: %+v, want %+v", x, b.last, a.last)
		}
		if a.last.Outcome == engine.Success && !bytes.Equal(a.data, b.data) {
			t.Fatalf("%+v: result %x, want %x", x, b.data, a.data)
		}
		if !bytes.Equal(ours, theirs) {
			t.Fatalf("%+v: memory differs", x)
		}
		return a.last.Outcome
	}
	for verb, op := range map[wire.Verb]atomic.Op{wire.VerbAtomic: atomic.Sum, wire.VerbFetch: atomic.Sum, wire.VerbCompare: atomic.Cswap,
		wire.VerbRead: atomic.Read, wire.VerbWrite: atomic.Write} {
		for _, n := range []uint32{1, 3000} {
			if fate := same(t, &operation{verb: verb, op: op, datatype: atomic.Uint64, count: n, operand: 1}); fate != engine.Success {
				t.Errorf("%v of %d: fate %d, want success", verb, n, fate)
			}
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		x := operations.Draw(t, "operation")
		same(t, &x)
	})
	if g.broken != nil {
		t.Error(g.broken)
	}
}

// operation is one that a test posts.
type operation struct {
	verb            wire.Verb
	op              atomic.Op
	datatype        atomic.Datatype
	count           uint32
	offset          uint64
	extents         []mr.Extent // without keys
	operand         byte        // repeated
	fence, inPieces bool
}

var operations = rapid.Custom(func(t *rapid.T) operation {
	x := operation{
		verb:     rapid.SampledFrom([]wire.Verb{wire.VerbAtomic, wire.VerbFetch, wire.VerbCompare, wire.VerbRead, wire.VerbWrite}).Draw(t, "verb"),
		datatype: rapid.SampledFrom([]atomic.Datatype{atomic.Uint8, atomic.Uint32, atomic.Uint64, atomic.Uint128}).Draw(t, "datatype"),
		op:       rapid.SampledFrom([]atomic.Op{atomic.Sum, atomic.Min, atomic.Write, atomic.Read, atomic.Cswap}).Draw(t, "op"),
		count:    rapid.SampledFrom([]uint32{1, 2, 5, 11, 100, 3000}).Draw(t, "count"),
		offset:   16 * rapid.Uint64Range(0, 1024).Draw(t, "offset"),
		operand:  rapid.Byte().Draw(t, "operand"),
		fence:    rapid.Bool().Draw(t, "fence"),
		inPieces: rapid.Bool().Draw(t, "pieces"),
	}
	switch {
	case x.verb.Transfer():
		x.datatype, x.count = atomic.Uint8, x.count*10
	case x.verb == wire.VerbCompare:
		x.op = rapid.SampledFrom([]atomic.Op{atomic.Cswap, atomic.CswapNE, atomic.CswapGT, atomic.Sum}).Draw(t, "comparison")
	}
	if !x.verb.Transfer() && rapid.Bool().Draw(t, "scattered") && x.count > 1 && x.count <= 100 {
		for left := x.count; left > 0; {
			n := rapid.Uint32Range(1, left).Draw(t, "extent")
			x.extents = append(x.extents, mr.Extent{Offset: 16 * rapid.Uint64Range(0, 2000).Draw(t, "at"), Count: n})
			left -= n
		}
	}
	return x
})

// fill describes the operation on the region of a key.
func (x *operation) fill(s *engine.Submission, to engine.PeerID, key uint64) {
	s.Peer, s.Key, s.Offset, s.Count = to, key, x.offset, x.count
	s.Verb, s.Opcode, s.Datatype = x.verb, uint8(x.op), uint8(x.datatype)
	if x.verb.Transfer() {
		s.Transfer(x.verb, x.count)
	}
	if x.fence {
		s.Flags |= engine.FlagFence
	}
	size := x.datatype.Size()
	if x.verb.Transfer() {
		size = 1
	}
	all := bytes.Repeat([]byte{x.operand}, int(x.count)*size)
	operand, compare := all, []byte(nil)
	if s.Opcode == wire.OpRead {
		operand = nil
	}
	if x.verb == wire.VerbCompare {
		compare = all
	}
	if x.inPieces && len(operand) > size && x.extents == nil {
		cut := len(operand) / size / 2 * size
		s.SetPieces(&engine.Pieces{Buf: [][]byte{operand[:cut], operand[cut:]}}, nil, compare)
	} else {
		s.SetOperands(operand, compare)
	}
	if x.extents != nil {
		extents := make([]mr.Extent, len(x.extents))
		for i, e := range x.extents {
			extents[i] = mr.Extent{Offset: e.Offset, Key: key, Count: e.Count}
		}
		s.SetExtents(extents)
	}
	if x.verb.Returns() {
		s.Result = make([]byte, len(all))
	}
}

// Whatever a guest writes into the segment, at any moment, the host and its other guests
// go on, and no memory changes but that of the guest's own operations.
func TestHostileGuest(t *testing.T) {
	turnedOut, ran := 0, 0
	for seed := range uint64(60) {
		out, changed := hostile(t, seed, 300)
		if out {
			turnedOut++
		}
		if changed {
			ran++
		}
	}
	if turnedOut == 0 || ran == 0 {
		t.Errorf("%d guests were turned out, the memory of %d was changed: want some of both", turnedOut, ran)
	}
}

// FuzzHostileGuest is TestHostileGuest for any seed.
func FuzzHostileGuest(f *testing.F) {
	f.Add(uint64(1000))
	f.Fuzz(func(t *testing.T, seed uint64) { hostile(t, seed, 300) })
}

// hostile has one guest scribble over its segment while another one counts. It reports
// whether the guest was turned out, and whether any of its operations changed memory.
func hostile(t *testing.T, seed uint64, steps int) (out, changed bool) {
	r := rand.New(rand.NewPCG(seed, 3))
	w := newWorld(t)
	mine, yours := w.region(1, 4096), w.region(2, 4096)
	honest, bad := w.guest(Sizes{Entries: 16, Arena: MinArena, Arrivals: MinArrivals}), w.guest(Sizes{Entries: 16, Arena: MinArena, Arrivals: MinArrivals})
	for i := range steps {
		bad.scribble(r)
		if i%10 == 0 {
			o := w.do(honest.Engine, honest.ring, func(s *engine.Submission) {
				s.Peer, s.Key, s.Offset, s.Count, s.Verb, s.Opcode, s.Datatype = honest.peer.ID(), 1, 8, 1, wire.VerbFetch, uint8(atomic.Sum), uint8(atomic.Uint64)
				s.SetOperands([]byte{1, 0, 0, 0, 0, 0, 0, 0}, nil)
				s.Result = make([]byte, 8)
			})
			if o.last.Outcome != engine.Success || o.data[0] != byte(i/10) {
				t.Fatalf("seed %d, step %d: %+v, %d", seed, i, o.last, o.data)
			}
		}
		w.step()
		if err := w.host.Check(); err != nil {
			t.Fatalf("seed %d, step %d: %v", seed, i, err)
		}
	}
	want := make([]byte, len(mine))
	want[8] = byte((steps + 9) / 10)
	if !bytes.Equal(mine, want) || honest.broken != nil {
		t.Errorf("seed %d: the honest guest's memory: %v, want %d at 8; %v", seed, mine[:32], want[8], honest.broken)
	}
	return bad.broken != nil, !bytes.Equal(yours, make([]byte, len(yours)))
}

// scribble changes something in the segment of a guest: entries that are nearly right,
// bits anywhere, and positions.
func (g *guest) scribble(r *rand.Rand) {
	a := g.guestRing.segment
	for range r.IntN(4) {
		switch r.IntN(5) {
		case 0, 1:
			x := &a.entries[g.guestRing.posted&g.guestRing.mask()]
			*x = engine.Entry{Cookie: r.Uint64(), Key: 2, Offset: uint64(r.IntN(5000)), Count: r.Uint32() >> (r.IntN(4) * 8), Peer: engine.PeerID(r.IntN(3)),
				Verb: wire.Verb(r.IntN(32)), Opcode: uint8(r.IntN(22)), Datatype: uint8(r.IntN(22)), Flags: uint8(r.Uint32())}
			if r.IntN(2) == 0 { // well formed
				x.Peer, x.Verb, x.Opcode, x.Datatype, x.Flags, x.Count = 1, wire.VerbAtomic, uint8(atomic.Sum), uint8(atomic.Uint8), 0, 1+uint32(r.IntN(4))
			} else if r.IntN(4) == 0 {
				x.Verb = wire.VerbLocal + wire.Verb(r.IntN(8))
			}
			if r.IntN(3) == 0 { // in parts
				g.scribbleStream(x, r)
			}
			for i := range x.Inline {
				if x.Verb != VerbFeed && r.IntN(3) == 0 {
					x.Inline[i] = byte(r.Uint32())
				}
			}
			g.guestRing.posted++
			a.h.posted.Store(g.guestRing.posted)
		case 2:
			b := a.mem.Bytes()
			b[page+r.IntN(len(b)-page)] ^= 1 << r.IntN(8)
		case 3:
			a.h.seen.Store(a.h.completed.Load())
		case 4:
			if r.IntN(100) == 0 { // after which the guest is out
				a.h.posted.Store(r.Uint64())
			} else if r.IntN(100) == 0 {
				a.h.seen.Store(r.Uint64())
			}
		}
	}
}

// Blocks of the arena do not overlap, and what has been given back can be had again.
func TestSpace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const size = 1 << 16
		s := newSpace(size + 4096)
		type taken struct{ at, n int }
		var all []taken
		used := make([]bool, size)
		t.Repeat(map[string]func(*rapid.T){
			"get": func(t *rapid.T) {
				n := rapid.IntRange(1, size/2).Draw(t, "n")
				at, ok := s.get(n)
				if !ok {
					return
				}
				if int(at)+n > size {
					t.Fatalf("%d bytes at %d", n, at)
				}
				for i := int(at); i < int(at)+n; i++ {
					if used[i] {
						t.Fatalf("byte %d is given out twice", i)
					}
					used[i] = true
				}
				all = append(all, taken{int(at), n})
			},
			"put": func(t *rapid.T) {
				if len(all) == 0 {
					t.Skip()
				}
				i := rapid.IntRange(0, len(all)-1).Draw(t, "i")
				x := all[i]
				all = append(all[:i], all[i+1:]...)
				for j := x.at; j < x.at+x.n; j++ {
					used[j] = false
				}
				s.put(uint64(x.at), x.n)
			},
		})
		for _, x := range all {
			s.put(uint64(x.at), x.n)
		}
		if at, ok := s.get(size); !ok || at != 0 {
			t.Error("the whole cannot be had again")
		}
	})
}

// An operation of a guest allocates nothing, on either side: on one word, or on as many
// as a frame holds.
func TestNoAllocations(t *testing.T) {
	const full = 182
	operands, extents := make([]byte, 8*full), make([]mr.Extent, full)
	for i := range extents {
		operands[8*i], extents[i] = 1, mr.Extent{Key: 1, Offset: uint64(8 * i), Count: 1}
	}
	for _, words := range []int{1, full} {
		t.Run(fmt.Sprintf("%d words", words), func(t *testing.T) {
			w := newWorld(t)
			w.region(1, 4096)
			g := w.guest(Sizes{Entries: 64, Arena: 1 << 20, Arrivals: MinArrivals})
			o := &tally{}
			result := make([]byte, 8*words)
			add := func() {
				for range 16 {
					s := g.Begin(g.ring)
					s.Peer, s.Key, s.Offset, s.Count, s.Verb, s.Opcode, s.Datatype = g.peer.ID(), 1, 8, uint32(words), wire.VerbFetch, uint8(atomic.Sum), uint8(atomic.Uint64)
					s.SetOperands(operands[:8*words], nil)
					if words > 1 {
						s.SetExtents(extents)
					}
					s.Result, s.Context = result, o
					g.Submit(g.ring)
				}
				for want := o.n + 16; o.n < want; {
					w.step()
				}
			}
			add()
			if n := testing.AllocsPerRun(100, add); n > 0 {
				t.Errorf("16 operations make %v allocations, want none", n)
			}
		})
	}
}

// tally counts completions.
type tally struct {
	n      int
	result [8]byte
}

func (o *tally) Complete(*engine.Submission, *engine.Completion, *engine.Later) { o.n++ }
