// SPDX-License-Identifier: Apache-2.0

package wire

import "encoding/binary"

// ResponseWriter packs the results of one request.
//
// Statuses stand before the values on the wire but are known last, and nearly always
// there are none. So values are written to the front of the buffer as if all went well,
// statuses are noted aside, and only if there are any does Finish move the values back,
// once.
type ResponseWriter struct {
	buf    []byte
	n      int // bytes of values
	ops    int
	failed int                        // entries of list
	list   [MaxOps * statusEntry]byte // pairs of record index and status; valid up to failed
}

// Reset starts the response to a request of ops records in buf: all of it may be used.
func (w *ResponseWriter) Reset(buf []byte, ops int) {
	w.buf, w.n, w.ops, w.failed = buf, 0, ops, 0 // the list need not be cleared
}

// AppendValue returns n bytes for the value of the record of the given index (0-based,
// ascending), to be filled by the caller. It returns nil if the value does not fit, with
// room kept for a failure of every record that follows; the status of such a record is
// StatusBadCount. The caller asks before it executes the record: a result that cannot be
// sent must not arise.
func (w *ResponseWriter) AppendValue(index, n int) []byte {
	end := w.n + pad4(n)
	reserve := 0
	if failures := w.failed + w.ops - 1 - index; failures > 0 {
		reserve = statusHead + statusEntry*failures
	}
	if n < 0 || end < w.n || end+reserve > len(w.buf) {
		return nil
	}
	if n&3 != 0 {
		clear(w.buf[w.n+n : end])
	}
	v := w.buf[w.n : w.n+n : w.n+n]
	w.n = end
	return v
}

// AppendStatus records that the record of the given index (0-based, ascending) failed; it
// must not have a value. StatusOK is not noted.
func (w *ResponseWriter) AppendStatus(index int, s Status) {
	if s == StatusOK || w.failed >= MaxOps {
		return
	}
	w.list[w.failed*statusEntry] = uint8(index)
	w.list[w.failed*statusEntry+1] = uint8(s)
	w.failed++
}

// AppendKnown is AppendValue for a record that was executed elsewhere: see Answerable. It
// returns nil if there is no room after all.
func (w *ResponseWriter) AppendKnown(n int) []byte {
	end := w.n + pad4(n)
	if n < 0 || end < w.n || end > len(w.buf) {
		return nil
	}
	clear(w.buf[w.n+n : end])
	v := w.buf[w.n : w.n+n : w.n+n]
	w.n = end
	return v
}

// Answers is what another program says of the operations in memory of a frame, one after
// the other.
type Answers interface {
	Next() (status Status, result []byte)
}

// Answerable adds up the longest response to a frame whose records are executed
// elsewhere. A record with a value that fails leaves room for its status.
type Answerable struct {
	values int // bytes
	plain  int // records without a value, each of which may fail
}

// Add counts a record whose value has n bytes in.
func (a *Answerable) Add(n int) {
	if a.values += pad4(n); n == 0 {
		a.plain++
	}
}

// Fits reports whether the response fits into so many bytes.
func (a *Answerable) Fits(room int) bool {
	if a.plain > 0 {
		return a.values+pad4(2+statusEntry*a.plain) <= room
	}
	return a.values <= room
}

// Empty reports whether every record so far succeeded without a value: an ack can take
// the place of such a response.
func (w *ResponseWriter) Empty() bool { return w.n == 0 && w.failed == 0 }

// Finish completes the payload and returns its length in bytes and the flags to set in
// the header. If the statuses do not fit, which no request within the frame limit can
// cause, it returns -1.
func (w *ResponseWriter) Finish() (n int, flags uint8) {
	if w.failed == 0 {
		return w.n, 0
	}
	list := 2 + w.failed*statusEntry
	shift := pad4(list)
	if shift+w.n > len(w.buf) {
		return -1, 0
	}
	copy(w.buf[shift:], w.buf[:w.n])
	binary.LittleEndian.PutUint16(w.buf, uint16(w.failed))
	copy(w.buf[2:list], w.list[:])
	clear(w.buf[list:shift])
	return shift + w.n, FlagStatus
}

