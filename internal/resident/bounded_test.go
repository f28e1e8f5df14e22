// SPDX-License-Identifier: Apache-2.0

//go:build linux

package resident

import (
	"encoding/binary"
	"testing"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// special returns numbers of a datatype at which sums pass a limit, or just not.
func special(dt atomic.Datatype) []uint64 {
	top := uint64(1) << (8*dt.Size() - 1)
	return []uint64{0, 1, 3, ^uint64(0), top, top - 1, top / 2}
}

// The program executes the operations that libfabric does not have as the kernels in Go
// do, on all triples of special values of each of its datatypes.
func TestBoundedOperations(t *testing.T) {
	w := newTwin(t, setting{kind: wire.Ethernet, frame: 1500})
	before, ran := w.state(), 0
	for op := atomic.SumAtMost; op < atomic.NumOps; op++ {
		for dt := atomic.Int8; dt <= atomic.Uint64; dt++ {
			for verb := wire.VerbAtomic; verb <= wire.VerbCompare; verb++ {
				if rec := (wire.Record{Verb: verb, Op: uint8(op), Datatype: uint8(dt)}); supported(&rec) {
					ran += w.triples(rec)
				}
			}
		}
	}
	if s := w.state(); s.Frames-before.Frames != uint64(ran) || ran < 7*7*(8*3+8*2*2) {
		t.Errorf("the program ran %d frames of %d", s.Frames-before.Frames, ran)
	}
}

// triples runs an operation on all triples of special values, and returns in how many
// frames: one for each operand and comparand, with an element for each value from before.
func (w *twin) triples(rec wire.Record) (frames int) {
	size := wire.ElemSize(rec.Datatype)
	values := special(atomic.Datatype(rec.Datatype))
	array := func(value func(i int) uint64) (b []byte) {
		for i := range values {
			b = append(b, binary.LittleEndian.AppendUint64(nil, value(i))[:size]...)
		}
		return b
	}
	store := wire.Record{Verb: wire.VerbAtomic, Op: uint8(atomic.Write), Datatype: rec.Datatype, Key: twinRegions[0].key,
		Count: uint32(len(values)), Operand: array(func(i int) uint64 { return values[i] })}
	rec.Key, rec.Count = store.Key, store.Count
	for _, operand := range values {
		for _, comparand := range values {
			rec.Operand = array(func(int) uint64 { return operand })
			if rec.Verb == wire.VerbCompare {
				rec.Compare = array(func(int) uint64 { return comparand })
			}
			b := make([]byte, MaxFrame)
			var rw wire.RecordWriter
			rw.Reset(b, MaxFrame)
			if !rw.Append(&store) || !rw.Append(&rec) {
				w.t.Fatal("no room")
			}
			w.request(b[:rw.Len()], rw.Ops())
			frames++
		}
	}
	return frames
}
