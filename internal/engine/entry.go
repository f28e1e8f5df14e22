// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// Entry is a submission entry: one operation, of fixed size and layout, without a Go
// pointer, so that it can lie in memory that is shared with another process or with C.
//
//	offset size
//	     0    8  Cookie
//	     8    8  Key
//	    16    8  Offset
//	    24    8  Data
//	    32    4  Count
//	    36    4  Incarnation
//	    40    4  Peer
//	    44    1  Verb
//	    45    1  Opcode
//	    46    1  Datatype
//	    47    1  Flags
//	    48   80  Inline
//
// An operation on one word of up to 16 bytes lies in the first cache line whole.
type Entry struct {
	Cookie uint64 // returned with the completion; the engine does not interpret it
	Key    uint64 // of the region; of a tagged message or atomic, the tag
	// bytes, or a virtual address; of a tagged atomic, from the beginning of the
	// receive's buffer; of a call, the longest reply that there is room for
	Offset uint64
	Data   uint64 // with FlagData, the data of the event at the target; otherwise 0
	// Count is the number of elements of an atomic, and of bytes of a transfer, a message
	// or a call; the length of the name of a VerbLookup; the ordinal of a VerbList.
	Count       uint32
	Incarnation uint32 // of the region meant, and of all extents; 0 means any region that has the key
	Peer        PeerID
	Verb        wire.Verb
	Opcode      uint8
	Datatype    uint8
	Flags       uint8
	// Inline holds the operand and, behind it, the compare operand, Count elements each,
	// unless FlagOutside says that they lie elsewhere; or the name of a VerbLookup.
	Inline [InlineLen]byte
}

// With VerbSignal the last [wire.SignalLen] bytes of Inline hold the signal, wherever the
// operand lies; see InlineRoom.

// InlineLen is the number of bytes of operands that an entry has room for.
const InlineLen = 80

// Flags of an entry. An operation on one element without any flag is simple.
const (
	// FlagFence defers the operation, and all after it, until every earlier one to the
	// same peer has completed (FI_FENCE).
	FlagFence uint8 = 1 << iota
	// FlagOutside means that the operands are not in the entry.
	FlagOutside
	// FlagExtents means that the operation is on extents, which are not in the entry
	// either; Key and Offset are ignored then.
	FlagExtents
	// FlagPieces means that the result lies in pieces, and with FlagOutside the operands
	// as well.
	FlagPieces
	// FlagData asks for an event at the target, with Data, once an atomic or a transfer
	// has been executed there. A peer that has no use for it refuses the operation. Of a
	// message, Data is a part.
	FlagData
	// FlagMatch lets a message wait at the target until a receive is posted that it
	// matches, instead of being kept for one. A tagged atomic that returns what it finds
	// has it always.
	FlagMatch
	// FlagStream means that operands, extents and result come part by part: see [Stream].
	FlagStream

	besides    = FlagOutside | FlagExtents | FlagPieces | FlagStream // with a part outside the entry
	knownFlags = FlagFence | FlagData | FlagMatch | besides
)

// VerbConnect is a local verb: it completes when the session to the peer is open and puts
// nothing on the wire.
const VerbConnect = wire.VerbLocal

// VerbWatch is a local verb: it fails, with the reason, when the session to the peer
// ends. Until then probes keep the session alive.
const VerbWatch = wire.VerbLocal + 1

// Completion is a completion entry: how one operation ended. Like Entry it is of fixed
// size and layout, without a Go pointer.
//
//	offset size
//	     0    8  Cookie
//	     8    8  Data
//	    16    8  Length
//	    24    4  Source
//	    28    1  Outcome
//	    29    1  Status
//	    30    1  Reason
//	    31    1  Flags
//	    32   32  Inline
type Completion struct {
	Cookie  uint64
	Data    uint64 // data that came with the response; always 0 as yet
	Length  uint64 // bytes of the result, or of the operand if there is none
	Source  PeerID // the peer that the operation was for
	Outcome Outcome
	Status  wire.Status    // why the target refused the operation, when it did
	Reason  session.Reason // why the session ended, when it did
	Flags   uint8          // CompletedSend; CompletedRead or CompletedWrite, perhaps with CompletedTransfer; or none
	// Inline holds a result of up to InlineResult bytes, if the operation has no buffer
	// for it.
	Inline [InlineResult]byte
}

