// SPDX-License-Identifier: Apache-2.0

package wire

import "encoding/binary"

// Message is the contents of a record of a message: of its beginning (VerbSend,
// VerbTagged) or of a further part (VerbPart), or of a tagged atomic, which is whole. A
// message is one record, or several that follow each other in the session, in the order
// of their bytes. A frame with such records has no others, and the flag FlagMessages.
type Message struct {
	Length uint64 // of the message, bytes; of a further part: unsaid
	Offset uint64 // of this part in the message, bytes; 0 at the beginning
	Tag    uint64 // of a tagged message
	Data   uint64 // chosen by the initiator (remote CQ data), if HasData
	Part   []byte // the bytes of this part: a view into the frame
	Source uint16 // number of the initiating endpoint, at the beginning
	Atomic TaggedAtomic

	Begins  bool // this is the beginning, which alone has Length, Source and all of the below
	Tagged  bool
	HasData bool
	// Match means that the message must not be kept for a receive that is posted later:
	// it runs when there is one that it matches.
	Match bool
	// Drop, of a further part, says that the initiator has let go of the message: there
	// are no more bytes, and what has come of it is worth nothing.
	Drop bool
}

// Lengths of the records of messages without the part, bytes.
const (
	sendHead   = 16 // VerbSend without data
	taggedHead = sendHead + 8
	dataField  = 8
	partHead   = 16
)

// Flags of VerbSend and VerbTagged; the last one is of VerbPart.
const (
	messageData  uint8 = 1 << 0 // u64 of data behind the tag
	messageMatch uint8 = 1 << 1 // see Message.Match
	messageDrop  uint8 = 1 << 0 // see Message.Drop
)

// Message reports whether the verb is of a part of a message, or of a tagged atomic.
func (v Verb) Message() bool { return v-VerbSend <= VerbPart-VerbSend || v.TaggedAtomic() }

// verb returns the verb of the record, and its length without the part.
func (m *Message) verb() (v Verb, head int) {
	switch {
	case !m.Begins:
		return VerbPart, partHead
	case m.Tagged:
		v, head = VerbTagged, taggedHead
	default:
		v, head = VerbSend, sendHead
	}
	if m.HasData {
		head += dataField
	}
	return v, head
}

// leastPart is the length of a part below which none is cut off: a message begins or goes
// on in the next frame rather than with less in this one.
const leastPart = 64

// Message appends a record of a message that has n more bytes from m.Offset on. m.Part
// is ignored: Message returns the place where the caller has to put the bytes of this
// part, as many of the n as the frame has room for. It returns false, and does nothing,
// if that is too little.
func (w *RecordWriter) Message(m *Message, n uint64) (part []byte, ok bool) {
	w.endRun()
	v, head := m.verb()
	room := (len(w.buf) - w.n - head) &^ 3
	if room < 0 || n > uint64(room) && room < leastPart {
		return nil, false
	}
	length := int(min(n, uint64(room)))
	b := w.reserve(head+pad4(length), 0)
	if b == nil {
		return nil, false
	}
	m.put(b, v, length)
	clear(b[head+length:])
	w.commit(len(b), 0)
	return b[head : head+length : head+length], true
}

// put encodes everything but the part, which is length bytes long.
func (m *Message) put(b []byte, v Verb, length int) {
	le := binary.LittleEndian
	le.PutUint32(b, uint32(v))
	le.PutUint32(b[4:], uint32(length))
	if v == VerbPart {
		le.PutUint64(b[8:], m.Offset)
		if m.Drop {
			b[1] = messageDrop
		}
		return
	}
	le.PutUint16(b[2:], m.Source)
	le.PutUint64(b[8:], m.Length)
	at := sendHead
	if m.Tagged {
		le.PutUint64(b[at:], m.Tag)
		at += 8
	}
	if m.HasData {
		b[1] |= messageData
		le.PutUint64(b[at:], m.Data)
	}
	if m.Match {
		b[1] |= messageMatch
	}
}

