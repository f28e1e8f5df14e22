// SPDX-License-Identifier: Apache-2.0

package xsk

import (
	"sync/atomic"
	"testing"

	"github.com/xdpfab/xdpfab/internal/testnet/lockstep"
)

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
	lockstep.Run(meet(ends[0]), meet(ends[1]), func(round uint64) {
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
