// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/memory"
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
	"github.com/xdpfab/xdpfab/mr"
)

// scatter posts an operation on extents.
func (bn *bench) scatter(p *engine.Peer, r engine.Completer, verb wire.Verb, o atomic.Op, dt atomic.Datatype, xs []mr.Extent, operand, compare, result []byte) {
	op := bn.a.ring.Claim()
	op.Peer, op.Context, op.Key, op.Offset, op.Count = p.ID(), r, 0, 0, 0
	for _, x := range xs {
		op.Count += x.Count
	}
	op.Verb, op.Opcode, op.Datatype, op.Flags = verb, uint8(o), uint8(dt), 0
	op.SetExtents(xs)
	op.SetOperands(operand, compare)
	op.Result = result
	op.Publish()
}

// An operation on extents does what its elements, one by one, would do: whatever
// the form, operation, datatype, number and size of the extents, and with losses.
func TestScatter(t *testing.T) {
	const words = 64 // of 32 bytes, in each of two regions
	datatypes := []atomic.Datatype{atomic.Uint64, atomic.Int32, atomic.Uint8, atomic.Uint128, atomic.Double}
	operations := []atomic.Op{atomic.Sum, atomic.Max, atomic.Bor, atomic.Band, atomic.Write, atomic.Read, atomic.Cswap}
	verbs := []wire.Verb{wire.VerbAtomic, wire.VerbFetch, wire.VerbCompare}
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 9))
		dt, o, verb := datatypes[rng.IntN(len(datatypes))], operations[rng.IntN(len(operations))], verbs[rng.IntN(3)]
		if !atomic.Valid(memory.FormOf(verb), o, dt) {
			continue
		}
		bn := newBench(t, seed, session.Config{GiveUp: time.Hour})
		mem := [2][]byte{bn.region(1, words*32, mr.RemoteRead|mr.RemoteWrite), bn.region(2, words*32, mr.RemoteRead|mr.RemoteWrite)}
		model := [2][]byte{bytes.Clone(mem[0][:words*32]), bytes.Clone(mem[1][:words*32])}
		size := dt.Size()
		var (
			xs              []mr.Extent
			n               int
			operand, shared = []byte(nil), make([]byte, size)
		)
		for range 1 + rng.IntN(600) {
			x := mr.Extent{Key: 1 + uint64(rng.IntN(8)/7), Count: 1}
			if rng.IntN(10) == 0 {
				x.Count = 1 + uint32(rng.IntN(words/2))
			}
			x.Offset = uint64(rng.IntN(words*32/size-int(x.Count)+1) * size)
			xs, n = append(xs, x), n+int(x.Count)
			for range x.Count {
				if rng.IntN(6) == 0 {
					shared[0]++
				}
				operand = append(operand, shared...)
			}
		}
		compare, result, want := bytes.Clone(operand), make([]byte, n*size), make([]byte, n*size)
		if o == atomic.Read {
			operand = nil
		}
		if verb != wire.VerbCompare {
			compare = nil
		}
		if verb == wire.VerbAtomic {
			result, want = nil, nil
		}
		at := func(b []byte, i int) []byte {
			if b == nil {
				return nil
			}
			return b[i*size : (i+1)*size]
		}
		i := 0
		kernel := atomic.KernelOf(memory.FormOf(verb), o, dt)
		for _, x := range xs {
			for j := range int(x.Count) {
				target := model[x.Key-1][int(x.Offset)+j*size:][:size]
				kernel(target, at(operand, i), at(compare, i), at(want, i))
				i++
			}
		}
		var r results
		p := bn.peer(0)
		bn.scatter(p, &r, verb, o, dt, xs, operand, compare, result)
		bn.until(func() bool { return r.n == 1 })
		if r.last.Outcome != engine.Success {
			t.Fatalf("seed %d: %+v", seed, r.last)
		}
		if !bytes.Equal(result, want) {
			t.Fatalf("seed %d: %v %v, %d extents: wrong results", seed, o, dt, len(xs))
		}
		for k := range mem {
			if !bytes.Equal(mem[k][:words*32], model[k]) {
				t.Fatalf("seed %d: %v %v, %d extents: wrong memory", seed, o, dt, len(xs))
			}
		}
	}
}

// An extent that is out of bounds fails alone, and the operation says that a part
// may have run.
func TestScatterOutOfBounds(t *testing.T) {
	bn := newBench(t, 1, session.Config{})
	mem := bn.region(1, 4096, mr.RemoteRead|mr.RemoteWrite)
	var xs []mr.Extent
	for i := range 300 {
		xs = append(xs, mr.Extent{Key: 1, Offset: uint64(i * 8), Count: 1})
	}
	xs[40].Offset, xs[41].Offset, xs[42].Key = 4096, 12, 9 // outside, misaligned, no such key
	operand := bytes.Repeat([]byte{1, 0, 0, 0, 0, 0, 0, 0}, 300)
	for _, verb := range []wire.Verb{wire.VerbAtomic, wire.VerbFetch} {
		var r results
		bn.scatter(bn.peer(0), &r, verb, atomic.Sum, atomic.Uint64, xs, operand, nil, make([]byte, 300*8*int(verb-1)))
		bn.until(func() bool { return r.n == 1 })
		if r.last.Outcome != engine.Unknown || r.last.Status != wire.StatusOutOfBounds {
			t.Fatalf("%+v, want an unknown outcome, for an extent out of bounds", r.last)
		}
	}
	for i := range 300 {
		want := uint64(2)
		if i >= 40 && i <= 42 {
			want = 0
		}
		if got := binary.LittleEndian.Uint64(mem[i*8:]); got != want {
			t.Errorf("word %d is %d, want %d", i, got, want)
		}
	}
}

// A flight that carried an operation on extents carries the next one from its beginning.
func TestScatterTwice(t *testing.T) {
	bn := newBench(t, 1, session.Config{GiveUp: time.Hour})
	mem := bn.region(1, 4096, mr.RemoteRead|mr.RemoteWrite)
	xs := []mr.Extent{{Key: 1, Offset: 0, Count: 1}, {Key: 1, Offset: 64, Count: 1}, {Key: 1, Offset: 128, Count: 1}}
	operand := bytes.Repeat([]byte{1, 0, 0, 0, 0, 0, 0, 0}, len(xs))
	p := bn.peer(0)
	for i := range 3 {
		var r results
		bn.scatter(p, &r, wire.VerbFetch, atomic.Sum, atomic.Uint64, xs, operand, nil, make([]byte, 8*len(xs)))
		bn.until(func() bool { return r.n == 1 })
		if r.last.Outcome != engine.Success {
			t.Fatalf("operation %d: %+v", i, r.last)
		}
	}
	for _, x := range xs {
		if mem[x.Offset] != 3 {
			t.Errorf("the word at %d is %d, want 3", x.Offset, mem[x.Offset])
		}
	}
}
