// SPDX-License-Identifier: Apache-2.0

package xdpfab

import (
	"fmt"
	"math"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/memory"
	"github.com/xdpfab/xdpfab/internal/wire"
	"github.com/xdpfab/xdpfab/mr"
)

// Flags of the Msg forms, after fi_atomic(3).
const (
	// FlagFence defers the operation, and all posted after it to the same peer,
	// until every earlier one has completed (FI_FENCE).
	FlagFence uint64 = 1 << (iota + 16)
	// FlagInject makes the operand buffers and Msg.RMA free on return (FI_INJECT). The
	// buffers may have up to InjectSize bytes together.
	FlagInject
	// FlagMore says that another operation follows at once, so the poller need not
	// be woken for this one (FI_MORE). It is woken by the next post without FlagMore
	// or that fails, and by whoever reads completions or waits.
	FlagMore
	// FlagDeliveryComplete asks for a completion only after the operation has been
	// applied (FI_DELIVERY_COMPLETE). That is always so.
	FlagDeliveryComplete

	knownFlags = FlagFence | FlagInject | FlagMore | FlagDeliveryComplete
)

// InjectSize is how many bytes of operands an operation can take along, so that
// the buffers are free when the call returns.
const InjectSize = engine.InlineLen

// Msg is an operation in one structure (struct fi_msg_atomic).
type Msg struct {
	Buf     []byte // operand: Count elements, little-endian; ignored for Read
	Compare []byte // Count elements; CompareAtomicMsg only
	Result  []byte // Count elements; not for AtomicMsg
	Count   int    // elements
	Dest    Address
	Addr    uint64 // byte offset in the region, or virtual address for one registered so
	Key     uint64
	// Incarnation is that of the region meant, and of all extents, as Region tells it: if
	// another registration has the key, the operation fails with ErrPeerRestarted. 0 means
	// whichever region has the key.
	Incarnation uint32
	Datatype    atomic.Datatype
	Op          atomic.Op
	Context     any // returned with the completion

	// RMA scatters the operation: its elements go to these extents, one after the
	// other; Addr and Key must be 0 then. Count is their sum. There is one completion
	// for all. It is the fastest way to update many words, as they share frames and
	// what is common to them is sent once. An extent out of bounds makes the operation
	// fail, but not the others, so it fails as one that may have run in part. RMA must
	// stay untouched until completion, unless FlagInject is given.
	RMA []mr.Extent
}

// Atomic posts a base operation: count elements of buf are combined with those at
// addr in the peer's region; nothing is returned (fi_atomic). buf must stay
// untouched until completion, unless it has at most InjectSize bytes.
//
// The error is about the posting alone: ErrAgain when the queues are full,
// ErrUnsupported, ErrCount, ErrTooMany, ErrLength, ErrUnknownPeer, ErrNotEnabled, ErrClosed.
// How the operation ended is told by the completion.
func (ep *Endpoint) Atomic(buf []byte, count int, dest Address, addr, key uint64, dt atomic.Datatype, op atomic.Op, context any) error {
	return ep.AtomicMsg(&Msg{Buf: buf, Count: count, Dest: dest, Addr: addr, Key: key, Datatype: dt, Op: op, Context: context}, 0)
}

// FetchAtomic is as Atomic, and stores the elements' values from before in result
// (fi_fetch_atomic), which must stay untouched until completion.
func (ep *Endpoint) FetchAtomic(buf []byte, count int, result []byte, dest Address, addr, key uint64, dt atomic.Datatype, op atomic.Op, context any) error {
	return ep.FetchAtomicMsg(&Msg{Buf: buf, Result: result, Count: count, Dest: dest, Addr: addr, Key: key, Datatype: dt, Op: op, Context: context}, 0)
}

// CompareAtomic compares the elements with those of compare and replaces them
// by those of buf where the comparison holds; the values from before go to
// result (fi_compare_atomic).
func (ep *Endpoint) CompareAtomic(buf []byte, count int, compare, result []byte, dest Address, addr, key uint64, dt atomic.Datatype, op atomic.Op, context any) error {
	return ep.CompareAtomicMsg(&Msg{Buf: buf, Compare: compare, Result: result, Count: count, Dest: dest, Addr: addr, Key: key, Datatype: dt, Op: op, Context: context}, 0)
}

