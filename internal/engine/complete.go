// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"slices"

	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// fragment is a part of an operation in flight: count elements, from first on. They are
// in one record, or each in a record of its own.
type fragment struct {
	f                     *flight
	first, count, records uint32 // first: the lower half
	followers             uint32 // operations that follow it; see Follower
}

// succeeded completes a frame whose records all succeeded without results. If a record
// that returns a result is among them, the target lies, and the session ends.
func (c *conn) succeeded(psn uint32) {
	if c.ini.Waits(psn) && c.cargoOf(psn).returns() {
		c.lied()
		return
	}
	if !c.ini.Retire(c.r.e.now, psn) {
		return
	}
	at := c.release(psn)
	if at.each == 0 {
		c.complete(at, nil)
		return
	}
	at.expand()
	for i := range at.frags {
		at.frags[i].f.ran = true
		at.frags[i].settle()
	}
	c.r.e.drop(at)
}

// lied ends the session with a target that gives impossible answers.
func (c *conn) lied() {
	c.r.e.count[Invalid]++
	c.close(session.ProtocolError)
}

// responded completes a frame from its response. If the response does not match its
// request, the target lies: nothing in the response is believed, and the session ends.
func (c *conn) responded(psn uint32, h *wire.Header, payload []byte) {
	at := c.cargoOf(psn)
	if at.calls() {
		c.replied(psn, h, payload)
		return
	}
	var r wire.ResponseReader
	if at.each >= 0 && r.Reset(payload, int(h.Ops), h.Flags) == wire.ReasonOK {
		if values, ok := r.NextAll(at.ops(), at.each); ok && r.Finish() == wire.ReasonOK {
			c.ini.Retire(c.r.e.now, psn)
			c.complete(c.release(psn), values)
			return
		}
	}
	at.expand()
	if !at.fits(h, payload) {
		c.lied()
		return
	}
	c.ini.Retire(c.r.e.now, psn)
	c.release(psn)
	r.Reset(payload, int(h.Ops), h.Flags)
	succeeded(&r, at.told)
	for i := range at.frags {
		if s := &at.frags[i]; s.f.Verb == wire.VerbWait {
			c.waited(s, &r, at)
		} else {
			s.results(&r)
			s.settle()
		}
	}
	c.r.e.drop(at)
}

// complete completes simple operations that all succeeded, from their values. This
// is the ordinary case.
func (c *conn) complete(at *cargo, values []byte) {
	each, followers := at.each, at.followers
	for rest := at.frags; len(rest) > 0; {
		f, k, n := rest[0].f, int(rest[0].followers), 0
		if k > 0 {
			f.ring.lead(f, followers[:k], values, each)
			followers, n = followers[k:], 1
		} else if (each == 8 || each == 0) && f.ring != nil {
			n = f.ring.succeed(rest, values, each)
		}
		if n == 0 {
			f.fill(values[:each])
			n = 1
		}
		rest, values = rest[n:], values[(n+k)*each:]
	}
	c.r.e.drop(at)
}

// fill completes a simple operation, which succeeded, with its value, if it has one.
func (f *flight) fill(value []byte) {
	if len(value) > 0 {
		f.store(0, value)
	}
	if f.ring != nil {
		f.ring.tell(f, uint64(f.bytes()), f.Completed(), nil)
	} else {
		f.finish()
	}
}

// fits checks a response against the records that it answers.
func (g *cargo) fits(h *wire.Header, payload []byte) bool {
	var r wire.ResponseReader
	if r.Reset(payload, int(h.Ops), h.Flags) != wire.ReasonOK || !succeeded(&r, g.told) {
		return false
	}
	for i := range g.frags {
		s := &g.frags[i]
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

// succeeded steps over records without values, and reports whether all have succeeded.
func succeeded(r *wire.ResponseReader, records int) bool {
	for range records {
		if status, _, ok := r.Next(0); !ok || status != wire.StatusOK {
			return false
		}
	}
	return true
}

// partly completes the first messages of a frame, up to so many records: the others wait
// at the target.
func (c *conn) partly(psn uint32, records int) {
	g := c.cargoOf(psn)
	if g == nil {
		return // the session has ended over the same frame
	}
	if !g.messages || records > g.told+len(g.frags) {
		c.lied()
		return
	}
	n := max(records-g.told, 0)
	if n > 0 && g.frags[n-1].resultLen() > 0 { // its value is in the answer alone
		c.lied()
		return
	}
	for i := range g.frags[:n] {
		g.frags[i].f.ran = true
		g.frags[i].settle()
	}
	g.frags, g.told = slices.Delete(g.frags, 0, n), g.told+n
}

// resultLen returns the length in bytes of each record's value.
func (s *fragment) resultLen() int {
	if s.f.Verb == wire.VerbCall {
		return s.f.resultLen()
	}
	return s.f.Verb.ResultLen(s.f.Datatype, s.count/s.records)
}

// results stores the outcomes of the fragment's records.
func (s *fragment) results(r *wire.ResponseReader) {
	f, each, at := s.f, s.resultLen(), 0
	if f.Verb.Array() {
		at = int(f.place(s.first)) * wire.ElemSize(f.Datatype)
	}
	if values, ok := r.NextAll(int(s.records), each); ok {
		f.ran = true
		f.store(at, values)
		return
	}
	for range s.records {
		status, value, _ := r.Next(each)
		if status != wire.StatusOK {
			f.fail(Result{Outcome: NotExecuted, Status: status})
		} else {
			f.ran = true
			f.store(at, value)
		}
		at += each
	}
}

// settle ends one fragment in flight, and its operation when that was the last fragment.
// If an operation failed while its rest still waits at the head of the queue, that rest
// is left to pack or failQueue.
func (s *fragment) settle() {
	f := s.f
	f.pending--
	if f.pending == 0 && f.whole() && !f.queued {
		f.finish()
	}
}
