// SPDX-License-Identifier: Apache-2.0

package fi

import (
	"fmt"
	"math"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/memory"
	"github.com/xdpfab/xdpfab/internal/wire"
	"github.com/xdpfab/xdpfab/mr"
)

// Msg is an operation to post (struct fi_msg_atomic).
type Msg struct {
	Buf     []byte // operand: Count elements, little-endian; ignored for Read
	Compare []byte // Count elements; CompareAtomic only
	Result  []byte // Count elements; not for Atomic
	// Count is the number of elements. 0 means as many as the buffers hold: Buf, or for
	// Read, Result.
	Count int
	Dest  Address
	// of the first element in the region, bytes; or its virtual address, if the region
	// is addressed virtually; with FlagTagged, in the buffer of the receive
	Offset uint64
	Key    uint64 // of the region; with FlagTagged, the tag
	// Of both, the zero values are ones of libfabric: int8 and min. A message that has
	// neither is refused with ErrOpNotSupported, unless Count says that min on int8 is
	// meant.
	Datatype atomic.Datatype
	Op       atomic.Op
	Context  any    // returned with the completion
	Data     uint64 // with FlagRemoteCQData: for the completion at the target; otherwise ignored

	// Incarnation is that of the region meant, and of all extents, as in RemoteRegion: if
	// another registration has the key, the operation fails with ErrPeerRestarted. 0
	// means any region that has the key.
	Incarnation uint32

	// RMA scatters the operation: its elements go to these extents, one after the other;
	// Offset and Key must be 0 then. Count is their sum. There is one completion for all.
	// This is the fastest way to update many words, as they share frames, in which the
	// parts that they have in common are sent once. An extent out of bounds makes the
	// operation fail, but the other extents may be changed, so the outcome is that of an
	// operation that may have run in part. RMA must stay untouched until completion,
	// unless FlagInject is given.
	RMA []mr.Extent

	// Pieces gives operands or the result as lists of buffers (fi_atomicv, fi_ioc).
	Pieces *Pieces

	// Trigger, if it is not nil, defers the operation until a counter has reached a
	// threshold (FI_TRIGGER, struct fi_triggered_context). Until then it has no place in
	// the order of the endpoint's operations; those that start one after the other apply
	// in that order among themselves. It takes a place in the completion queue at once,
	// and ErrAgain means that there is none, or that as many operations are deferred as
	// EndpointAttr.Size says. All that must stay untouched until completion must do so
	// all the time. If the endpoint is closed first, the operation completes with
	// ErrNotExecuted and ErrCancelled. See also Domain.QueueWork.
	Trigger *Threshold

	work   *Work // that the operation is the part of
	signal *Msg  // of a write with a signal
}

// Pieces are the operands and the result of an operation whose elements lie in several
// buffers, each of whole elements, one after the other. A list takes the place of the
// field of Msg with the same name, which must be empty then; any of the lists may be
// empty. They may be divided differently. A list has at most MaxPieces buffers. The
// lists, like the buffers, must stay untouched until completion, but for operands with
// FlagInject.
type Pieces struct {
	Buf, Compare, Result [][]byte
}

// results returns the pieces of an operation that ignores its operands.
func (p *Pieces) results() *engine.Pieces {
	if len(p.Buf) == 0 && len(p.Compare) == 0 {
		return (*engine.Pieces)(p)
	}
	return &engine.Pieces{Result: p.Result}
}

// MaxPieces is the most buffers in a list of Pieces (iov_limit of fi_tx_attr).
const MaxPieces = 1024

