// SPDX-License-Identifier: Apache-2.0

package wire

import "encoding/binary"

// Call is the record of VerbCall: a request to the owner of the target, whose function
// answers it. It is the only record of its frame. Its value in the response is as long as
// the function makes it: see Reply.
type Call struct {
	Request []byte // a view into the frame
	Most    uint32 // the longest reply that the initiator has room for, bytes
	Source  uint16 // number of the initiating endpoint
}

// Reply is the value that answers a call: a head of ReplyHead bytes, and the reply, or as
// much of it as the initiator has room for.
type Reply struct {
	Kind   ReplyKind
	Length uint32 // of the whole reply, bytes
	Bytes  []byte // at most Call.Most of them
}

// ReplyKind says how the function ended.
type ReplyKind uint8

// The kinds of replies. In all but ReplyOK the bytes are a text for people.
const (
	ReplyOK     ReplyKind = iota // the function returned the bytes
	ReplyFailed                  // it returned an error
	ReplyPanic                   // it panicked
	numReplyKinds
)

// Lengths of the heads of a call and of a reply, bytes.
const (
	CallHead  = 12
	ReplyHead = 8
)

// Call appends a call with a request of n bytes, and returns the place for them. It
// returns false, and does nothing, unless the record is the first one of the frame and
// fits. Nothing follows it.
func (w *RecordWriter) Call(c *Call, n int) (request []byte, ok bool) {
	length := CallHead + pad4(n)
	if w.ops > 0 || n < 0 || length > len(w.buf) {
		return nil, false
	}
	b := w.buf[:length]
	le := binary.LittleEndian
	le.PutUint32(b, uint32(VerbCall)|uint32(c.Source)<<16)
	le.PutUint32(b[4:], uint32(n))
	le.PutUint32(b[8:], c.Most)
	clear(b[CallHead+n:])
	w.n, w.ops, w.buf = length, 1, b
	return b[CallHead : CallHead+n : CallHead+n], true
}

// MostReply returns the longest reply that the response to a call in this frame has room
// for, bytes.
func (w *RecordWriter) MostReply() int { return max(w.room&^3-ReplyHead, 0) }

// IsCall reports whether the records of a request begin with a call.
func IsCall(payload []byte) bool { return len(payload) > 0 && Verb(payload[0]) == VerbCall }

// ParseCall decodes the payload of a request of so many records which IsCall.
func (c *Call) ParseCall(payload []byte, ops int) Reason {
	le := binary.LittleEndian
	switch {
	case ops != 1:
		return ReasonBadOps
	case len(payload) < CallHead:
		return ReasonTruncated
	case payload[1] != 0:
		return ReasonBadFlags
	}
	n := uint64(le.Uint32(payload[4:]))
	length := CallHead + (n+3)&^3
	switch {
	case uint64(len(payload)) < length:
		return ReasonTruncated
	case !zeroPad(payload[CallHead:], n):
		return ReasonBadPadding
	}
	*c = Call{Request: payload[CallHead : CallHead+n : CallHead+n], Most: le.Uint32(payload[8:]),
		Source: le.Uint16(payload[2:])}
	return checkTail(payload, payload[length:])
}

// Put writes the payload of the response with the reply into b, and returns its length.
// Of the reply it takes at most so many bytes as b has room for.
func (r *Reply) Put(b []byte) (n int) {
	le := binary.LittleEndian
	le.PutUint32(b, r.Length)
	b[4], b[5], b[6], b[7] = uint8(r.Kind), 0, 0, 0
	n = ReplyHead + copy(b[ReplyHead:len(b)&^3], r.Bytes)
	clear(b[n:pad4(n)])
	return pad4(n)
}

// ParseReply decodes the payload of the response to a call that has room for so many
// bytes, without the status list.
func (r *Reply) ParseReply(payload []byte, most int) Reason {
	le := binary.LittleEndian
	switch {
	case len(payload) < ReplyHead:
		return ReasonTruncated
	case ReplyKind(payload[4]) >= numReplyKinds, payload[5]|payload[6]|payload[7] != 0:
		return ReasonBadPayload
	}
	whole := le.Uint32(payload)
	n := uint64(min(whole, uint32(max(most, 0))))
	length := ReplyHead + (n+3)&^3
	switch {
	case uint64(len(payload)) < length:
		return ReasonTruncated
	case !zeroPad(payload[ReplyHead:], n):
		return ReasonBadPadding
	}
	*r = Reply{Kind: ReplyKind(payload[4]), Length: whole, Bytes: payload[ReplyHead : ReplyHead+n : ReplyHead+n]}
	return checkTail(payload, payload[length:])
}
