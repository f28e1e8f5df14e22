// SPDX-License-Identifier: Apache-2.0

package xsk

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"
)

// lockstep has two goroutines run a and b at the same time, round after round, and check
// when both are through, for as many rounds as fit into a moment.
func lockstep(a, b func(), check func(round uint64)) {
	const rounds, moment = 50_000, 300 * time.Millisecond
	var began, ended atomic.Uint64 // rounds
	var over atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		for round := uint64(1); ; round++ {
			for spin := 0; began.Load() < round; spin++ {
				if over.Load() {
					return
				}
				if spin > 1000 {
					runtime.Gosched()
				}
			}
			for range round / 8 % 128 {
				began.Load()
			}
			b()
			ended.Store(round)
		}
	}()
	for round, end := uint64(1), time.Now().Add(moment); round <= rounds && (round == 1 || time.Now().Before(end)); round++ {
		began.Store(round)
		for range round % 128 { // now the one, now the other is ahead
			began.Load()
		}
		a()
		for spin := 0; ended.Load() < round; spin++ {
			if spin > 1000 {
				runtime.Gosched()
			}
		}
		check(round)
	}
	over.Store(true)
	<-done
}

// Each of two threads submits to a ring of its own and then looks at the other's: one of
// them has to see the other's entry (store buffering). Whoever sees an entry sees what is
// in it (message passing). So a side that submits and then finds that the other side
// does not sleep has been seen by it.
func TestOrderAcrossRings(t *testing.T) {
	type end struct {
		out  *Producer[Desc]
		in   *Consumer[Desc]
		saw  int
		sent uint64
	}
	x, y := fakeRing[Desc](4, 0), fakeRing[Desc](4, 0)
	ends := [2]*end{{out: newProducer(x), in: newConsumer(y)}, {out: newProducer(y), in: newConsumer(x)}}
	var torn atomic.Uint64
	meet := func(e *end) func() {
		return func() {
			e.sent++
			if e.out.Reserve(1) == 1 {
				e.out.Set(0, Desc{Addr: e.sent, Len: uint32(e.sent), Options: ^uint32(e.sent)})
			}
			e.out.Submit(1)
			e.saw = e.in.Peek(1)
			if e.saw == 1 {
				if d := e.in.Get(0); d.Addr != e.sent || d.Len != uint32(d.Addr) || d.Options != ^uint32(d.Addr) {
					torn.Store(d.Addr)
				}
			}
		}
	}
	missed := uint64(0)
	lockstep(meet(ends[0]), meet(ends[1]), func(round uint64) {
		if ends[0].saw+ends[1].saw == 0 {
			missed = round
		}
		for _, e := range ends {
			e.in.Release(e.in.Peek(1))
		}
	})
	if missed != 0 {
		t.Errorf("round %d: both sides submitted, and neither saw the other's entry", missed)
	}
	if n := torn.Load(); n != 0 {
		t.Errorf("entry %d was seen before all of it was written", n)
	}
}