// elements returns the number of elements, after it has compared all that the message
// gives with it.
func (m *Msg) elements(verb wire.Verb, flags OpFlags) (uint32, error) {
	if !verb.Atomic() {
		return m.bytes(verb, flags)
	}
	if !atomic.Valid(memory.FormOf(verb), m.Op, m.Datatype) {
		return 0, undefined(memory.FormOf(verb), m.Op, m.Datatype)
	}
	if m.Op == 0 && m.Datatype == 0 && m.Count == 0 {
		return 0, errno.Refuse(ErrOpNotSupported, "xdpfab: message without Op and Datatype: want them, such as "+
			"atomic.Sum and atomic.Uint64; min on int8, which both are if they are zero, takes a Count as well")
	}
	if err := flags.check("operation flags", atomicFlags); err != nil {
		return 0, err
	}
	if m.Pieces != nil {
		if err := m.checkPieces(verb); err != nil {
			return 0, err
		}
	}
	count := m.Count
	if count == 0 {
		count = m.implied()
	}
	switch {
	case count <= 0:
		return 0, m.noElements()
	case count > math.MaxUint32:
		return 0, errno.Refuse(ErrTooMany, "xdpfab: %d elements: want 1..%d, post them in parts", count,
			math.MaxUint32)
	}
	if m.RMA != nil {
		if err := m.checkRMA(count); err != nil {
			return 0, err
		}
	}
	return uint32(count), m.checkBuffers(verb, count, flags)
}

// undefined is the error of an operation that a datatype lacks in a form.
func undefined(form atomic.Func, op atomic.Op, dt atomic.Datatype) error {
	why := fmt.Sprintf("operation not supported on %v: atomic.Valid tells which ones are", dt)
	switch {
	case atomic.Valid(atomic.Compare, op, dt):
		why = "the operation takes a comparand: want CompareAtomic"
	case atomic.Valid(atomic.Base, op, dt):
		why = "the operation takes no comparand: want Atomic or FetchAtomic"
	case atomic.Valid(atomic.Fetch, op, dt):
		why = "the operation has a result and takes no comparand: want FetchAtomic"
	}
	return errno.Refuse(ErrOpNotSupported, "xdpfab: %v %v on %v: %s", form, op, dt, why)
}

// noElements is the error of an operation on no elements. It names the buffer whose
// length would say how many there are.
func (m *Msg) noElements() error {
	buffer := "Buf"
	if m.Op == atomic.Read {
		buffer = "Result"
	}
	switch {
	case m.Count != 0:
		return errno.Refuse(ErrCount, "xdpfab: Count of %d elements: want 1..%d, or 0 for as many as %s holds", m.Count,
			math.MaxUint32, buffer)
	case m.Pieces != nil:
		buffer = "Pieces." + buffer
	}
	return errno.Refuse(ErrCount, "xdpfab: 0 elements, since Count is 0 and %s is empty: want 1..%d", buffer,
		math.MaxUint32)
}

// implied returns the number of elements of an operation whose Count is 0: as many as the
// buffer holds, the last one perhaps short.
func (m *Msg) implied() int {
	n, size := m.operandLen(), m.Datatype.Size()
	if m.Op == atomic.Read {
		n = m.resultLen()
	}
	return (n + size - 1) / size
}

// operandLen, compareLen and resultLen return the bytes given, in one buffer or in
// pieces.
func (m *Msg) operandLen() int {
	if m.Pieces == nil {
		return len(m.Buf)
	}
	return len(m.Buf) + total(m.Pieces.Buf)
}

func (m *Msg) compareLen() int {
	if m.Pieces == nil {
		return len(m.Compare)
	}
	return len(m.Compare) + total(m.Pieces.Compare)
}

func (m *Msg) resultLen() int {
	if m.Pieces == nil {
		return len(m.Result)
	}
	return len(m.Result) + total(m.Pieces.Result)
}

// total returns the length of buffers taken together.
func total(list [][]byte) (n int) {
	for _, b := range list {
		n += len(b)
	}
	return n
}

