// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"encoding/binary"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/wire"
	"github.com/xdpfab/xdpfab/mr"
)

// signalled is the word that the signal of a write is for, once all has been checked.
type signalled struct {
	wire.Signal
	kernel atomic.Kernel
	region *mr.Region
	bytes  []byte
}

// findSignal checks the signal of the current write as any atomic is checked, and changes
// nothing.
func (m *Memory) findSignal(w *signalled) wire.Status {
	w.Signal = wire.SignalAt(m.rec.Compare)
	size := wire.ElemSize(w.Datatype)
	if w.Op >= atomic.NumOps || size == 0 || size > wire.MaxSignal {
		return wire.StatusUnsupported
	}
	if w.kernel = kernels[wire.VerbAtomic][w.Op][w.Datatype]; w.kernel == nil {
		return wire.StatusUnsupported
	}
	write := m.rec
	m.rec = wire.Record{Verb: wire.VerbAtomic, Op: w.Op, Datatype: w.Datatype, Key: w.Key,
		Incarnation: w.Incarnation, Offset: w.Offset, Count: 1, Total: 1}
	var status wire.Status
	w.bytes, status = m.resolve(size, aligns[w.Datatype])
	w.region, m.rec = m.last, write
	return status
}

// signal applies the signal, now that the write is in memory. The two are one operation;
// the word's region counts it as well if it is another one.
func (m *Memory) signal(w *signalled) {
	binary.LittleEndian.PutUint64(m.operand[:], w.Operand)
	n := len(w.bytes)
	w.kernel(w.bytes, m.operand[:n], nil, nil)
	if w.region == m.last {
		return
	}
	w.region.AddTally(mr.Tally{NonFetching: 1, NonFetchingBytes: uint64(n)})
	if o := w.region.Observer(); o != nil {
		o.Touched(0, 1, 0, n)
	}
}
