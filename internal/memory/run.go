// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/wire"
	"github.com/xdpfab/xdpfab/mr"
)

// touchFrom is the size in bytes of regions whose words are fetched into the cache before
// a run is executed. Smaller ones are likely to be there.
const touchFrom = 2 << 20

// runAtOnce executes the current run, whose first operation is number i of its frame, and
// checks only once the parts that its operations have in common. It returns false and
// does nothing when an operation would fail, or the run is not of the usual kind: then
// the operations are executed one by one.
func (m *Memory) runAtOnce(i int) bool {
	rec := &m.rec
	if rec.Op >= atomic.NumOps || rec.Datatype >= atomic.NumDatatypes {
		return false
	}
	kernel := kernels[rec.Verb][rec.Op][rec.Datatype]
	region := m.find(rec.Key)
	if kernel == nil || region == nil || region.AuthKey() != m.auth || !m.meant() {
		return false
	}
	size, offsets := wire.ElemSize(rec.Datatype), rec.Offsets(m.offsets[:])
	data := region.ResolveEach(offsets, size, aligns[rec.Datatype], Needs(rec.Verb, rec.Op))
	if data == nil {
		return false
	}
	var result []byte
	if rec.Verb.Returns() {
		if result = m.resp.AppendValue(i+rec.Run-1, rec.Run*size); result == nil {
			return false
		}
	}
	if len(data) > touchFrom {
		atomic.Touch(data, offsets)
	}
	if sweep := atomic.SweepOf(FormOf(rec.Verb), atomic.Op(rec.Op), atomic.Datatype(rec.Datatype)); sweep != nil &&
		len(rec.Operand) == size {
		sweep(data, offsets, rec.Operand, result)
		m.touched(rec.Run, rec.Run*size)
		return true
	}
	for j := range rec.Run {
		rec.Element(j)
		var old []byte
		if result != nil {
			old = result[j*size : (j+1)*size]
		}
		kernel(data[rec.Offset:rec.Offset+uint64(size)], rec.Operand, rec.Compare, old)
	}
	m.touched(rec.Run, rec.Run*size)
	return true
}

// find returns the region of a key, or nil. Records of one frame mostly have one.
func (m *Memory) find(key uint64) *mr.Region {
	if m.last == nil || m.last.Key() != key {
		m.last = m.reader.Lookup(key)
	}
	return m.last
}

// meant reports whether the current record means the region found.
func (m *Memory) meant() bool {
	return m.rec.Incarnation == 0 || m.rec.Incarnation == m.last.Incarnation()
}
