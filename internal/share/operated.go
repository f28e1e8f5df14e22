// SPDX-License-Identifier: Apache-2.0

//go:build linux

package share

import (
	"slices"

	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// The guest's side of operate.go. The operations of a record are executed when the answer
// has a place, so that what has been executed is always answered.

// answer is a block of the arena that the host has not copied yet.
type answer struct {
	block
	posted uint64 // position of its entry
}

// operate executes the operations of a record and answers, or returns false and does
// nothing if there is no room for the answer.
func (c *GuestRing) operate(r *record, part []byte) bool {
	if !c.room() {
		return false
	}
	n := int(r.Count) * saidLen
	var rec wire.Record
	rest, ok := part, true
	for range r.Count {
		if rest, ok = nextOperation(rest, &rec); !ok {
			return true // the host is broken
		}
		n += rec.Verb.ResultLen(rec.Datatype, rec.Count)
	}
	e := &c.entry
	*e = engine.Entry{Verb: VerbAnswer, Cookie: r.Tag, Key: r.Session}
	to := e.Inline[:]
	var b block
	if n > len(to) {
		if !c.take(&b, n) {
			return false
		}
		to = c.segment.arena[b.at:][:n]
		e.Flags = engine.FlagOutside
	}
	e.Count = uint32(c.execute(r, part, to[:n]))
	c.putAnswer(e, b)
	return true
}

// execute executes the operations of a record, puts the answer into b, and returns its
// length.
func (c *GuestRing) execute(r *record, part, b []byte) int {
	at := int(r.Count) * saidLen
	rec := &c.in.operation
	for i := range int(r.Count) {
		part, _ = nextOperation(part, rec)
		n := rec.Verb.ResultLen(rec.Datatype, rec.Count)
		status := c.in.to.Operate(r.Endpoint, rec, b[at:at+n:at+n])
		if status != wire.StatusOK {
			n = 0
		}
		putSaid(b[i*saidLen:], status, n)
		at += n
	}
	c.in.operated = true
	return at
}

// freeAnswers gives back the blocks of answers that the host has copied.
func (c *GuestRing) freeAnswers() {
	taken := c.segment.h.taken.Load()
	n := 0
	for ; n < len(c.answers) && int64(taken-c.answers[n].posted) > 0; n++ {
		c.space.put(uint64(c.answers[n].at), c.answers[n].len)
	}
	c.answers = slices.Delete(c.answers, 0, n)
}
