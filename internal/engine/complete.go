// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// segment is a part of an operation in flight: count elements, from first on. They
// are in one record, or in as many records as elements.
type segment struct {
	op                    *Op
	first, count, records uint32
}

// succeeded completes a frame whose records all succeeded without results. That a
// record with a result is among them is a lie: the session ends.
func (c *conn) succeeded(psn uint32) {
	for _, s := range c.frames[psn%session.MaxWindow] {
		if s.resultLen() > 0 && c.ini.Waits(psn) {
			c.r.e.count[Invalid]++
			c.close(session.ProtocolError)
			return
		}
	}
	if !c.ini.Retire(c.r.e.now, psn) {
		return
	}
	segs := c.release(psn)
	for i := range segs {
		segs[i].op.ran = true
		segs[i].settle()
	}
	c.r.e.giveSegments(segs)
}

// responded completes a frame from its response. A response that does not match
// its request is a lie: the session ends, and nothing of it is believed.
func (c *conn) responded(psn uint32, h *wire.Header, payload []byte) {
	segs := c.frames[psn%session.MaxWindow]
	if !wellFormed(segs, h, payload) {
		c.r.e.count[Invalid]++
		c.close(session.ProtocolError)
		return
	}
	c.ini.Retire(c.r.e.now, psn)
	segs = c.release(psn)
	var r wire.ResponseReader
	r.Reset(payload, int(h.Ops), h.Flags)
	for i := range segs {
		segs[i].results(&r)
		segs[i].settle()
	}
	c.r.e.giveSegments(segs)
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
	return s.op.Verb.ResultLen(s.op.Datatype, s.count/s.records)
}

// results stores the outcomes of the segment's records.
func (s *segment) results(r *wire.ResponseReader) {
	op, each, at := s.op, s.resultLen(), 0
	if op.Verb.Atomic() {
		at = int(s.first) * wire.ElemSize(op.Datatype)
	}
	if values, ok := r.NextAll(int(s.records), each); ok {
		op.ran = true
		copy(op.Result[min(at, len(op.Result)):], values)
		return
	}
	for range s.records {
		status, value, _ := r.Next(each)
		if status != wire.StatusOK {
			op.fail(Result{Fate: NotExecuted, Status: status})
		} else {
			op.ran = true
			copy(op.Result[min(at, len(op.Result)):], value)
		}
		at += each
	}
}

// settle ends one segment in flight, and its operation when it was the last. What
// still waits at the head of the queue, of an operation that failed, is left to
// pack, or to failQueue.
func (s *segment) settle() {
	op := s.op
	op.pending--
	if op.pending == 0 && op.whole() && op.Peer.r.head != op {
		op.finish()
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
