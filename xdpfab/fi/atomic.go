// SPDX-License-Identifier: Apache-2.0

package fi

import (
	"fmt"
	"math"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// Atomic posts a base operation: the elements of Msg.Buf are combined with those at
// Msg.Offset in the peer's region; nothing is returned (fi_atomic, fi_atomicmsg). Buf
// must stay untouched until completion, unless it has at most EndpointAttr.InjectSize
// bytes. The Msg itself may be reused when the call returns, here and in the other forms.
//
// The error is about the posting alone: ErrAgain when the queues are full,
// ErrOpNotSupported, ErrBadFlags, ErrCount, ErrTooMany, ErrLength, ErrUnknownPeer,
// ErrNotEnabled, ErrClosed. The completion tells how the operation ended.
//
// With FlagTagged the target is the buffer of a tagged receive (FI_TAGGED): Msg.Key is
// the tag, Msg.Offset the first element's offset in the buffer, in bytes. The atomic is a
// message whose bytes are combined with the buffer instead of being copied there. It is
// matched, in the order sent, and kept for a receive as a message of SendTagged is, and
// it has at most as many elements as Domain.QueryAtomic with FlagTagged says, and as the
// MTU of the peer allows: otherwise it ends with ErrTooMany. The receive completes with
// CompletionAtomic and the number of bytes that were combined. Success means that the
// target has the atomic; with FlagMatchComplete, and always for FetchAtomic and
// CompareAtomic, that it was combined with the buffer of a receive. Until then it waits,
// and all that is posted behind it to the same endpoint.
//
// Elements that do not lie in one buffer of the receive, at multiples of their alignment,
// change nothing: the receive ends with ErrTruncated or ErrMisaligned, and an atomic that
// has to be combined to succeed with ErrOutOfBounds or ErrMisaligned.
func (ep *Endpoint) Atomic(m *Msg, flags OpFlags) error {
	return ep.post(wire.VerbAtomic, m, flags, 0)
}

// FetchAtomic is like Atomic, and also stores the elements' previous values in
// Msg.Result, which must stay untouched until completion (fi_fetch_atomic,
// fi_fetch_atomicmsg).
func (ep *Endpoint) FetchAtomic(m *Msg, flags OpFlags) error {
	return ep.post(wire.VerbFetch, m, flags, 0)
}

// CompareAtomic compares the elements with those of Msg.Compare and replaces them by
// those of Msg.Buf where the comparison holds; the previous values go to Msg.Result
// (fi_compare_atomic, fi_compare_atomicmsg).
func (ep *Endpoint) CompareAtomic(m *Msg, flags OpFlags) error {
	return ep.post(wire.VerbCompare, m, flags, 0)
}

// InjectAtomic is Atomic for at most EndpointAttr.InjectSize bytes: Msg.Buf and Msg.RMA
// may be reused on return, and success makes no completion, though counters count it
// (fi_inject_atomic). A failure does make one.
func (ep *Endpoint) InjectAtomic(m *Msg) error {
	return ep.post(wire.VerbAtomic, m, FlagInject, silent)
}

// post submits an operation and makes sure that it is started, or, with FlagMore, that
// the next call starts it. After a failure it starts the earlier ones, since there may be
// no next post.
func (ep *Endpoint) post(verb wire.Verb, m *Msg, flags OpFlags, cookie uint64) error {
	switch {
	case ep == nil || ep.endpoint == nil:
		return ep.there()
	case ep.phase.Load() == made: // Bind may be at work on what is read below
		return ep.unready()
	case ep.ended.Load():
		return ep.errEnded()
	}
	if flags&FlagDefaults != 0 {
		flags = flags&^FlagDefaults | ep.OpFlags()
	}
	if ep.selective && flags&FlagCompletion == 0 {
		cookie = silent
	}
	var err error
	if m == nil || !ep.postWord(verb, m, flags, cookie) {
		err = ep.submit(verb, m, flags, cookie)
	}
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
func (ep *endpoint) submit(verb wire.Verb, m *Msg, flags OpFlags, cookie uint64) (err error) {
	if !ep.ready() {
		return ep.unready()
	}
	if m == nil {
		return errno.Refuse(ErrArgument, "xdpfab: the message is nil: want a Msg")
	}
	count := uint32(1)
	if !m.word(verb, flags) {
		if count, err = m.elements(verb, flags); err != nil {
			return err
		}
		if flags&FlagTagged != 0 {
			if err := ep.dom.checkTagged(verb, m, count); err != nil {
				return err
			}
			verb = verb.Tagged()
		}
	}
	peer, err := ep.peer(m.Dest)
	if err != nil {
		return err
	}
	if m.Trigger != nil {
		return ep.postpone(verb, m, flags, cookie, peer, count)
	}
	s, err := ep.claim(cookie)
	if err != nil {
		return err
	}
	m.describe(s.Submission, verb, peer, cookie, count)
	m.fill(s.Submission, flags)
	ep.hand(s)
	return nil
}

// describe fills in the parts that every operation has.
func (m *Msg) describe(s *engine.Submission, verb wire.Verb, peer engine.PeerID, cookie uint64, count uint32) {
	s.Peer, s.Cookie, s.Context, s.Result = peer, cookie|uint64(m.Dest), m.Context, m.Result
	s.Key, s.Incarnation, s.Offset, s.Count = m.Key, m.Incarnation, m.Offset, count
	s.Verb, s.Opcode, s.Datatype = verb, uint8(m.Op), uint8(m.Datatype)
}

// fill fills in the parts that a simple operation does not have.
func (m *Msg) fill(s *engine.Submission, flags OpFlags) {
	if flags&FlagFence != 0 {
		s.Flags |= engine.FlagFence
	}
	if flags&FlagRemoteCQData != 0 {
		s.Flags |= engine.FlagData
		s.Data = m.Data
	}
	if s.Verb == wire.VerbSignal {
		signal := toWire(m.signal)
		s.SetSignal(&signal)
	}
	if s.Verb.Message() && (flags&FlagMatchComplete != 0 || s.Verb.Returns()) {
		s.Flags |= engine.FlagMatch
	}
	switch {
	case m.RMA == nil:
	case flags&FlagInject != 0:
		s.CopyExtents(m.RMA)
	default:
		s.SetExtents(m.RMA)
	}
	switch {
	case m.Pieces != nil && m.Op == atomic.Read && s.Verb.Atomic():
		s.SetPieces(m.Pieces.results(), nil, nil)
	case m.Pieces != nil:
		s.SetPieces((*engine.Pieces)(m.Pieces), m.Buf, m.Compare)
	case m.Op != atomic.Read:
		s.SetOperands(m.Buf, m.Compare)
	}
}

// AtomicAttr is what QueryAtomic returns: the two fields of struct fi_atomic_attr, and
// what libfabric has no field for. It holds for targets of this version of xdpfab. The
// elements of one call are updated in ascending order, those of extents in the order of
// the extents.
type AtomicAttr struct {
	Count int // elements in one call
	Size  int // bytes of an element
	Align int // bytes; the address of an element has to be a multiple of it

	// CoherentAlign says against what an element is atomic. If its address is a multiple
	// of CoherentAlign bytes, that is everything on the target's node: all domains and
	// all processes, and the atomic instructions of its CPUs, those of sync/atomic
	// included. Otherwise, and always if CoherentAlign is 0, it is only operations on the
	// same datatype that the same process runs.
	CoherentAlign int
	// Order has the bytes of a call up to which data is ordered as operations are
	// (max_order_raw_size and so on), by endpoints that have an order.
	Order OrderSizes
	// Resident means that on a resident region the XDP program of the target's interface
	// runs the operation, in the kernel, if the session has a place with it: see
	// Domain.NewResidentRegion. Everything else is run by the thread that steps the
	// engine on which the session has come in: the poller, or with manual progress a
	// goroutine of the target. The poller also runs the rest of a frame that has one
	// operation for it. The NIC runs nothing.
	Resident bool
}

// AtomicValid returns the most elements that one call takes of a form: Base for Atomic,
// Fetch for FetchAtomic, Compare for CompareAtomic (fi_atomicvalid and so on). Long
// arrays are divided among frames inside.
func (ep *Endpoint) AtomicValid(f atomic.Func, dt atomic.Datatype, op atomic.Op) (count int, err error) {
	if err := ep.there(); err != nil {
		return 0, err
	}
	attr, err := ep.dom.QueryAtomic(f, dt, op, 0)
	return attr.Count, err
}

// verbOf is the verb of each form.
var verbOf = map[atomic.Func]wire.Verb{
	atomic.Base:    wire.VerbAtomic,
	atomic.Fetch:   wire.VerbFetch,
	atomic.Compare: wire.VerbCompare,
}

// QueryAtomic reports whether an operation is supported for a datatype in one of the
// three forms, and how it works (fi_query_atomic). With FlagTagged it is about the buffer
// of a tagged receive as the target; other flags are refused with ErrBadFlags.
func (d *Domain) QueryAtomic(f atomic.Func, dt atomic.Datatype, op atomic.Op, flags OpFlags) (AtomicAttr, error) {
	if err := d.there(); err != nil {
		return AtomicAttr{}, err
	}
	attr := AtomicAttr{Size: dt.Size()}
	if err := flags.check("query with flags", FlagTagged); err != nil {
		return attr, err
	}
	if !atomic.Valid(f, op, dt) {
		return attr, undefined(f, op, dt)
	}
	attr.Count, attr.Align, attr.CoherentAlign = math.MaxUint32, dt.Align(), coherentAlign(dt)
	attr.Order = OrderSizes{Unlimited, Unlimited, Unlimited}
	if attr.Resident = dt <= atomic.Uint64; flags != 0 { // integers of 8 to 64 bits
		attr.Count, attr.Resident = int(d.mostTagged(verbOf[f], op, dt)), false // a receive is in no region
	}
	return attr, nil
}

// coherentAlign returns AtomicAttr.CoherentAlign: CPUs have atomic instructions for up to
// 16 bytes, at multiples of their size. A target whose CPU has none for 16 is an
// exception that a query cannot know.
func coherentAlign(dt atomic.Datatype) int {
	if n := dt.Size(); n <= 16 {
		return n
	}
	return 0
}

// An atomic on the buffer of a tagged receive is a message of one record, which is in one
// frame: so it is combined as a whole or not at all, whatever becomes of its session.

// Causes of tagged atomics that failed.
var (
	errBeyondReceive = fmt.Errorf("%w: here, of the buffer of the receive that the tag matched; post a longer one",
		ErrOutOfBounds)
	errBeyondFrame = fmt.Errorf(
		"%w: one frame has to carry a tagged atomic, and the peer's MTU is smaller; post it in parts", ErrTooMany)
)

// mostTagged returns the most elements of a tagged atomic: as many as a frame of the
// interface's MTU carries in any encapsulation. The MTU of the peer's has to be as large.
func (d *Domain) mostTagged(verb wire.Verb, op atomic.Op, dt atomic.Datatype) uint32 {
	return wire.MaxTagged(verb, uint8(op), uint8(dt), d.node.Dev.MTU()-wire.MaxOverhead-wire.HeaderLen)
}

// checkTagged returns an error for an operation of a form, otherwise valid, whose target
// cannot be the buffer of a receive.
func (d *Domain) checkTagged(verb wire.Verb, m *Msg, count uint32) error {
	most := d.mostTagged(verb, m.Op, m.Datatype)
	switch {
	case m.RMA != nil:
		return errno.Refuse(ErrNotImplemented,
			"xdpfab: %d extents for a tagged atomic: its target is the buffer of one receive, at "+
				"Offset: want no RMA", len(m.RMA))
	case m.Incarnation != 0:
		return errno.Refuse(ErrNotImplemented,
			"xdpfab: incarnation %#x for a tagged atomic: receives have none: want 0", m.Incarnation)
	case count > most:
		return errno.Refuse(ErrTooMany,
			"xdpfab: %d elements of %v for a tagged atomic: want at most %d, as one frame carries it, "+
				"post them in parts", count, m.Datatype, most)
	case m.Offset+uint64(count)*uint64(m.Datatype.Size()) < m.Offset:
		return errno.Refuse(ErrOutOfBounds,
			"xdpfab: offset %#x for a tagged atomic of %d elements: want it within the buffer of a receive",
			m.Offset, count)
	}
	return nil
}
