// SPDX-License-Identifier: Apache-2.0

package fi

import (
	"encoding/binary"
	"math"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/wire"
	"github.com/xdpfab/xdpfab/mr"
)

// RMA is a remote read or write to post (struct fi_msg_rma). It is of as many bytes as
// the local buffers have: up to 4 GiB less one byte, or none, and then the region is
// only asked whether it would allow the operation.
type RMA struct {
	Buf    []byte // local: what is written, or where to put what is read
	Dest   Address
	Offset uint64 // of the first byte in the region; or its virtual address, if the region is addressed virtually
	Key    uint64 // of the region

	Context any    // returned with the completion
	Data    uint64 // with FlagRemoteCQData: for the completion at the target; otherwise ignored

	// Incarnation is that of the region meant, and of all extents; see Msg.Incarnation.
	Incarnation uint32

	// Pieces takes the place of Buf if the bytes lie in several buffers, one after the
	// other (fi_readv, fi_writev). It has at most MaxPieces buffers, and like those it
	// must stay untouched until completion.
	Pieces [][]byte

	// Extents takes the place of Offset and Key if the bytes go to several places, or
	// come from there (struct fi_rma_iov): the Count of each is in bytes, at least one.
	// There is one completion for all. Each extent is checked for itself: if one is
	// refused, others may have been written. Extents must stay untouched until
	// completion, unless FlagInject is given.
	Extents []mr.Extent

	// Signal, if it is not nil, makes a write one with a signal (put_signal of OpenSHMEM;
	// libfabric has none): the target applies it, an atomic on one word of up to 8 bytes,
	// once all bytes are in memory. The two are one operation with one completion, and
	// run once or not at all: both are checked before anything changes. Signal has a
	// Datatype, an Op of the base form, one element in Buf, the Key and Offset of the
	// word in any region of the peer, and perhaps its Incarnation; all else is ignored.
	// Extents and FlagRemoteCQData do not go with it. Without Incarnation of the RMA, the
	// parts of a long write may go to two registrations of the key, one after the other.
	Signal *Msg

	// Trigger, if it is not nil, defers the operation; see Msg.Trigger.
	Trigger *Threshold

	work *Work // that the operation is the part of
}

// Read posts a remote read: bytes of the peer's region are copied to the local buffers,
// which must stay untouched until completion (fi_read, fi_readv, fi_readmsg). The RMA
// itself may be reused when the call returns, here and in the other forms. The error is
// about the posting alone, as that of Endpoint.Atomic is.
//
// Every word of 8 bytes, at an address that is a multiple of 8, is read at once; all of
// them are not.
func (ep *Endpoint) Read(x *RMA, flags OpFlags) error { return ep.transfer(wire.VerbRead, x, flags, 0) }

// Write posts a remote write: the bytes of the local buffers are copied to the peer's
// region (fi_write, fi_writev, fi_writemsg; fi_writedata with FlagRemoteCQData). The
// buffers must stay untouched until completion, unless they have at most
// EndpointAttr.InjectSize bytes and FlagInject is given.
//
// Every word of 8 bytes, at an address that is a multiple of 8, changes at once, whole or
// in the part that the operation covers; all of them do not. The words change in
// ascending order, those of extents in the order of the extents, unless the endpoint
// has no order.
func (ep *Endpoint) Write(x *RMA, flags OpFlags) error {
	return ep.transfer(wire.VerbWrite, x, flags, 0)
}

// InjectWrite is Write for at most EndpointAttr.InjectSize bytes: the local buffers, and
// RMA.Extents, may be reused on return, and success makes no completion, though counters
// count it (fi_inject_write). A failure does make one.
func (ep *Endpoint) InjectWrite(x *RMA) error {
	return ep.transfer(wire.VerbWrite, x, FlagInject, silent)
}

// InjectWriteData is InjectWrite with RMA.Data for a completion at the target
// (fi_inject_writedata).
func (ep *Endpoint) InjectWriteData(x *RMA) error {
	return ep.transfer(wire.VerbWrite, x, FlagInject|FlagRemoteCQData, silent)
}