// ResponseReader reads a response, record by record in the order of the request.
//
// The reader is a small value, cheap to copy. A caller that must not deliver half
// of a malformed response walks it twice: first for the verdict, then for the
// values.
type ResponseReader struct {
	values []byte
	list   []byte // status entries still to come
	index  int    // of the next record
	ops    int
	padded bool
	reason Reason
}

// Reset starts over at a payload with the header's ops and flags, and checks the status
// list.
func (r *ResponseReader) Reset(payload []byte, ops int, flags uint8) Reason {
	*r = ResponseReader{values: payload, ops: ops, padded: len(payload) == minPayload}
	if flags&FlagStatus != 0 {
		r.reason = r.takeList()
	}
	return r.reason
}

// takeList splits the status list off the front of the payload.
func (r *ResponseReader) takeList() Reason {
	p := r.values
	if len(p) < 2 {
		return ReasonTruncated
	}
	n := int(binary.LittleEndian.Uint16(p))
	if n == 0 || n > r.ops {
		return ReasonBadOps
	}
	list := 2 + n*statusEntry
	if len(p) < pad4(list) {
		return ReasonTruncated
	}
	last := -1
	for e := p[2:list]; len(e) >= statusEntry; e = e[statusEntry:] {
		index, s := int(e[0]), Status(e[1])
		if index <= last || index >= r.ops || s == StatusOK || s >= numStatuses {
			return ReasonBadPayload
		}
		last = index
	}
	r.list, r.values = p[2:list], p[pad4(list):]
	return checkZero(p[list:pad4(list)])
}

// Next returns the verdict on the next record and, if it succeeded, the view of its
// value: n bytes, as the request's record asks for (Record.ResultLen). ok is false when
// the payload is malformed or all records have been read; see Finish.
func (r *ResponseReader) Next(n int) (s Status, value []byte, ok bool) {
	if r.reason != ReasonOK || r.index >= r.ops {
		return StatusNotExecuted, nil, false
	}
	index := r.index
	r.index++
	if len(r.list) >= statusEntry && int(r.list[0]) == index {
		s = Status(r.list[1])
		r.list = r.list[statusEntry:]
		return s, nil, true
	}
	if n == 0 {
		return StatusOK, nil, true
	}
	if n < 0 || n > len(r.values) || pad4(n) > len(r.values) {
		r.reason = ReasonTruncated
		return StatusNotExecuted, nil, false
	}
	if !zeroPad(r.values, uint64(n)) {
		r.reason = ReasonBadPadding
		return StatusNotExecuted, nil, false
	}
	value = r.values[:n:n]
	r.values = r.values[pad4(n):]
	return StatusOK, value, true
}

// NextAll is Next for n records at once that have values of size bytes each, a multiple
// of four (or none): it returns the values, one after the other, if all of the records up
// to the last of the frame succeeded. Otherwise it returns false and does nothing, and
// the caller takes them one by one.
func (r *ResponseReader) NextAll(n, size int) (values []byte, ok bool) {
	if r.reason != ReasonOK || len(r.list) > 0 || size < 0 || size&3 != 0 || n < 0 || n > r.ops-r.index ||
		n*size > len(r.values) {
		return nil, false
	}
	values, r.values = r.values[:n*size:n*size], r.values[n*size:]
	r.index += n
	return values, true
}

// Finish gives the verdict on the whole, after Next for every record: ReasonOK, or what
// was wrong.
func (r *ResponseReader) Finish() Reason {
	switch {
	case r.reason != ReasonOK:
		return r.reason
	case r.index != r.ops:
		return ReasonBadOps
	}
	return tailReason(r.padded, r.values)
}
