// SPDX-License-Identifier: Apache-2.0

package wire

// Verb describes what a record asks for: the first byte of the record.
type Verb uint8

// The verbs of version 1. Numbers from VerbLocal on never travel: a node is free to use
// them inside.
const (
	VerbAtomic  Verb = 0x01 // base form: no result
	VerbFetch   Verb = 0x02 // the result is the value before
	VerbCompare Verb = 0x03 // with a compare operand; the result is the value before
	VerbWait    Verb = 0x04 // VerbCompare that waits until its condition holds
	VerbRead    Verb = 0x10 // the result is a copy of bytes
	VerbWrite   Verb = 0x11 // bytes are overwritten; no result
	VerbSignal  Verb = 0x12 // VerbWrite, and then an atomic on another word; see Signal
	VerbSend    Verb = 0x20 // the beginning of a message; see Message
	VerbTagged  Verb = 0x21 // the beginning of a message with a tag
	VerbPart    Verb = 0x22 // a further part of the message before it
	VerbCall    Verb = 0x23 // a request that a function of the target's owner answers; see Call

	// The forms of an atomic on the buffer of a tagged receive; see TaggedAtomic.
	VerbTaggedAtomic  Verb = 0x31
	VerbTaggedFetch   Verb = 0x32
	VerbTaggedCompare Verb = 0x33

	VerbLookup Verb = 0x40 // catalogue entry by name
	VerbList   Verb = 0x41 // catalogue entry by ordinal
	VerbNotice Verb = 0x50 // an event for the owner of the target, once an operation has been executed; see Notice
	VerbLocal  Verb = 0xf0 // the first one that never travels

	// NumAtomicVerbs is one more than the largest atomic verb: the length of a table by
	// atomic verb.
	NumAtomicVerbs = VerbCompare + 1
)

// Ranges of numbers that are kept for extensions: remote memory access, messages, and
// more of the catalogue. docs/wire-format.md says more.
const (
	firstMemory, lastMemory       Verb = 0x10, 0x1f
	firstMessage, lastMessage     Verb = 0x20, 0x3f
	firstCatalogue, lastCatalogue Verb = 0x40, 0x4f
)

// reserved reports whether the number is kept for the verb of an extension, or of
// messages or calls, which have frames of their own.
func (v Verb) reserved() bool {
	return v >= firstMemory && v <= lastCatalogue && (v.Message() || v == VerbCall || verbNames[v] == "")
}

var verbNames = [...]string{VerbAtomic: "atomic", VerbFetch: "fetch", VerbCompare: "compare",
	VerbWait: "waiting compare", VerbRead: "read", VerbWrite: "write", VerbSignal: "write with a signal",
	VerbSend: "send", VerbTagged: "tagged send", VerbPart: "part", VerbCall: "call",
	VerbTaggedAtomic: "tagged atomic", VerbTaggedFetch: "tagged fetch", VerbTaggedCompare: "tagged compare",
	VerbLookup: "lookup", VerbList: "list", VerbNotice: "notice"}

// String returns the name of the verb.
func (v Verb) String() string { return nameOf(verbNames[:], "verb", v) }

// Atomic reports whether the verb is one of the three that change or read memory element
// by element.
func (v Verb) Atomic() bool { return v-VerbAtomic <= VerbCompare-VerbAtomic } // zero wraps around

// Transfer reports whether the verb is one of those that copy bytes to or from memory.
func (v Verb) Transfer() bool { return v-VerbRead <= VerbSignal-VerbRead }

// Array reports whether the verb is about elements in memory, be it atomic or a transfer,
// whose elements are bytes.
func (v Verb) Array() bool { return v.Atomic() || v.Transfer() }

// Returns reports whether the verb returns what it finds in memory.
func (v Verb) Returns() bool {
	return v == VerbFetch || v == VerbCompare || v == VerbRead || v == VerbTaggedFetch || v == VerbTaggedCompare
}

// Elements returns how many units an operation of count elements consists of:
// those elements, which are bytes if it is a message, or the single request of a verb
// that has no elements, or of an operation on no bytes.
func (v Verb) Elements(count uint64) uint64 {
	if v.Array() || v.Message() {
		return max(count, 1)
	}
	return 1
}

// ResultLen returns the length of the value that answers a record of count elements,
// bytes, padding excluded; 0 for no value.
func (v Verb) ResultLen(datatype uint8, count uint32) int {
	switch {
	case v.Returns():
		return int(count) * int(elemSize[datatype])
	case v == VerbWait:
		return TicketLen
	case v == VerbLookup || v == VerbList:
		return EntryLen
	}
	return 0
}

// tail returns how many bytes an array record has behind its operands.
func (v Verb) tail() int {
	if v == VerbSignal {
		return SignalLen
	}
	return 0
}

// operands returns how many arrays of Count elements an array record carries: 0, 1 or 2.
// Whether there is a compare operand depends on the verb alone, and whether the operand
// is missing on the operation alone, so that the length never depends on whether the two
// make sense together.
func (v Verb) operands(op uint8) int {
	n := 1
	if op == OpRead {
		n = 0
	}
	if v == VerbCompare || v == VerbTaggedCompare {
		n++
	}
	return n
}
