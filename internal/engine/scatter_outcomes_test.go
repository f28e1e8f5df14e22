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

// Operations on extents, arrays and single words through losses, a give-up and a
// resumption: nothing runs twice, success ran, not executed never ran.
func TestScatterFates(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 3))
		bn := newBench(t, seed, session.Config{GiveUp: 200 * time.Millisecond})
		const words = 100000
		mem := bn.region(1, words*8, mr.RemoteRead|mr.RemoteWrite)
		bn.region(2, 8, mr.RemoteRead|mr.RemoteWrite)
		p := bn.peer(0)
		bn.a.port.SetFaults(port.Faults{Loss: 0.1, Reorder: 0.2, Duplicate: 0.1})
		bn.b.port.SetFaults(port.Faults{Loss: 0.1, Reorder: 0.2})
		type one struct {
			laters
			from, n int
			bad     int
			xs      []mr.Extent
			result  []byte
			fetch   bool
		}
		var all []*one
		next := 0
		cut := 5 + rng.IntN(60)
		heal := cut + 20
		for i := range 120 {
			if i == cut {
				bn.b.port.SetFaults(port.Faults{Loss: 1})
				if rng.IntN(2) == 0 {
					bn.a.port.SetFaults(port.Faults{Loss: 0.6})
				}
				if rng.IntN(4) == 0 {
					bn.a.port.SetFaults(port.Faults{Loss: 1})
				}
			}
			if i == heal {
				for _, o := range all {
					bn.until(func() bool { return o.laters.results.n == 1 })
				}
				bn.a.port.SetFaults(port.Faults{Loss: 0.05})
				bn.b.port.SetFaults(port.Faults{Loss: 0.05})
			}
			n := 1
			o := &one{from: next, fetch: rng.IntN(2) == 0}
			kind := rng.IntN(5)
			if kind >= 2 {
				n = 1 + rng.IntN(700)
			}
			o.n = n
			next += n
			operand := bytes.Repeat([]byte{1, 0, 0, 0, 0, 0, 0, 0}, n)
			var result []byte
			verb := wire.VerbAtomic
			if o.fetch {
				result = make([]byte, 8*n)
				verb = wire.VerbFetch
			}
			o.result = result
			var op *engine.Submission
			for op = bn.a.ring.Claim(); op == nil; op = bn.a.ring.Claim() {
				bn.step()
			}
			op.Peer, op.Context, op.Key, op.Offset, op.Count = p.ID(), o, 1, uint64(o.from*8), uint32(n)
			op.Verb, op.Opcode, op.Datatype, op.Flags = verb, uint8(atomic.Sum), uint8(atomic.Uint64), 0
			if rng.IntN(10) == 0 {
				op.Flags = engine.FlagFence
			}
			if kind >= 3 { // extents
				for at := 0; at < n; {
					c := 1
					if rng.IntN(20) == 0 {
						c = min(1+rng.IntN(300), n-at)
					}
					x := mr.Extent{Key: 1, Offset: uint64((o.from + at) * 8), Count: uint32(c)}
					if rng.IntN(400) == 0 {
						x.Key = 9
						o.bad++
					}
					o.xs = append(o.xs, x)
					at += c
				}
				op.SetExtents(o.xs)
			}
			op.SetOperands(operand, nil)
			op.Result = result
			op.Publish()
			all = append(all, o)
			if rng.IntN(3) == 0 {
				bn.step()
			}
		}
		for k, o := range all {
			bn.until(func() bool { return o.laters.results.n == 1 })
			r, data := o.last, o.result
			if len(o.later) > 0 {
				l := o.later[0]
				bn.until(func() bool {
					select {
					case <-l.Done():
						return true
					default:
						return false
					}
				})
				r, data = l.Outcome()
			}
			ran, values := 0, true
			for i := range o.n {
				v := binary.LittleEndian.Uint64(mem[8*(o.from+i):])
				if v > 1 {
					t.Fatalf("seed %d: word %d ran %d times", seed, i, v)
				}
				ran += int(v)
				if len(data) > 0 && binary.LittleEndian.Uint64(data[8*i:]) != 0 {
					values = false
				}
			}
			switch {
			case r.Outcome == engine.NotExecuted && ran > 0, r.Outcome == engine.Success && ran < o.n, !values:
				t.Fatalf("seed %d, op %d: %+v, ran %d of %d, %d bad (%v)", seed, k, r, ran, o.n, o.bad, values)
			}
		}
	}
}