// AtomicMsg is Atomic with flags (fi_atomicmsg).
func (ep *Endpoint) AtomicMsg(m *Msg, flags uint64) error {
	return ep.post(wire.VerbAtomic, m, flags, 0)
}

// FetchAtomicMsg is FetchAtomic with flags (fi_fetch_atomicmsg).
func (ep *Endpoint) FetchAtomicMsg(m *Msg, flags uint64) error {
	return ep.post(wire.VerbFetch, m, flags, 0)
}

// CompareAtomicMsg is CompareAtomic with flags (fi_compare_atomicmsg).
func (ep *Endpoint) CompareAtomicMsg(m *Msg, flags uint64) error {
	return ep.post(wire.VerbCompare, m, flags, 0)
}

// InjectAtomic is Atomic for at most InjectSize bytes: buf is free on return, and
// success makes no completion, though counters count it (fi_inject_atomic). A
// failure does make one, without context.
func (ep *Endpoint) InjectAtomic(buf []byte, count int, dest Address, addr, key uint64, dt atomic.Datatype, op atomic.Op) error {
	m := Msg{Buf: buf, Count: count, Dest: dest, Addr: addr, Key: key, Datatype: dt, Op: op}
	return ep.post(wire.VerbAtomic, &m, FlagInject, injected)
}

// AtomicValid reports how many elements one Atomic call can take (fi_atomicvalid):
// arrays of any length are segmented inside.
func (ep *Endpoint) AtomicValid(dt atomic.Datatype, op atomic.Op) (count int, err error) {
	return valid(atomic.Base, dt, op)
}

// FetchAtomicValid is AtomicValid for FetchAtomic.
func (ep *Endpoint) FetchAtomicValid(dt atomic.Datatype, op atomic.Op) (count int, err error) {
	return valid(atomic.Fetch, dt, op)
}

// CompareAtomicValid is AtomicValid for CompareAtomic.
func (ep *Endpoint) CompareAtomicValid(dt atomic.Datatype, op atomic.Op) (count int, err error) {
	return valid(atomic.Compare, dt, op)
}

// AtomicAttr is what QueryAtomic tells (struct fi_atomic_attr).
type AtomicAttr struct {
	Count int // elements in one call
	Size  int // bytes of an element
}

// QueryAtomic tells whether an operation is supported for a datatype in one of
// the three forms (fi_query_atomic).
func (d *Domain) QueryAtomic(f atomic.Func, dt atomic.Datatype, op atomic.Op) (AtomicAttr, error) {
	n, err := valid(f, dt, op)
	return AtomicAttr{Count: n, Size: dt.Size()}, err
}

func valid(f atomic.Func, dt atomic.Datatype, op atomic.Op) (int, error) {
	if !atomic.Valid(f, op, dt) {
		return 0, fmt.Errorf("xdpfab: %v %v on %v: %w", f, op, dt, ErrUnsupported)
	}
	return math.MaxUint32, nil
}

// post submits an operation and sees to it that it gets started, or, with FlagMore,
// that the next call does so. After a failure there may be no next post.
func (ep *Endpoint) post(verb wire.Verb, m *Msg, flags, cookie uint64) error {
	err := ep.submit(verb, m, flags, cookie)
	switch {
	case err != nil:
		ep.stepper.Start()
	case flags&FlagMore != 0:
		ep.stepper.Defer()
	default:
		ep.stepper.Notify()
	}
	return err
}

