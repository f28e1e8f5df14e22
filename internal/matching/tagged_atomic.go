// SPDX-License-Identifier: Apache-2.0

package matching

import (
	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// A tagged atomic is a message that is combined with elements of the buffer in place of
// being copied there. It has one piece, the operand, and is combined as a whole or, if it
// does not fit the receive that it matches, not at all. It needs the bytes of the buffer
// up to its last element, so that is its length for a multi-receive.

// operation is what a message does with the buffer of its receive if it is a tagged
// atomic.
type operation struct {
	is     bool          // the message is a tagged atomic
	kernel atomic.Kernel // nil if there is no such operation
	read   atomic.Kernel // of the same datatype
	align  int           // that the address of an element is a multiple of
	offset uint64        // of the first element from where the message begins
	target []byte        // the elements in the buffer; nil unless a receive takes the message, and it fits
	misfit Reason        // why it does not fit; Received if it does
}

// forms maps the atomic verbs of the wire to the forms of fi_atomic(3).
var forms = [wire.NumAtomicVerbs]atomic.Func{
	wire.VerbAtomic: atomic.Base, wire.VerbFetch: atomic.Fetch, wire.VerbCompare: atomic.Compare,
}

// operationOf returns what a record asks for.
func operationOf(a *wire.TaggedAtomic) (o operation) {
	if a.Form != 0 {
		dt := atomic.Datatype(a.Datatype)
		o = operation{is: true, kernel: atomic.KernelOf(forms[a.Form], atomic.Op(a.Op), dt),
			read: atomic.KernelOf(atomic.Fetch, atomic.Read, dt), align: dt.Align(), offset: a.Offset}
	}
	return o
}

// needs returns how many bytes of a buffer the message needs from where it begins.
func (m *message) needs() uint64 { return m.op.offset + m.length }

// aim finds the elements of a tagged atomic in the buffer that it goes into.
func (m *message) aim() {
	o := &m.op
	switch {
	case !o.is:
	case m.size < m.needs():
		o.misfit = Truncated
	case o.kernel == nil:
		o.misfit = Unsupported
	default:
		o.target = m.into.within(m.offset+o.offset, m.length)
		if o.target == nil || misaligned(o.target, o.align) {
			o.target, o.misfit = nil, Misplaced
		}
	}
}

// within returns the n bytes at an offset in the buffers, or nil if they lie in several
// of them. There are as many.
func (n *receive) within(offset, length uint64) []byte {
	for _, b := range n.buffers {
		switch size := uint64(len(b)); {
		case offset >= size:
			offset -= size
		case length > size-offset:
			return nil
		default:
			return b[offset : offset+length : offset+length]
		}
	}
	return nil
}

// Combine takes the only piece of the message in progress, a tagged atomic that was
// admitted, as Put does of others: it is combined with the buffer of its receive, or held
// for one. result is where the values before go, if it returns them. The status is that
// of the combination; one that is held has none yet.
func (in *Inflow) Combine(w *wire.Message, result []byte) wire.Status {
	m, status := in.current, wire.StatusOK
	if m == nil {
		return wire.StatusNotExecuted
	}
	if m.into != nil {
		if status = statuses[m.op.misfit]; status == wire.StatusOK {
			m.op.kernel(m.op.target, w.Part, w.Atomic.Compare, result)
		}
	} else {
		in.q.memory.store(m, w.Part)
	}
	m.got = m.length
	in.current = nil
	in.q.arrived(m)
	return status
}

// Find reports how a tagged atomic will end that was admitted into a receive, before it
// is combined, and copies what its elements hold to values, if that is not nil.
func (in *Inflow) Find(values []byte) wire.Status {
	m := in.current
	if m == nil || m.into == nil {
		return wire.StatusNotExecuted
	}
	status := statuses[m.op.misfit]
	if status == wire.StatusOK && values != nil {
		m.op.read(m.op.target, nil, nil, values)
	}
	return status
}

// statuses are the statuses of tagged atomics, by how their receives end.
var statuses = [...]wire.Status{
	Received: wire.StatusOK, Truncated: wire.StatusOutOfBounds, Misplaced: wire.StatusMisaligned,
	Unsupported: wire.StatusUnsupported,
}
