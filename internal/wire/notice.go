// SPDX-License-Identifier: Apache-2.0

package wire

import "encoding/binary"

// Notice is the contents of a VerbNotice record: the initiator asks the target to tell
// the owner of its endpoint that an operation has been executed.
//
// The record is the last one of its frame, and follows the records of the operation, in
// this frame or in earlier ones. It is executed only if all of them have succeeded.
type Notice struct {
	Data   uint64 // chosen by the initiator (remote CQ data)
	Length uint64 // bytes of the operation's elements
	// Covers is the number of records right before this one in the session that belong to
	// the operation. 0 says that the initiator knows all of them to have succeeded.
	Covers uint32
	Source uint16 // number of the initiating endpoint
	// Returns means that the operation returns what it found: a fetch, compare or read.
	Returns bool
	// Transfer means that the operation is a remote read or write, with FeatureMemory.
	Transfer bool
}

// NoticeLen is the length of a VerbNotice record, bytes.
const NoticeLen = 24

// The flags of Notice.Returns and Notice.Transfer.
const (
	noticeReturns uint8 = 1 << iota
	noticeTransfer
)

// put encodes the record into b, which has NoticeLen bytes.
func (n *Notice) put(b []byte) {
	b[0], b[1] = uint8(VerbNotice), 0
	if n.Returns {
		b[1] = noticeReturns
	}
	if n.Transfer {
		b[1] |= noticeTransfer
	}
	le := binary.LittleEndian
	le.PutUint16(b[2:], n.Source)
	le.PutUint32(b[4:], n.Covers)
	le.PutUint64(b[8:], n.Data)
	le.PutUint64(b[16:], n.Length)
}

// noticeAt decodes the record at b, whose flags have been checked.
func noticeAt(b []byte) Notice {
	le := binary.LittleEndian
	return Notice{Returns: b[1]&noticeReturns != 0, Transfer: b[1]&noticeTransfer != 0, Source: le.Uint16(b[2:]),
		Covers: le.Uint32(b[4:]), Data: le.Uint64(b[8:]), Length: le.Uint64(b[16:])}
}

// Notice ends the payload with a notice, and reports whether it fits. Nothing can be
// appended behind it.
func (w *RecordWriter) Notice(n *Notice) bool {
	w.endRun()
	b := w.reserve(NoticeLen, 0)
	if b == nil {
		return false
	}
	n.put(b)
	w.commit(len(b), 0)
	w.room = 0 // not even for a status
	return true
}

// nextNotice checks the notice at p, which has at least minRecord bytes; the head is in
// rec.
func (r *RecordReader) nextNotice(rec *Record, p []byte) bool {
	switch {
	case rec.Op&^(noticeReturns|noticeTransfer) != 0:
		return r.refuse(ReasonBadFlags)
	case len(p) < NoticeLen:
		return r.refuse(ReasonTruncated)
	case r.left != 1:
		return r.refuse(ReasonBadPayload)
	}
	r.pos += NoticeLen
	r.uses |= FeatureNotices
	if rec.Op&noticeTransfer != 0 {
		r.uses |= FeatureMemory
	}
	return true
}

// Notice returns the notice that ends the payload, once Next has returned it.
func (r *RecordReader) Notice() Notice { return noticeAt(r.payload[r.pos-NoticeLen:]) }
