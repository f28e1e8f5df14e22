// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// frame is what a request frame in flight carries.
type frame struct {
	segs []segment
	// each is the length in bytes of every record's value, 0 or a multiple of 4, if each
	// segment is a simple operation and all values have one length; otherwise it is
	// mixed.
	each int
}

// mixed is the length of values that have different ones.
const mixed = -1

// segment is a part of an operation in flight: count elements, from first on. They are in
// one record, or each in a record of its own.
type segment struct {
	f                     *flight
	first, count, records uint32
}

// succeeded completes a frame whose records all succeeded without results. If a record
// that returns a result is among them, the target lies, and the session ends.
func (c *conn) succeeded(psn uint32) {
	at := &c.frames[psn%session.MaxWindow]
	each := at.each
	if each != 0 && at.returns() && c.ini.Waits(psn) {
		c.lied()
		return
	}
	if !c.ini.Retire(c.r.e.now, psn) {
		return
	}
	segs := c.release(psn)
	if each == 0 {
		c.complete(segs, nil, 0)
		return
	}
	for i := range segs {
		segs[i].f.ran = true
		segs[i].settle()
	}
	c.r.e.giveSegments(segs)
}

// returns reports whether a record of the frame returns a result.
func (f *frame) returns() bool {
	for i := range f.segs {
		if f.segs[i].resultLen() > 0 {
			return true
		}
	}
	return false
}

// lied ends the session with a target that gives impossible answers.
func (c *conn) lied() {
	c.r.e.count[Invalid]++
	c.close(session.ProtocolError)
}

// responded completes a frame from its response. If the response does not match its
// request, the target lies: nothing in the response is believed, and the session ends.
func (c *conn) responded(psn uint32, h *wire.Header, payload []byte) {
	at := &c.frames[psn%session.MaxWindow]
	var r wire.ResponseReader
	if at.each > 0 && r.Reset(payload, int(h.Ops), h.Flags) == wire.ReasonOK {
		if values, ok := r.NextAll(len(at.segs), at.each); ok && r.Finish() == wire.ReasonOK {
			c.filled(psn, values)
			return
		}
	}
	if !wellFormed(at.segs, h, payload) {
		c.lied()
		return
	}
	c.ini.Retire(c.r.e.now, psn)
	segs := c.release(psn)
	r.Reset(payload, int(h.Ops), h.Flags)
	for i := range segs {
		segs[i].results(&r)
		segs[i].settle()
	}
	c.r.e.giveSegments(segs)
}

// filled completes a frame of simple operations, all of which succeeded, from their
// values. This is the ordinary case.
func (c *conn) filled(psn uint32, values []byte) {
	each := c.frames[psn%session.MaxWindow].each
	c.ini.Retire(c.r.e.now, psn)
	c.complete(c.release(psn), values, each)
}

// complete completes simple operations that succeeded, from their values of each bytes.
func (c *conn) complete(segs []segment, values []byte, each int) {
	for rest := segs; len(rest) > 0; {
		n, f := 0, rest[0].f
		if (each == 8 || each == 0) && f.ring != nil {
			n = f.ring.succeed(rest, values, each)
		}
		if n == 0 {
			n = 1
			f.fill(values[:each])
		}
		rest, values = rest[n:], values[n*each:]
	}
	c.r.e.giveSegments(segs)
}

// fill completes a simple operation, which has succeeded, with its value, if it has one.
func (f *flight) fill(value []byte) {
	if len(value) > 0 {
		f.store(0, value)
	}
	if f.ring != nil {
		f.ring.tell(f, uint64(f.bytes()), f.completed(), nil)
	} else {
		f.finish()
	}
}

// wellFormed checks a response against the records that it answers.
func wellFormed(segs []segment, h *wire.Header, payload []byte) bool {
	var r wire.ResponseReader
	if r.Reset(payload, int(h.Ops), h.Flags) != wire.ReasonOK {
		return false
	}
	for i := range segs {
		s := &segs[i]
		each := s.resultLen()
		if _, ok := r.NextAll(int(s.records), each); ok {
			continue
		}
		for range s.records {
			if _, _, ok := r.Next(each); !ok {
				return false
			}
		}
	}
	return r.Finish() == wire.ReasonOK
}

// resultLen returns the length in bytes of each record's value.
func (s *segment) resultLen() int {
	return s.f.Verb.ResultLen(s.f.Datatype, s.count/s.records)
}

// results stores the outcomes of the segment's records.
func (s *segment) results(r *wire.ResponseReader) {
	f, each, at := s.f, s.resultLen(), 0
	if f.Verb.Atomic() {
		at = int(s.first) * wire.ElemSize(f.Datatype)
	}
	if values, ok := r.NextAll(int(s.records), each); ok {
		f.ran = true
		f.store(at, values)
		return
	}
	for range s.records {
		status, value, _ := r.Next(each)
		if status != wire.StatusOK {
			f.fail(Result{Fate: NotExecuted, Status: status})
		} else {
			f.ran = true
			f.store(at, value)
		}
		at += each
	}
}

// settle ends one segment in flight, and its operation when that was the last segment. If
// an operation failed while its rest still waits at the head of the queue, that rest is
// left to pack or failQueue.
func (s *segment) settle() {
	f := s.f
	f.pending--
	if f.pending == 0 && f.whole() && !f.queued {
		f.finish()
	}
}

// takeSegments and giveSegments recycle the lists of segments.
func (e *Engine) takeSegments() []segment {
	if n := len(e.segs); n > 0 {
		s := e.segs[n-1]
		e.segs = e.segs[:n-1]
		return s
	}
	return make([]segment, 0, 64)
}

func (e *Engine) giveSegments(s []segment) {
	clear(s)
	e.segs = append(e.segs, s[:0])
}