// transfer posts a remote read or write.
func (ep *Endpoint) transfer(verb wire.Verb, x *RMA, flags OpFlags, cookie uint64) error {
	if err := ep.there(); err != nil {
		return err
	}
	if x == nil {
		return errno.Refuse(ErrLength, "xdpfab: the message is nil: want an RMA")
	}
	if x.Signal != nil {
		if err := x.checkSignal(verb, flags); err != nil {
			return err
		}
		verb = wire.VerbSignal
	}
	m := x.msg(verb)
	return ep.post(verb, &m, flags, cookie)
}

// msg returns the operation in the form that all operations on memory share: an array of
// bytes.
func (x *RMA) msg(verb wire.Verb) Msg {
	m := Msg{Dest: x.Dest, Offset: x.Offset, Key: x.Key,
		Datatype: atomic.Uint8, Op: atomic.Write, Context: x.Context, Data: x.Data,
		Incarnation: x.Incarnation, Trigger: x.Trigger, work: x.work, signal: x.Signal}
	if len(x.Extents) > 0 {
		m.RMA = x.Extents
	}
	if verb == wire.VerbRead {
		m.Op, m.Result = atomic.Read, x.Buf
	} else {
		m.Buf = x.Buf
	}
	if len(x.Pieces) > 0 {
		m.Pieces = piecesOf(verb, x.Pieces)
	}
	return m
}

func piecesOf(verb wire.Verb, list [][]byte) *Pieces {
	if verb == wire.VerbRead {
		return &Pieces{Result: list}
	}
	return &Pieces{Buf: list}
}

// checkSignal refuses a signal that no target could apply.
func (x *RMA) checkSignal(verb wire.Verb, flags OpFlags) error {
	s := x.Signal
	switch size := s.Datatype.Size(); {
	case verb == wire.VerbRead:
		return errno.Refuse(ErrNotImplemented, "xdpfab: a read with a signal: want a write")
	case len(x.Extents) > 0:
		return errno.Refuse(ErrNotImplemented,
			"xdpfab: a signal of a write to %d extents: want one place, by Offset and Key",
			len(x.Extents))
	case flags&FlagRemoteCQData != 0:
		return errno.Refuse(ErrBadFlags,
			"xdpfab: a write with a signal and with %v: want one of the two", FlagRemoteCQData)
	case !atomic.Valid(atomic.Base, s.Op, s.Datatype) || size > wire.MaxSignal:
		return errno.Refuse(ErrOpNotSupported,
			"xdpfab: a signal by %v on %v: want an operation of the base form on up to %d bytes",
			s.Op, s.Datatype, wire.MaxSignal)
	case len(s.Buf) != size:
		return errno.Refuse(ErrLength,
			"xdpfab: operand of %d bytes for a signal of one %v: want %d", len(s.Buf), s.Datatype,
			size)
	}
	return nil
}

// toWire returns the signal as targets know it.
func toWire(s *Msg) wire.Signal {
	var operand [wire.MaxSignal]byte
	copy(operand[:], s.Buf)
	return wire.Signal{Key: s.Key, Offset: s.Offset, Incarnation: s.Incarnation, Op: uint8(s.Op),
		Datatype: uint8(s.Datatype), Operand: binary.LittleEndian.Uint64(operand[:])}
}

// bytes returns the length of a transfer or a message, after it has compared all that the
// message gives with it.
func (m *Msg) bytes(verb wire.Verb, flags OpFlags) (uint32, error) {
	if err := flags.check("operation flags", knownOpFlags); err != nil {
		return 0, err
	}
	if m.Pieces != nil {
		if err := m.checkPieces(verb); err != nil {
			return 0, err
		}
	}
	n := m.operandLen()
	if verb == wire.VerbRead {
		n = m.resultLen()
	}
	switch {
	case n > math.MaxUint32:
		return 0, errno.Refuse(ErrTooMany, "xdpfab: %v of %d bytes: want at most %d, post it in parts", verb, n,
			math.MaxUint32)
	case flags&FlagInject != 0 && verb != wire.VerbRead && n > injectSize:
		return 0, errno.Refuse(ErrTooBig, "xdpfab: %d bytes to inject: want at most %d", n, injectSize)
	}
	if m.RMA == nil {
		return uint32(n), nil
	}
	return uint32(n), m.checkRMA(n)
}
