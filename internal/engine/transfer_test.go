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
	"github.com/xdpfab/xdpfab/internal/port"
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
	"github.com/xdpfab/xdpfab/mr"
)

// transfers is a bench for remote reads and writes.
func transfers(t testing.TB, seed uint64, cfg session.Config) *bench {
	cfg.Features = wire.FeatureMemory | wire.FeatureNotices | wire.FeatureUnordered
	bn := newBench(t, seed, cfg)
	bn.b.told = &events{room: 1 << 20}
	return bn
}

// unorderedPeer is peer without order; operations that are posted later go there.
func (bn *bench) unorderedPeer() *engine.Peer {
	o := bn.a.NewUnorderedOrigin(0)
	bn.a.RemoveRing(bn.a.ring)
	bn.a.ring = ring(bn.t)
	bn.a.AddRing(bn.a.ring, o)
	p, err := o.NewPeer(wire.Link{Local: macA, Remote: macB}, 0, 0)
	if err != nil {
		bn.t.Fatal(err)
	}
	return p
}

// transfer posts a remote read or write of n bytes.
func (bn *bench) transfer(p *engine.Peer, to engine.Completer, verb wire.Verb, offset uint64, n int, more func(s *engine.Submission)) {
	s := bn.a.ring.Claim()
	for ; s == nil; s = bn.a.ring.Claim() {
		bn.step()
	}
	s.Peer, s.Context, s.Key, s.Offset, s.Flags, s.Data, s.Result = p.ID(), to, 1, offset, 0, 0, nil
	s.Transfer(verb, uint32(n))
	more(s)
	s.Publish()
}

// move posts a transfer of the buffer and waits for it.
func (bn *bench) move(p *engine.Peer, verb wire.Verb, offset uint64, b []byte) engine.Result {
	bn.t.Helper()
	var r results
	bn.transfer(p, &r, verb, offset, len(b), func(s *engine.Submission) {
		if verb == wire.VerbRead {
			s.Result = b
		} else {
			s.SetOperands(b, nil)
		}
	})
	bn.until(func() bool { return r.n == 1 })
	return r.last
}

// random returns n random bytes.
func random(rng *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}

// divided cuts a buffer into pieces of random lengths, some of them empty.
func divided(rng *rand.Rand, b []byte, longest int) (list [][]byte) {
	for len(b) > 0 {
		n := min(len(b), rng.IntN(longest))
		list, b = append(list, b[:n]), b[n:]
	}
	return append(list, nil)
}

