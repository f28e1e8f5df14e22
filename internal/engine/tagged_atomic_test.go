// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/matching"
	"github.com/xdpfab/xdpfab/internal/port"
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// combine posts a sum to words of the buffer of the receive with the tag, and returns the
// buffer of its result.
func (bn *bench) combine(p *engine.Peer, to engine.Completer, verb wire.Verb, tag, offset uint64, values ...uint64) (result []byte) {
	s := bn.a.ring.Claim()
	for ; s == nil; s = bn.a.ring.Claim() {
		bn.step()
	}
	s.Peer, s.Context, s.Result = p.ID(), to, nil
	s.Verb, s.Key, s.Offset, s.Count, s.Opcode, s.Datatype, s.Flags = verb, tag, offset, uint32(len(values)), uint8(atomic.Sum), uint8(atomic.Uint64), 0
	if verb.Returns() {
		s.Flags = engine.FlagMatch
		s.Result = make([]byte, 8*len(values))
		result = s.Result
	}
	s.SetOperands(words(values...), nil)
	s.Publish()
	return result
}

// words encodes values of uint64.
func words(values ...uint64) (b []byte) {
	for _, v := range values {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	return b
}

// Tagged atomics are combined once each and in order, among messages, with and without
// loss, whether receives are posted before them or after; what they return is what was
// there before.
func TestTaggedAtomics(t *testing.T) {
	const tag = 5
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 10))
		bn, a := receiving(t, seed, session.Config{}, 1<<20)
		if seed >= 5 {
			bn.a.port.SetFaults(port.Faults{Loss: 0.05, Duplicate: 0.05, Reorder: 0.1})
			bn.b.port.SetFaults(port.Faults{Loss: 0.05, Duplicate: 0.05, Reorder: 0.1})
		}
		p := bn.peer(0)
		counter := make([]byte, 8*200) // that all receives share
		var r results
		var found [][]byte
		var before []uint64
		posted, sum := 0, uint64(0)
		post := func() {
			if err := bn.b.inbox.Post(&matching.Receive{Match: matching.Match{AnySource: true, Tagged: true, Tag: tag}, Buf: counter, Context: posted}); err != nil {
				t.Fatal(err)
			}
			posted++
		}
		const n = 80
		for i := range n {
			if rng.IntN(2) == 0 && posted < n {
				post()
			}
			values := make([]uint64, 1+rng.IntN(3))
			if rng.IntN(10) == 0 {
				values = make([]uint64, 100)
			}
			values[0] = rng.Uint64N(1 << 50)
			verb := wire.VerbTaggedAtomic
			if rng.IntN(3) == 0 {
				verb = wire.VerbTaggedFetch
				before = append(before, sum)
			}
			sum += values[0]
			if b := bn.combine(p, &r, verb, tag, 0, values...); b != nil {
				found = append(found, b)
			}
			if i%7 == 0 {
				bn.post(20, 0, "message")
				bn.send(p, &r, pattern(20, i), 0, 0)
			}
			for range rng.IntN(20) {
				bn.step()
			}
		}
		for posted < n {
			post()
		}
		const messages = (n + 6) / 7
		bn.until(func() bool { return r.n == n+messages && len(a.list) == n+messages })
		if got := binary.LittleEndian.Uint64(counter); got != sum || r.fates[engine.Success] != r.n {
			t.Fatalf("seed %d: the counter is %d, want %d; fates %v", seed, got, sum, r.fates)
		}
		for i, b := range found {
			if got := binary.LittleEndian.Uint64(b); got != before[i] {
				t.Fatalf("seed %d: fetch %d returned %d, want %d", seed, i, got, before[i])
			}
		}
		next := 0
		for _, d := range a.list {
			if d.Atomic && (d.Context != next || d.Reason != matching.Received || d.Tag != tag) {
				t.Fatalf("seed %d: %+v, want receive %d", seed, d, next)
			}
			if d.Atomic {
				next++
			}
		}
		bn.check()
	}
}

// An atomic that returns values waits for its receive, however long, and what came before
// it in the session does not. One that does not fit its receive is refused.
func TestTaggedFetchWaits(t *testing.T) {
	bn, a := receiving(t, 1, session.Config{GiveUp: time.Second}, 1<<20)
	p := bn.peer(0)
	var first, second, third results
	bn.combine(p, &first, wire.VerbTaggedAtomic, 1, 0, 4) // held
	result := bn.combine(p, &second, wire.VerbTaggedFetch, 2, 8, 5)
	bn.combine(p, &third, wire.VerbTaggedFetch, 3, 8, 6)
	bn.until(func() bool { return first.n == 1 })
	for until := bn.now + int64(5*time.Minute); bn.now < until; {
		bn.step()
	}
	if second.n+third.n > 0 || first.fates[engine.Success] != 1 || len(a.list) > 0 {
		t.Fatalf("completions %d, %d, %d while the second waits, want that of the first", first.n, second.n, third.n)
	}
	got := bn.post(16, 2, "second")
	bn.until(func() bool { return second.n == 1 })
	if second.fates[engine.Success] != 1 || !slices.Equal(got, words(0, 5)) || !slices.Equal(result, words(0)) {
		t.Fatalf("%+v, buffer %v, result %v", second.last, got, result)
	}
	short := bn.post(12, 3, "third")
	bn.until(func() bool { return third.n == 1 })
	if third.fates[engine.NotExecuted] != 1 || third.last.Status != wire.StatusOutOfBounds || slices.Max(short) != 0 {
		t.Fatalf("%+v, want out of bounds", third.last)
	}
	if n := len(a.list); n != 2 || a.list[1].Reason != matching.Truncated || a.list[1].Received != 0 {
		t.Fatalf("%+v", a.list)
	}
}

// A session without the feature has no such records: the operation fails, and the session
// goes on.
func TestTaggedAtomicWithoutTheFeature(t *testing.T) {
	bn, a := receiving(t, 1, session.Config{}, 1<<20)
	bn.a = bn.nodeThat(bn.a.port, macA, session.Config{Features: wire.FeatureMessages}, func(*engine.Config) {})
	p := bn.peer(0)
	var refused, message results
	bn.combine(p, &refused, wire.VerbTaggedFetch, 1, 0, 4)
	bn.send(p, &message, pattern(10, 1), 1, 0)
	bn.until(func() bool { return refused.n == 1 && message.n == 1 })
	if refused.fates[engine.NotExecuted] != 1 || refused.last.Status != wire.StatusUnsupported || message.fates[engine.Success] != 1 || len(a.list) > 0 {
		t.Fatalf("%+v, %+v", refused.last, message.last)
	}
}

// A tagged atomic that no frame of the session carries is not executed, and the session
// goes on.
func TestTaggedAtomicBeyondTheFrame(t *testing.T) {
	bn, a := receiving(t, 1, session.Config{}, 1<<20)
	p := bn.peer(0)
	var refused, next results
	bn.combine(p, &refused, wire.VerbTaggedAtomic, 1, 0, make([]uint64, 200)...)
	bn.combine(p, &next, wire.VerbTaggedAtomic, 1, 0, make([]uint64, 100)...)
	bn.until(func() bool { return refused.n == 1 && next.n == 1 })
	if refused.fates[engine.NotExecuted] != 1 || refused.last.Status != wire.StatusBadCount || next.fates[engine.Success] != 1 {
		t.Fatalf("%+v, %+v", refused.last, next.last)
	}
	bn.post(800, 1, "next")
	if len(a.list) != 1 || a.list[0].Length != 800 {
		t.Fatalf("%+v", a.list)
	}
}
