// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"encoding/binary"
	"sync"

	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// A call is an operation whose operand is the request, of Count bytes, and whose result
// is the head of a reply and room for Offset bytes of it: see [ReplyOf]. It has a frame
// of its own.

// ReplyOf returns the reply in the result of a call that has succeeded.
func ReplyOf(result []byte) wire.Reply {
	le := binary.LittleEndian
	came := le.Uint32(result[4:]) >> 8
	return wire.Reply{Length: le.Uint32(result), Kind: wire.ReplyKind(result[4]),
		Bytes: result[wire.ReplyHead:][:min(int(came), len(result)-wire.ReplyHead)]}
}

// putReply makes the result of a call. The bytes of the head that are 0 on the wire say
// how much of the reply has come: the frame may have had room for less than the poster.
func (f *flight) putReply(r *wire.Reply) {
	var head [wire.ReplyHead]byte
	le := binary.LittleEndian
	le.PutUint32(head[:], r.Length)
	le.PutUint32(head[4:], uint32(r.Kind)|uint32(len(r.Bytes))<<8)
	f.store(0, head[:])
	f.store(wire.ReplyHead, r.Bytes)
}

// mostReply returns the longest reply that a call has room for, bytes.
func (x *Entry) mostReply() int { return int(min(x.Offset, wire.MaxFrame)) }

// packCall appends a call, unless the frame has other operations.
func (c *conn) packCall(w *wire.RecordWriter, f *flight, frag *fragment) {
	if !c.ini.Features().Allow(wire.VerbCall) {
		c.lack(f, Result{Outcome: NotExecuted, Status: wire.StatusUnsupported})
		return
	}
	call := wire.Call{Most: uint32(min(f.mostReply(), w.MostReply())), Source: c.r.origin.endpoint}
	request, ok := w.Call(&call, int(f.Count))
	if !ok {
		return // packOp fails it, if the frame is empty
	}
	f.Offset = uint64(call.Most) // which is what the reply is checked against
	operand, _ := f.operands()
	copy(request, operand)
	f.sent, frag.count, frag.records = 1, 1, 1
}

// calls reports whether the frame is a call.
func (g *cargo) calls() bool { return len(g.frags) == 1 && g.frags[0].f.Verb == wire.VerbCall }

// replied completes a call from its response.
func (c *conn) replied(psn uint32, h *wire.Header, payload []byte) {
	var r wire.ResponseReader
	s := &c.cargoOf(psn).frags[0]
	if r.Reset(payload, int(h.Ops), h.Flags) != wire.ReasonOK || h.Ops != 1 {
		c.lied()
		return
	}
	status := wire.StatusOK
	if h.Flags&wire.FlagStatus != 0 {
		status, _, _ = r.Next(0)
		if r.Finish() != wire.ReasonOK {
			c.lied()
			return
		}
		s.f.fail(Result{Outcome: NotExecuted, Status: status})
	} else {
		reply := &c.r.e.gotReply
		if reply.ParseReply(payload, s.f.mostReply()) != wire.ReasonOK {
			c.lied()
			return
		}
		s.f.ran = true
		s.f.putReply(reply)
		reply.Bytes = nil
	}
	c.ini.Retire(c.r.e.now, psn)
	at := c.release(psn)
	s.settle()
	c.r.e.drop(at)
}

// answered are the sessions in which calls have ended.
type answered struct {
	mu         sync.Mutex
	all, spare []*target
}

// callEnded returns what a session's Callee calls when a call has ended. Any goroutine
// may call it: the engine looks at the session in a coming round.
func (t *target) callEnded() func() {
	return func() {
		e := t.e
		e.answered.mu.Lock()
		first := !t.answered
		if first {
			t.answered = true
			e.answered.all = append(e.answered.all, t)
		}
		e.answered.mu.Unlock()
		if first {
			e.Alert()
		}
	}
}

// takeReplies answers the calls that have ended.
func (e *Engine) takeReplies() int {
	a := &e.answered
	a.mu.Lock()
	all := a.all
	a.all, a.spare = a.spare[:0], all
	for _, t := range all {
		t.answered = false
	}
	a.mu.Unlock()
	for _, t := range all {
		if t.slot.id != 0 && !t.dying {
			o := t.s.Retry()
			t.came(&o)
		}
	}
	clear(all)
	return len(all)
}

// callee finds who answers the calls of a session, if anybody does.
func (e *Engine) callee(t *target, p *session.TargetParams) {
	if p.Features&wire.FeatureCalls != 0 && e.cfg.Callee != nil {
		p.Callee = e.cfg.Callee(t.endpoint, t.from, p.Party, t.callEnded())
	}
	if p.Callee == nil {
		p.Features &^= wire.FeatureCalls
	} else {
		p.Features &^= wire.FeaturePadding // no program answers calls
	}
}