// submit checks an operation and hands it to the engine.
func (ep *Endpoint) submit(verb wire.Verb, m *Msg, flags, cookie uint64) error {
	if !ep.ready() {
		return ep.unready()
	}
	if m == nil {
		return fmt.Errorf("xdpfab: no message: %w", ErrLength)
	}
	if !atomic.Valid(memory.FormOf(verb), m.Op, m.Datatype) {
		return fmt.Errorf("xdpfab: %v %v on %v: %w", memory.FormOf(verb), m.Op, m.Datatype, ErrUnsupported)
	}
	if err := m.check(verb, flags); err != nil {
		return err
	}
	peer, err := ep.peer(m.Dest)
	if err != nil {
		return err
	}
	s, direct, err := ep.claim()
	if err != nil {
		return err
	}
	s.Peer, s.Cookie, s.Context, s.Result = peer, cookie|uint64(m.Dest), m.Context, m.Result
	s.Key, s.Incarnation, s.Offset, s.Count = m.Key, m.Incarnation, m.Addr, uint32(m.Count)
	s.Verb, s.Opcode, s.Datatype = verb, uint8(m.Op), uint8(m.Datatype)
	if flags&FlagFence != 0 {
		s.Flags |= engine.FlagFence
	}
	switch {
	case m.RMA == nil:
	case flags&FlagInject != 0:
		s.CopyExtents(m.RMA)
	default:
		s.SetExtents(m.RMA)
	}
	if m.Op != atomic.Read {
		s.SetOperands(m.Buf, m.Compare)
	}
	ep.hand(s, direct)
	return nil
}

// check compares the buffers with the count.
func (m *Msg) check(verb wire.Verb, flags uint64) error {
	if flags&^knownFlags != 0 {
		return fmt.Errorf("xdpfab: flags %#x: %w", flags&^knownFlags, ErrNotSupported)
	}
	switch {
	case m.Count <= 0:
		return fmt.Errorf("xdpfab: %d elements: want 1..%d: %w", m.Count, math.MaxUint32, ErrCount)
	case m.Count > math.MaxUint32:
		return fmt.Errorf("xdpfab: %d elements: want 1..%d, post them in parts: %w", m.Count, math.MaxUint32, ErrTooMany)
	}
	if m.RMA != nil {
		if err := m.checkRMA(); err != nil {
			return err
		}
	}
	n := m.Count * m.Datatype.Size()
	operand, compare, result := n, 0, n
	switch {
	case m.Op == atomic.Read: // Buf is ignored
		operand = len(m.Buf)
	case verb == wire.VerbAtomic:
		result = 0
	case verb == wire.VerbCompare:
		compare = n
	}
	switch {
	case len(m.Buf) != operand:
		return fmt.Errorf("xdpfab: operand of %d bytes for %d elements of %v: want %d: %w", len(m.Buf), m.Count, m.Datatype, operand, ErrLength)
	case len(m.Compare) != compare:
		return fmt.Errorf("xdpfab: compare operand of %d bytes for %d elements of %v: want %d: %w", len(m.Compare), m.Count, m.Datatype, compare, ErrLength)
	case len(m.Result) != result:
		return fmt.Errorf("xdpfab: result buffer of %d bytes for %d elements of %v: want %d: %w", len(m.Result), m.Count, m.Datatype, result, ErrLength)
	case flags&FlagInject != 0 && m.Op != atomic.Read && operand+compare > InjectSize:
		return fmt.Errorf("xdpfab: %d bytes to inject: want at most %d: %w", operand+compare, InjectSize, ErrTooBig)
	}
	return nil
}

// checkRMA compares the extents with the count.
func (m *Msg) checkRMA() error {
	if m.Addr != 0 || m.Key != 0 {
		return fmt.Errorf("xdpfab: address %#x and key %#x beside extents, which have their own: want 0: %w", m.Addr, m.Key, ErrNotSupported)
	}
	sum := 0
	for i := range m.RMA {
		n := m.RMA[i].Count
		if n == 0 {
			return fmt.Errorf("xdpfab: extent %d has no elements: want at least 1: %w", i, ErrCount)
		}
		sum += int(n)
	}
	if sum != m.Count {
		return fmt.Errorf("xdpfab: %d extents with %d elements in all for an operation on %d: want the same number: %w",
			len(m.RMA), sum, m.Count, ErrCount)
	}
	return nil
}
