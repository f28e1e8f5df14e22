// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// receive takes a frame of the target.
func (p *Peer) receive(h *wire.Header, payload []byte) bool {
	e := p.e
	ev := p.ini.Receive(e.now, h, payload)
	switch ev.Kind {
	case session.Refused:
		e.count[Invalid]++
	case session.Succeeded:
		for psn := ev.First; psn != ev.Last+1; psn++ {
			p.succeeded(psn)
		}
	case session.Responded:
		p.responded(ev.First, h, payload)
	case session.Ended:
		p.ended()
	}
	p.progress()
	return true
}

// progress sees to it that frames that are due get sent.
func (p *Peer) progress() {
	if p.ini.Due() {
		p.e.touch(p, &p.dirty)
	}
}

// succeeded completes a frame whose records all succeeded without results.
func (p *Peer) succeeded(psn uint32) {
	if !p.ini.Retire(p.e.now, psn) {
		return
	}
	segs := p.take(psn)
	for i := range segs {
		segs[i].op.ran = true
		segs[i].settle()
	}
	p.e.giveSegments(segs)
}

// responded completes a frame from its response. A response that does not match
// its request is a lie: the session ends, and nothing of it is believed.
func (p *Peer) responded(psn uint32, h *wire.Header, payload []byte) {
	segs := p.frames[psn%session.MaxWindow]
	if int(h.Ops) != len(segs) || !wellFormed(segs, h, payload) {
		p.e.count[Invalid]++
		p.ini.Close(session.ProtocolError)
		p.ended()
		return
	}
	p.ini.Retire(p.e.now, psn)
	segs = p.take(psn)
	var r wire.ResponseReader
	r.Reset(payload, len(segs), h.Flags)
	for i := range segs {
		s := &segs[i]
		status, value, _ := r.Next(s.resultLen())
		s.result(status, value)
		s.settle()
	}
	p.e.giveSegments(segs)
}

// wellFormed checks a response against the records that it answers.
func wellFormed(segs []segment, h *wire.Header, payload []byte) bool {
	var r wire.ResponseReader
	if r.Reset(payload, len(segs), h.Flags) != wire.ReasonOK {
		return false
	}
	for i := range segs {
		if _, _, ok := r.Next(segs[i].resultLen()); !ok {
			return false
		}
	}
	return r.Finish() == wire.ReasonOK
}

// take removes the segments of psn from the window.
func (p *Peer) take(psn uint32) []segment {
	segs := p.frames[psn%session.MaxWindow]
	p.frames[psn%session.MaxWindow] = nil
	return segs
}

// resultLen returns the length in bytes of the record's value.
func (s *segment) resultLen() int {
	switch s.op.Verb {
	case wire.VerbFetch, wire.VerbCompare:
		return int(s.count) * wire.ElemSize(s.op.Datatype)
	case wire.VerbLookup, wire.VerbList:
		return wire.EntryLen
	}
	return 0
}

// result stores the outcome of one record.
func (s *segment) result(status wire.Status, value []byte) {
	op := s.op
	if status != wire.StatusOK {
		op.fail(Result{Fate: NotExecuted, Status: status})
		return
	}
	op.ran = true
	if len(value) > 0 {
		at := 0
		if op.Verb <= wire.VerbCompare {
			at = int(s.first) * wire.ElemSize(op.Datatype)
		}
		copy(op.Result[min(at, len(op.Result)):], value)
	}
}

// settle ends one record in flight, and its operation when it was the last.
// What still waits in the queue, of an operation that failed, is left to pack.
func (s *segment) settle() {
	op := s.op
	op.pending--
	if op.pending == 0 && op.whole() && op.Peer.head != op {
		op.finish()
	}
}

// ended completes everything in flight with what is known of it, and everything
// in the queue as not executed. The next operation begins a new session.
func (p *Peer) ended() {
	_, why := p.ini.State()
	p.ini.Unanswered(func(psn uint32, fate session.Fate) {
		r := Result{Reason: why}
		switch fate {
		case session.NeverRan:
			r.Fate = NotExecuted
		case session.LostToCrash:
			r.Fate = Restarted
		default:
			r.Fate = Unknown
		}
		segs := p.take(psn)
		for i := range segs {
			segs[i].op.fail(r)
			segs[i].settle()
		}
		p.e.giveSegments(segs)
	})
	if why != session.Idle {
		p.failQueue(Result{Fate: NotExecuted, Reason: why})
	}
	if why != session.ClosedHere && why != session.Idle {
		p.e.count[SessionsFailed]++
	}
	p.e.touch(p, &p.dirty) // for the farewell, and to leave the table
}

// failQueue completes every operation that waits.
func (p *Peer) failQueue(r Result) {
	for p.head != nil {
		op := p.pop()
		op.fail(r)
		if op.pending == 0 {
			op.finish()
		}
	}
}

func (p *Peer) tick(now int64) int64 {
	if p.ini.Tick(now).Kind == session.Ended {
		p.ended()
	}
	p.progress()
	return p.ini.Deadline()
}

func (p *Peer) shutdown() { p.Close(session.ClosedHere) }

// Close ends the session to the peer, if there is one, and completes what waits.
// Engine's thread only.
func (p *Peer) Close(why session.Reason) {
	if p.ini == nil {
		p.failQueue(Result{Fate: NotExecuted, Reason: why})
		return
	}
	if state, _ := p.ini.State(); state != session.Closed {
		p.ini.Close(why)
		p.ended()
	}
}
