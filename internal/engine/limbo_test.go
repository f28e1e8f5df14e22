// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"encoding/binary"
	"testing"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/port"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// The late outcome of an array must be about the whole array: what was answered
// before the partition, and what never left.
func TestLateOutcomeOfArray(t *testing.T) {
	w := quietWorld(t)
	const n = 100_000
	var r outcomes
	operand := make([]byte, 8*n)
	for i := range n {
		operand[8*i] = 1
		w.bytes[8*i] = 7
	}
	op := w.ring.Claim()
	op.Peer, op.Context, op.Key, op.Offset, op.Count = w.peers[0].ID(), &r, 1, 0, n
	op.Verb, op.Opcode, op.Datatype, op.Flags = wire.VerbFetch, uint8(atomic.Sum), uint8(atomic.Uint64), 0
	op.SetOperands(operand, nil)
	op.Result = make([]byte, 8*n)
	op.Publish()
	for w.bytes[8*1000] == 7 { // part of it has run
		w.step()
	}
	w.step()                                   // and is answered
	w.ports[1].SetFaults(port.Faults{Loss: 1}) // requests arrive, answers do not
	w.until(1, &r)
	w.ports[1].SetFaults(port.Faults{})
	later := r.all[0].Later
	if later == nil {
		t.Fatalf("nothing to be cleared up: %+v", r.all[0])
	}
	for range 100_000 {
		select {
		case <-later.Done():
			res, data := later.Outcome()
			ran, wrong := 0, 0
			for i := range n {
				if w.bytes[8*i] == 8 {
					ran++
					if binary.LittleEndian.Uint64(data[8*i:]) != 7 {
						wrong++
					}
				}
			}
			if res.Fate == Success && ran != n {
				t.Errorf("late outcome: success, but %d of %d elements ran", ran, n)
			}
			if res.Fate == Success && wrong > 0 {
				t.Errorf("late outcome: success, but %d of %d results are not there", wrong, ran)
			}
			t.Logf("%+v, %d ran", res, ran)
			return
		default:
			w.step()
		}
	}
	t.Error("never known")
}