// Flags of a completion.
const (
	CompletedRead     uint8 = 1 << iota // of an operation that returns what it found in memory
	CompletedWrite                      // of one that does not
	CompletedTransfer                   // of a remote read or write; of an atomic without it; alone, of a flush
	CompletedSend                       // of a message
	CompletedTagged                     // of one with a tag, or an atomic on the buffer of a tagged receive
	// from a GuestRing: the outcome is unknown, and another completion tells it when it
	// is known, or never will be
	CompletedOpen
)

// InlineResult is the number of bytes of a result that a completion has room for.
const InlineResult = 32

// Outcome is what the initiator knows of one operation when it completes.
type Outcome uint8

// The four outcomes, and nothing else.
const (
	Success     Outcome = iota // ran exactly once; results are in place
	NotExecuted                // never ran and never will
	Unknown                    // ran at most once; of an array, some elements may have
	Restarted                  // as Unknown, and the target's memory may be new
)

// Result describes how an operation ended.
type Result struct {
	Outcome Outcome
	Status  wire.Status    // why the target refused it, when it did
	Reason  session.Reason // why the session ended, when it did
	Later   *Later         // where an Unknown outcome may become known, when it may
}

// Result returns how the operation ended; later is where an Unknown outcome may become
// known, or nil.
func (c *Completion) Result(later *Later) Result {
	return Result{Outcome: c.Outcome, Status: c.Status, Reason: c.Reason, Later: later}
}

// notices reports whether the operation ends with a notice.
func (x *Entry) notices() bool { return x.Flags&FlagData != 0 && !x.Verb.Message() }

// simple reports whether the entry is an atomic on one element, with its operands in the
// entry and no fence: it takes the ordinary path.
func (x *Entry) simple() bool { return x.Flags == 0 && x.Count == 1 && x.Data == 0 && x.Verb.Atomic() }

// Short reports whether the entry is a simple operation all of which lies in the first
// [HeadLen] bytes.
func (x *Entry) Short() bool {
	const word = 8 // of two of which, operand and compare operand, the rest has room
	return x.simple() && wire.ElemSize(x.Datatype) <= word
}

// HeadLen is the length of a cache line, in bytes.
const HeadLen = 64

// resultLen returns the bytes that the operation returns.
func (x *Entry) resultLen() int {
	switch x.Verb {
	case wire.VerbWait: // its record has a longer one
		return wire.ElemSize(x.Datatype)
	case wire.VerbCall:
		return wire.ReplyHead + x.mostReply()
	}
	return x.Verb.ResultLen(x.Datatype, x.Count)
}

// bytes returns the length that the completion reports.
func (x *Entry) bytes() int {
	switch {
	case x.Verb.Message() && !x.Verb.TaggedAtomic():
		return int(x.Count)
	case !x.Verb.Returns() && (x.Verb.Array() || x.Verb.TaggedAtomic()):
		return int(x.Count) * wire.ElemSize(x.Datatype)
	}
	return x.resultLen()
}

// Completed returns the flags of the completion.
func (x *Entry) Completed() (flags uint8) {
	switch {
	case x.Verb.Returns(), x.Verb == wire.VerbWait:
		flags = CompletedRead
	case x.Verb.Array():
		flags = CompletedWrite
	case x.Verb == wire.VerbTagged:
		flags = CompletedSend | CompletedTagged
	case x.Verb == wire.VerbTaggedAtomic:
		flags = CompletedWrite
	case x.Verb.Message():
		flags = CompletedSend
	}
	switch {
	case x.Verb.Transfer(), x.Verb == VerbFlush:
		flags |= CompletedTransfer
	case x.Verb.TaggedAtomic():
		flags |= CompletedTagged
	}
	return flags
}