// Transfers of every length, at every alignment, from one buffer or pieces to one place
// or many, copy what they should, and nothing else, whatever gets lost, with and without
// order. The kinds of transfers recur with every sixth seed.
func TestTransfers(t *testing.T) {
	t.Parallel()
	const size = 1 << 16
	seeds := uint64(30)
	if testing.Short() {
		seeds = 12
	}
	for seed := range seeds {
		rng := rand.New(rand.NewPCG(seed, 21))
		bn := transfers(t, seed, session.Config{GiveUp: time.Hour})
		mem := bn.region(1, size, mr.RemoteRead|mr.RemoteWrite)
		model := bytes.Clone(mem[:size])
		p := bn.peer(0)
		if seed%2 == 1 {
			p = bn.unorderedPeer()
		}
		if seed%3 > 0 {
			for _, n := range []*node{bn.a, bn.b} {
				n.port.SetFaults(port.Faults{Loss: 0.1, Duplicate: 0.1, Reorder: 0.2})
			}
		}
		for range 12 {
			n := rng.IntN(1 << (1 + rng.IntN(15)))
			at := uint64(rng.IntN(size - n + 1))
			data, back := random(rng, n), make([]byte, n)
			pieces, extents := rng.IntN(2) == 0, rng.IntN(3) == 0 && n > 0
			var xs []mr.Extent
			if extents {
				for left, from := n, 0; left > 0; {
					k := min(left, 1+rng.IntN(3000))
					xs = append(xs, mr.Extent{Key: 1, Offset: uint64(from), Count: uint32(k)})
					left, from = left-k, from+k
				}
				rng.Shuffle(len(xs), func(i, j int) { xs[i], xs[j] = xs[j], xs[i] })
			}
			for _, verb := range []wire.Verb{wire.VerbWrite, wire.VerbRead} {
				var r results
				bn.transfer(p, &r, verb, at, n, func(s *engine.Submission) {
					switch {
					case verb == wire.VerbRead && pieces:
						s.SetPieces(&engine.Pieces{Result: divided(rng, back, 2000)}, nil, nil)
					case verb == wire.VerbRead:
						s.Result = back
					case pieces:
						s.SetPieces(&engine.Pieces{Buf: divided(rng, data, 1+1<<rng.IntN(12))}, nil, nil)
					default:
						s.SetOperands(data, nil)
					}
					if extents {
						s.SetExtents(xs)
					}
				})
				bn.until(func() bool { return r.n == 1 })
				if r.last.Outcome != engine.Success {
					t.Fatalf("seed %d: %v of %d bytes: %+v", seed, verb, n, r.last)
				}
			}
			if !extents {
				copy(model[at:], data)
			}
			for rest := data; len(xs) > 0; xs = xs[1:] {
				rest = rest[copy(model[xs[0].Offset:], rest[:xs[0].Count]):]
			}
			if !bytes.Equal(mem[:size], model) || !bytes.Equal(back, data) {
				t.Fatalf("seed %d: %d bytes at %d, in pieces: %t, in extents: %t: wrong memory: %t, wrong bytes read: %t",
					seed, n, at, pieces, extents, !bytes.Equal(mem[:size], model), !bytes.Equal(back, data))
			}
		}
	}
}

// A refused transfer changes nothing, even if only its end is out of bounds, and a
// transfer of nothing is refused like any other.
func TestTransfersRefused(t *testing.T) {
	bn := transfers(t, 1, session.Config{})
	mem := bn.region(1, 8192, mr.RemoteRead|mr.RemoteWrite)
	p := bn.peer(0)
	for _, n := range []int{0, 1, 80, 81, 4000} {
		for _, verb := range []wire.Verb{wire.VerbWrite, wire.VerbRead} {
			if r := bn.move(p, verb, uint64(8193-n), bytes.Repeat([]byte{1}, n)); r.Outcome != engine.NotExecuted || r.Status != wire.StatusOutOfBounds {
				t.Errorf("%v of %d bytes beyond the end: %+v", verb, n, r)
			}
			if r := bn.move(p, verb, uint64(8192-n), make([]byte, n)); r.Outcome != engine.Success {
				t.Errorf("%v of %d bytes up to the end: %+v", verb, n, r)
			}
		}
	}
	if !bytes.Equal(mem[:8192], make([]byte, 8192)) {
		t.Error("a refused write has changed something")
	}
}

// A transfer with data has its event at the target, with its length and direction, when
// all of it is there.
func TestTransfersWithData(t *testing.T) {
	bn := transfers(t, 1, session.Config{})
	mem := bn.region(1, 1<<16, mr.RemoteRead|mr.RemoteWrite)
	for _, unordered := range []bool{false, true} {
		p := bn.peer(0)
		if unordered {
			p = bn.unorderedPeer()
		}
		for _, n := range []int{0, 1, 100, 5000} {
			for _, verb := range []wire.Verb{wire.VerbWrite, wire.VerbRead} {
				clear(mem)
				data := bytes.Repeat([]byte{7}, n)
				bn.b.told.list, bn.b.told.check = nil, func(*engine.Event) {
					if verb == wire.VerbWrite && !bytes.Equal(mem[:n], data) {
						t.Errorf("%d bytes: an event before all of them are there", n)
					}
				}
				var r results
				bn.transfer(p, &r, verb, 0, n, func(s *engine.Submission) {
					if s.Flags, s.Data = engine.FlagData, uint64(n)<<32; verb == wire.VerbRead {
						s.Result = make([]byte, n)
					} else {
						s.SetOperands(data, nil)
					}
				})
				bn.until(func() bool { return r.n == 1 })
				want := wire.Notice{Data: uint64(n) << 32, Length: uint64(n), Returns: verb == wire.VerbRead, Transfer: true}
				if list := bn.b.told.list; len(list) != 1 {
					t.Errorf("%v of %d bytes: %d events, %+v", verb, n, len(list), r.last)
				} else if want.Covers = list[0].Covers; list[0].Notice != want {
					t.Errorf("%v of %d bytes: %+v, want %+v", verb, n, list[0].Notice, want)
				}
			}
		}
	}
}

