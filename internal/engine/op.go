// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
	"github.com/xdpfab/xdpfab/mr"
)

// VerbConnect is a local verb: it completes when the session to the peer is
// open and puts nothing on the wire.
const VerbConnect = wire.VerbLocal

// VerbWatch is a local verb: it completes, with a failure that tells why, when the
// session to the peer ends. Meanwhile the session is kept alive by probes.
const VerbWatch = wire.VerbLocal + 1

// InlineLen is how many bytes of operands an Op can keep for itself. The
// caller's buffers are free as soon as such an Op is published.
const InlineLen = 32

// Result says how an operation ended.
type Result struct {
	Fate   Fate
	Status wire.Status    // why the target refused it, when it did
	Reason session.Reason // why the session ended, when it did
	Later  *Later         // where an Unknown outcome may become known, when it may
}

// Fate is the truth about one operation.
type Fate uint8

// The four fates, and nothing else.
const (
	Success     Fate = iota // ran exactly once; results are in place
	NotExecuted             // never ran and never will
	Unknown                 // ran at most once; of an array, some elements may have
	Restarted               // as Unknown, and the target's memory may be new
)

// Completer receives finished operations, on the engine's thread. It must not
// block, and must not keep op: the entry is reused afterwards.
type Completer interface {
	Complete(op *Op, r Result)
}

// Op is an entry of a submission ring, and the record of the operation until it
// completes. The fields of the first group are written by the poster between
// Claim and Publish and read by the engine afterwards.
type Op struct {
	Peer    *Peer
	Done    Completer
	Context any
	Key     uint64
	Offset  uint64 // bytes, or a virtual address
	Operand []byte // Count elements; the name for VerbLookup
	Compare []byte
	Result  []byte // Count elements; written by the engine before completion
	Count   uint32 // elements; the ordinal for VerbList
	// Incarnation is that of the region meant, and of all Extents; 0 for whichever
	// region has the key.
	Incarnation uint32
	Verb        wire.Verb
	Opcode      uint8
	Datatype    uint8
	Flags       uint8
	Value       uint64 // free for the poster
	// Extents say where the elements are, instead of Key and Offset, when they are
	// not next to each other: Count elements in all. Like the operands of a long
	// operation, they must stay untouched until completion, unless SetExtents copied
	// them.
	Extents []mr.Extent

	// The engine's own.
	next    *Op    // in the peer's queue
	sent    uint32 // elements packed
	extent  int    // the first of Extents with elements to pack
	within  uint32 // elements of it that are packed
	pending uint32 // segments in flight
	ran     bool   // some part ran, or may have
	failed  bool
	bad     Result // the first failure, when failed

	inline [InlineLen]byte
	own    []mr.Extent // memory for copies of extents, used again and again
	ring   *Ring
	ticket uint64
}

// FlagFence defers the operation, and all after it, until every earlier one to
// the same peer has completed (FI_FENCE).
const FlagFence uint8 = 1 << 0

// SetOperands gives the operation its operands. Short ones are copied, so that
// the caller's memory is free again; it returns false when they were not, and
// then must stay untouched until completion.
func (op *Op) SetOperands(operand, compare []byte) (copied bool) {
	if len(operand)+len(compare) > InlineLen {
		op.Operand, op.Compare = operand, compare
		return false
	}
	n := copy(op.inline[:], operand)
	m := n + copy(op.inline[n:], compare)
	op.Operand, op.Compare = op.inline[:n:n], op.inline[n:m:m]
	return true
}

// SetExtents gives the operation copies of the extents, so that the caller's memory is
// free again.
func (op *Op) SetExtents(extents []mr.Extent) {
	op.own = append(op.own[:0], extents...)
	op.Extents = op.own
}

// keptExtents is how many extents an entry keeps room for between operations.
const keptExtents = 64

// reset clears what the last use left behind.
func (op *Op) reset() {
	op.next, op.sent, op.pending, op.extent, op.within = nil, 0, 0, 0, 0
	op.ran, op.failed, op.bad = false, false, Result{}
}

// fail notes that a part of the operation failed. The first failure is the one
// reported, unless a later one is less certain.
func (op *Op) fail(r Result) {
	if r.Fate == Unknown || r.Fate == Restarted {
		op.ran = true
	}
	if !op.failed || r.Fate > op.bad.Fate {
		op.bad = r
	}
	op.failed = true
}

// whole reports whether nothing of the operation is to be sent any more.
func (op *Op) whole() bool {
	return op.failed || op.sent >= op.elements()
}

// elements returns how many units packing has to place.
func (op *Op) elements() uint32 { return op.Verb.Elements(op.Count) }

// finish delivers the completion and recycles the entry.
func (op *Op) finish() {
	r := Result{}
	if op.failed {
		r = op.bad
		if r.Fate == NotExecuted && op.ran {
			r.Fate = Unknown // a part of the array did run
		}
	}
	op.Done.Complete(op, r)
	if op.ring != nil { // a stand-in has none
		op.ring.release(op)
	}
}