// MessageReader walks the records of a request with FlagMessages, checking every length
// and every bit on the way.
type MessageReader struct {
	payload []byte
	pos     int // of the next record
	left    int // records still to come
	reason  Reason
}

// Reset starts over at a payload of so many records.
func (r *MessageReader) Reset(payload []byte, records int) {
	*r = MessageReader{payload: payload, left: records}
}

// Reason reports why Next returned false: ReasonOK when all records were read and nothing
// but permitted padding follows them.
func (r *MessageReader) Reason() Reason { return r.reason }

// Next decodes the next record into m. It returns false at the end and at the first
// malformed record; after that it keeps returning false.
func (r *MessageReader) Next(m *Message) bool {
	if r.left <= 0 {
		if r.reason == ReasonOK {
			r.reason = checkTail(r.payload, r.payload[r.pos:])
		}
		return false
	}
	length, reason := nextMessage(m, r.payload[r.pos:])
	if r.left > 1 && reason == ReasonOK && m.Tells() {
		reason = ReasonBadPayload
	}
	if r.reason = reason; reason != ReasonOK {
		r.left = 0
		return false
	}
	r.pos += length
	r.left--
	return true
}

// nextMessage checks the record at p and decodes it into m. It returns the length of the
// record.
func nextMessage(m *Message, p []byte) (length int, reason Reason) {
	if len(p) < minRecord {
		return 0, ReasonTruncated
	}
	switch v := Verb(p[0]); {
	case v == VerbSend || v == VerbTagged:
		return nextBeginning(m, p)
	case v == VerbPart:
		return nextPart(m, p)
	case v.TaggedAtomic():
		return nextAtomic(m, p)
	}
	return 0, ReasonBadVerb
}

// nextBeginning is nextMessage for the beginning of a message.
func nextBeginning(m *Message, p []byte) (length int, reason Reason) {
	le, flags := binary.LittleEndian, p[1]
	*m = Message{Begins: true, Tagged: Verb(p[0]) == VerbTagged, HasData: flags&messageData != 0,
		Match: flags&messageMatch != 0}
	_, head := m.verb()
	n := uint64(le.Uint32(p[4:]))
	switch {
	case flags&^(messageData|messageMatch) != 0:
		return 0, ReasonBadFlags
	case uint64(len(p)) < uint64(head)+(n+3)&^3:
		return 0, ReasonTruncated
	case !zeroPad(p[head:], n):
		return 0, ReasonBadPadding
	}
	m.Part, m.Source, m.Length = p[head:uint64(head)+n:uint64(head)+n], le.Uint16(p[2:]), le.Uint64(p[8:])
	if m.Tagged {
		m.Tag = le.Uint64(p[sendHead:])
	}
	if m.HasData {
		m.Data = le.Uint64(p[head-dataField:])
	}
	if m.Length < n || n == 0 && m.Length > 0 {
		return 0, ReasonBadCount
	}
	return head + pad4(int(n)), ReasonOK
}

// nextPart is nextMessage for a further part of a message.
func nextPart(m *Message, p []byte) (length int, reason Reason) {
	le, flags := binary.LittleEndian, p[1]
	*m = Message{Drop: flags&messageDrop != 0}
	n := uint64(le.Uint32(p[4:]))
	switch {
	case flags&^messageDrop != 0:
		return 0, ReasonBadFlags
	case uint64(len(p)) < partHead+(n+3)&^3:
		return 0, ReasonTruncated
	case p[2]|p[3] != 0, !zeroPad(p[partHead:], n):
		return 0, ReasonBadPadding
	}
	m.Part, m.Offset = p[partHead:partHead+n:partHead+n], le.Uint64(p[8:])
	if (n == 0) != m.Drop || m.Offset == 0 || m.Offset+n < n {
		return 0, ReasonBadCount
	}
	return partHead + pad4(int(n)), ReasonOK
}

// Skip steps over n records, which were checked.
func (r *MessageReader) Skip(n int) {
	for m := (Message{}); n > 0 && r.Next(&m); n-- {
	}
}