// checkBuffers compares the buffers with the number of elements.
func (m *Msg) checkBuffers(verb wire.Verb, count int, flags OpFlags) error {
	n := count * m.Datatype.Size()
	operand, compare, result := n, 0, n
	switch {
	case m.Op == atomic.Read: // Buf is ignored
		operand = m.operandLen()
	case verb == wire.VerbAtomic:
		result = 0
	case verb == wire.VerbCompare:
		compare = n
	}
	switch {
	case m.operandLen() != operand:
		return m.odd("Buf", m.operandLen(), count, operand)
	case m.compareLen() != compare && compare == 0:
		return errno.Refuse(ErrLength, "xdpfab: Msg.Compare has %d bytes, and the form %v takes no comparand: want "+
			"CompareAtomic, or none", m.compareLen(), memory.FormOf(verb))
	case m.compareLen() != compare:
		return m.odd("Compare", m.compareLen(), count, compare)
	case m.resultLen() != result && result == 0:
		return errno.Refuse(ErrLength, "xdpfab: Msg.Result has %d bytes, and the form %v has no result: want "+
			"FetchAtomic, or none", m.resultLen(), memory.FormOf(verb))
	case m.resultLen() != result:
		return m.odd("Result", m.resultLen(), count, result)
	case flags&FlagInject != 0 && m.Op != atomic.Read && operand+compare > injectSize:
		return errno.Refuse(ErrTooBig, "xdpfab: %d bytes to inject: want at most %d", operand+compare, injectSize)
	}
	return nil
}

// odd is the error of a buffer that does not hold the elements.
func (m *Msg) odd(field string, n, count, want int) error {
	return errno.Refuse(ErrLength, "xdpfab: Msg.%s has %d bytes for %v[%d]: want %d", field, n, m.Datatype, count, want)
}

// checkPieces checks that the lists take the place of buffers, and hold whole elements.
func (m *Msg) checkPieces(verb wire.Verb) error {
	for _, x := range []struct {
		what    string
		whole   []byte
		list    [][]byte
		ignored bool
	}{
		{"Buf", m.Buf, m.Pieces.Buf, verb.Atomic() && m.Op == atomic.Read},
		{"Compare", m.Compare, m.Pieces.Compare, false},
		{"Result", m.Result, m.Pieces.Result, false},
	} {
		switch {
		case x.ignored:
			continue
		case len(x.list) > MaxPieces:
			return errno.Refuse(ErrTooMany, "xdpfab: %d pieces of %s: want at most %d", len(x.list), x.what,
				MaxPieces)
		case len(x.list) > 0 && len(x.whole) > 0:
			return errno.Refuse(ErrLength,
				"xdpfab: %s in pieces and in one buffer of %d bytes: want one of the two", x.what,
				len(x.whole))
		}
		for i, b := range x.list {
			if size := m.Datatype.Size(); len(b)%size != 0 {
				return errno.Refuse(ErrLength,
					"xdpfab: piece %d of %s has %d bytes: want whole elements of %d", i, x.what,
					len(b), size)
			}
		}
	}
	return nil
}

// checkRMA compares the extents with the number of elements.
func (m *Msg) checkRMA(count int) error {
	if m.Offset != 0 || m.Key != 0 {
		return errno.Refuse(ErrNotImplemented,
			"xdpfab: offset %#x and key %#x beside extents, which have their own: want 0", m.Offset,
			m.Key)
	}
	if len(m.RMA) == 0 {
		return errno.Refuse(ErrCount, "xdpfab: the list of extents (RMA) is empty: want at least one, or nil for the "+
			"place of Offset and Key")
	}
	sum := 0
	for i := range m.RMA {
		n := m.RMA[i].Count
		if n == 0 {
			return errno.Refuse(ErrCount, "xdpfab: extent %d has a count of 0: want at least 1", i)
		}
		sum += int(n)
	}
	if sum != count {
		return errno.Refuse(ErrCount,
			"xdpfab: %d extents with a count of %d in all for an operation on %d: want the same number",
			len(m.RMA), sum, count)
	}
	return nil
}
