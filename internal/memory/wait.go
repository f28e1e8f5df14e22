// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/waiting"
	"github.com/xdpfab/xdpfab/internal/wire"
	"github.com/xdpfab/xdpfab/mr"
)

// Serve names the session whose operations may wait from now on; nil if they may not.
func (m *Memory) Serve(s waiting.Session) { m.session = s }

// wait runs a waiting compare, or parks it in the queues of its region. Whatever can fail
// is checked before.
func (m *Memory) wait(i int) wire.Status {
	rec := &m.rec
	op, dt := atomic.Op(rec.Op), atomic.Datatype(rec.Datatype)
	if m.session == nil || !waiting.Waits(op, dt) {
		return wire.StatusUnsupported
	}
	target, status := m.resolve(dt.Size(), aligns[dt])
	if status != wire.StatusOK {
		return status
	}
	if m.last.Memory().Kind() == mr.KindResident { // the XDP program tells nobody what it changes
		return wire.StatusUnsupported
	}
	queues := waiting.Of(m.last)
	if queues == nil {
		return wire.StatusNoKey
	}
	value := m.value(i, wire.TicketLen)
	if value == nil {
		return wire.StatusBadCount
	}
	n := &waiting.Note{Op: op, Datatype: dt, Kernel: kernels[wire.VerbCompare][op][dt],
		Target: target, Owner: m.session}
	copy(n.Operand[:], rec.Operand)
	copy(n.Compare[:], rec.Compare)
	told := wire.Ticket{Index: uint8(i)}
	switch queues.Enter(n, m.session.MayWait()) {
	case waiting.Ran:
		told.Kind, told.Value = wire.TicketRan, n.Value()
		m.applied(len(target))
	case waiting.Parked:
		told.Kind, told.PSN = wire.TicketParked, m.session.Park(n, told.Index, rec.Limit)
	case waiting.Closed:
		told.Kind = wire.TicketClosed
	default:
		told.Kind = wire.TicketFull
	}
	told.Put(value)
	return wire.StatusOK
}
