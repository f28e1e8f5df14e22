// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/binary"
	"math"
)

// TaggedAtomic is what the record of a tagged atomic says besides its Message: the
// operation that takes the place of the copy of the message's bytes. Part is the operand.
// Such a message is always one record.
type TaggedAtomic struct {
	Form         Verb // VerbAtomic, VerbFetch or VerbCompare; 0 of any other message
	Op, Datatype uint8
	Count        uint32 // elements; Length is their bytes
	Offset       uint64 // of the first element in the buffer of the receive, bytes
	Compare      []byte // with VerbCompare, as long as Part: a view into the frame
}

// Bytes of the record of a tagged atomic before its operands, without data.
const atomicHead = 28

// TaggedAtomic reports whether the verb is one of the three on the buffer of a receive.
func (v Verb) TaggedAtomic() bool { return v-VerbTaggedAtomic <= VerbTaggedCompare-VerbTaggedAtomic }

// Tagged returns the verb of the same form, on the buffer of a receive, as an atomic one.
func (v Verb) Tagged() Verb { return v - VerbAtomic + VerbTaggedAtomic }

// Form returns the atomic verb of the same form as one on the buffer of a receive.
func (v Verb) Form() Verb { return v - VerbTaggedAtomic + VerbAtomic }

// Tells reports whether the answer to the record says how it ended: then it is the last
// one of its frame. It is so of a tagged atomic for a receive that is posted already. Any
// other message has succeeded when its record has run.
func (m *Message) Tells() bool { return m.Atomic.Form != 0 && m.Match }

// lens returns the bytes before the operands, and those of each operand, padded.
func (a *TaggedAtomic) lens(hasData bool) (head, each int) {
	if head = atomicHead; hasData {
		head += dataField
	}
	return head, pad4(int(a.Count) * int(elemSize[a.Datatype]))
}

// MaxTagged returns how many elements one tagged atomic can have, of the form of an
// atomic verb, when the payloads of request and response have room bytes.
func MaxTagged(form Verb, op, datatype uint8, room int) uint32 {
	size, n := int(elemSize[datatype]), room-statusHead
	if k := form.operands(op); k > 0 {
		n = min(n, (room-atomicHead-dataField)/k)
	}
	if size == 0 || n < 0 {
		return 0
	}
	return uint32(n &^ 3 / size)
}

// TaggedAtomic appends a tagged atomic, of which m.Part, m.Length and m.Atomic.Compare
// are ignored: it returns the places where the caller has to put the operands that there
// are. It returns false, and does nothing, if there is no room.
func (w *RecordWriter) TaggedAtomic(m *Message) (operand, compare []byte, ok bool) {
	w.endRun()
	a := &m.Atomic
	if uint64(a.Count)*uint64(elemSize[a.Datatype]) > MaxFrame {
		return nil, nil, false
	}
	v, value := a.Form.Tagged(), 0
	head, each := a.lens(m.HasData)
	if v.Returns() {
		value = each
	}
	b := w.reserve(head+v.operands(a.Op)*each, value)
	if b == nil {
		return nil, nil, false
	}
	m.putAtomic(b, v)
	n := int(a.Count) * int(elemSize[a.Datatype])
	rest := b[head:]
	clear(rest)
	if a.Op != OpRead {
		operand, rest = rest[:n:n], rest[each:]
	}
	if a.Form == VerbCompare {
		compare = rest[:n:n]
	}
	w.commit(len(b), value)
	if m.Tells() {
		w.room = 0 // nothing follows
	}
	return operand, compare, true
}

// putAtomic encodes everything but the operands.
func (m *Message) putAtomic(b []byte, v Verb) {
	le, a := binary.LittleEndian, &m.Atomic
	b[0], b[1] = uint8(v), 0
	le.PutUint16(b[2:], m.Source)
	b[4], b[5], b[6], b[7] = a.Op, a.Datatype, 0, 0
	le.PutUint64(b[8:], a.Offset)
	le.PutUint64(b[16:], m.Tag)
	le.PutUint32(b[24:], a.Count)
	if m.HasData {
		b[1] |= messageData
		le.PutUint64(b[atomicHead:], m.Data)
	}
	if m.Match {
		b[1] |= messageMatch
	}
}

// nextAtomic decodes the tagged atomic at p, which has at least minRecord bytes, into m,
// and returns the length of the record.
func nextAtomic(m *Message, p []byte) (length int, reason Reason) {
	le := binary.LittleEndian
	v, flags := Verb(p[0]), p[1]
	*m = Message{Begins: true, Tagged: true, HasData: flags&messageData != 0, Match: flags&messageMatch != 0}
	a := &m.Atomic
	a.Form, a.Op, a.Datatype = v.Form(), p[4], p[5]
	size := uint64(elemSize[a.Datatype])
	switch {
	case flags&^(messageData|messageMatch) != 0, v.Returns() && !m.Match:
		return 0, ReasonBadFlags
	case size == 0:
		return 0, ReasonBadDatatype
	case p[6]|p[7] != 0:
		return 0, ReasonBadPadding
	case a.Op == OpRead && a.Form == VerbAtomic: // a read without a result
		return 0, ReasonBadPayload
	case len(p) < atomicHead:
		return 0, ReasonTruncated
	}
	a.Offset, a.Count, m.Tag, m.Source = le.Uint64(p[8:]), le.Uint32(p[24:]), le.Uint64(p[16:]), le.Uint16(p[2:])
	m.Length = uint64(a.Count) * size
	if a.Count == 0 || m.Length > MaxFrame || a.Offset > math.MaxUint64-m.Length {
		return 0, ReasonBadCount
	}
	head, k := atomicHead, v.operands(a.Op)
	if m.HasData {
		head += dataField
	}
	each := (m.Length + 3) &^ 3
	if uint64(len(p)) < uint64(head)+uint64(k)*each {
		return 0, ReasonTruncated
	}
	if m.HasData {
		m.Data = le.Uint64(p[atomicHead:])
	}
	rest := p[head : uint64(head)+uint64(k)*each]
	length = head + len(rest)
	if a.Op != OpRead {
		m.Part, rest, reason = takeOperand(rest, m.Length, each, reason)
	}
	if a.Form == VerbCompare {
		a.Compare, _, reason = takeOperand(rest, m.Length, each, reason)
	}
	return length, reason
}

// takeOperand takes an operand of n bytes, padded to each, off p.
func takeOperand(p []byte, n, each uint64, reason Reason) (operand, rest []byte, _ Reason) {
	if !zeroPad(p, n) {
		reason = ReasonBadPadding
	}
	return p[:n:n], p[each:], reason
}