// Transfer makes the entry a remote read or write of count bytes.
func (x *Entry) Transfer(verb wire.Verb, count uint32) {
	x.Verb, x.Opcode, x.Datatype, x.Count = verb, wire.OpWrite, wire.Byte, count
	if verb == wire.VerbRead {
		x.Opcode = wire.OpRead
	}
}

// malformed reports whether the entry describes no operation that the engine can run.
func (x *Entry) malformed() bool {
	return x.Flags&^knownFlags != 0 || x.Data != 0 && x.Flags&FlagData == 0 ||
		x.Verb == wire.VerbSignal && x.Flags&(FlagExtents|FlagData) != 0 ||
		x.Flags&FlagData != 0 && !x.Verb.Array() && !x.Verb.Message() ||
		x.Verb == wire.VerbPart || x.Flags&FlagMatch != 0 && !x.Verb.Message() ||
		x.Verb.TaggedAtomic() && x.misshapen() || x.Verb == wire.VerbWait && x.misshapenWait() ||
		x.Verb == wire.VerbCall && x.Flags&(FlagExtents|FlagStream) != 0 ||
		x.Flags&FlagOutside == 0 && x.inlineLen() > x.InlineRoom()
}

// misshapen reports whether a tagged atomic is one that no frame can have: without
// elements, on extents, or a read without a result; or one whose result would come before
// it has a receive.
func (x *Entry) misshapen() bool {
	return x.Count == 0 || x.Flags&FlagExtents != 0 || x.Verb == wire.VerbTaggedAtomic && x.Opcode == wire.OpRead ||
		x.Verb.Returns() && x.Flags&FlagMatch == 0
}

// InlineRoom returns how many bytes of operands the entry of such an operation has room
// for.
func (x *Entry) InlineRoom() uint64 {
	switch x.Verb {
	case wire.VerbSignal:
		return InlineLen - wire.SignalLen
	case wire.VerbWait:
		return InlineLen - limitLen
	}
	return InlineLen
}

// inlineLen returns the number of bytes of Inline that the operation uses.
func (x *Entry) inlineLen() uint64 {
	if x.Verb == wire.VerbLookup {
		return uint64(x.Count)
	}
	operand, compare := x.operandLens()
	return operand + compare
}

// The costs of an operation apart from the bytes that it moves, counted in bytes: an
// entry takes about as long to handle as so many bytes take to copy, and each element of
// an atomic is at least a word for its target.
const (
	EntryCost   = 64
	elementCost = 8
	simpleCost  = EntryCost + 2*elementCost // of a fetch-add of one word
)

// Cost is what an operation costs those that share an engine: the bytes that it moves and
// what these constants add. Extents cost extra.
func (x *Entry) Cost() int {
	if x.simple() {
		return simpleCost
	}
	operand, compare, result := x.Lens()
	n := operand + compare + result
	if x.Verb.Atomic() {
		n = max(n, uint64(x.Count)*elementCost)
	}
	return EntryCost + int(n)
}

// Lens returns the bytes of operand, compare operand and result that the operation has.
func (x *Entry) Lens() (operand, compare, result uint64) {
	operand, compare = x.operandLens()
	if x.Verb.Returns() {
		return operand, compare, uint64(x.Count) * uint64(wire.ElemSize(x.Datatype))
	}
	return operand, compare, uint64(x.resultLen())
}

// operandLens returns the bytes of operand and compare operand that the operation has.
func (x *Entry) operandLens() (operand, compare uint64) {
	switch {
	case x.Verb.Array(), x.Verb.TaggedAtomic(), x.Verb == wire.VerbWait:
	case x.Verb.Message(), x.Verb == wire.VerbCall:
		return uint64(x.Count), 0
	default:
		return 0, 0
	}
	n := uint64(x.Count) * uint64(wire.ElemSize(x.Datatype))
	if x.Opcode != wire.OpRead {
		operand = n
	}
	if x.Verb == wire.VerbCompare || x.Verb == wire.VerbTaggedCompare || x.Verb == wire.VerbWait {
		compare = n
	}
	return operand, compare
}