// Reads, writes and atomics of one endpoint apply in the order posted, whatever their
// sizes, while many are under way and frames get lost.
func TestTransfersAreOrdered(t *testing.T) {
	bn := transfers(t, 3, session.Config{GiveUp: time.Hour})
	bn.region(1, 1<<16, mr.RemoteRead|mr.RemoteWrite)
	for _, n := range []*node{bn.a, bn.b} {
		n.port.SetFaults(port.Faults{Loss: 0.1, Reorder: 0.2})
	}
	p := bn.peer(0)
	const rounds, n = 50, 3000 // several frames each
	var done results
	reads, sums := make([][]byte, rounds), make([][]byte, rounds)
	for i := range rounds {
		fill := bytes.Repeat([]byte{byte(i)}, n)
		reads[i], sums[i] = make([]byte, n), make([]byte, 8)
		bn.transfer(p, &done, wire.VerbWrite, 4, n, func(s *engine.Submission) { s.SetOperands(fill, nil) })
		bn.transfer(p, &done, wire.VerbRead, 4, n, func(s *engine.Submission) { s.Result = reads[i] })
		bn.transfer(p, &done, wire.VerbFetch, 8, 1, func(s *engine.Submission) {
			s.Opcode, s.Datatype, s.Result = uint8(atomic.Sum), uint8(atomic.Uint64), sums[i]
			s.SetOperands([]byte{1, 0, 0, 0, 0, 0, 0, 0}, nil)
		})
	}
	bn.until(func() bool { return done.n == 3*rounds })
	if done.fates[engine.Success] != 3*rounds {
		t.Fatalf("%+v", done)
	}
	for i := range rounds {
		fill := bytes.Repeat([]byte{byte(i)}, n)
		if !bytes.Equal(reads[i], fill) || binary.LittleEndian.Uint64(sums[i]) != binary.LittleEndian.Uint64(fill) {
			t.Errorf("round %d: reads find %d and later, the sum finds %#x", i, reads[i][0], sums[i])
		}
	}
}

// Long transfers fill the window and do not allocate.
func TestTransfersDoNotAllocate(t *testing.T) {
	bn := transfers(t, 1, session.Config{})
	bn.region(1, 1<<20, mr.RemoteRead|mr.RemoteWrite)
	p := bn.peer(0)
	buf, most := make([]byte, 1<<18), 0
	var r results
	round := func() {
		r = results{}
		bn.transfer(p, &r, wire.VerbWrite, 8, len(buf), func(s *engine.Submission) { s.SetOperands(buf, nil) })
		bn.transfer(p, &r, wire.VerbRead, 8, len(buf), func(s *engine.Submission) { s.Result = buf })
		for r.n < 2 {
			bn.a.Step()
			most = max(most, bn.a.Usage().Requests.Lent)
			bn.b.Step()
			bn.now += 1000
		}
	}
	for range 50 {
		round()
	}
	if n := testing.AllocsPerRun(20, round); n != 0 {
		t.Errorf("%v allocations for %d bytes", n, 2*len(buf))
	}
	if most < session.MaxWindow/2 {
		t.Errorf("at most %d frames in flight, want more than half a window", most)
	}
}
