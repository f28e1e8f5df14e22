// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"slices"

	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// worldCallee answers the calls of a session, when the test says so.
type worldCallee struct {
	w      *world
	told   func()
	ended  []*askedCall
	closed bool
}

// askedCall is a call that the callee has been asked.
type askedCall struct {
	by    *worldCallee
	psn   uint32
	most  int // bytes of a reply
	reply wire.Reply
}

// worldCalls is how many calls may be open at a time.
const worldCalls = 2

func (w *world) callee(_ uint16, _ wire.Addr, _ session.Party, told func()) session.Callee {
	return &worldCallee{w: w, told: told}
}

// Ask implements session.Callee, as all that follow do.
func (c *worldCallee) Ask(psn uint32, x *wire.Call) wire.Status {
	if len(c.w.asked) == worldCalls {
		return wire.StatusNoRoom
	}
	c.w.asked = append(c.w.asked, &askedCall{by: c, psn: psn, most: int(x.Most)})
	return wire.StatusOK
}

func (c *worldCallee) Answered() (psn uint32, r *wire.Reply, s wire.Status, ok bool) {
	if len(c.ended) == 0 {
		return 0, nil, 0, false
	}
	return c.ended[0].psn, &c.ended[0].reply, wire.StatusOK, true
}

func (c *worldCallee) Drop()   { c.ended = c.ended[1:] }
func (c *worldCallee) Recall() {} // each has begun

func (c *worldCallee) Close() {
	c.closed, c.ended = true, nil
	c.w.asked = slices.DeleteFunc(c.w.asked, func(a *askedCall) bool { return a.by == c })
}

// answer answers the call that was asked first, with n bytes of some kind.
func (w *world) answer(n int, kind byte) {
	if len(w.asked) == 0 {
		return
	}
	a := w.asked[0]
	w.asked = w.asked[1:]
	a.reply = wire.Reply{Kind: wire.ReplyKind(kind % 3), Length: uint32(n), Bytes: make([]byte, min(n, a.most))}
	a.by.ended = append(a.by.ended, a)
	a.by.told()
}

// call posts a call with a request of n bytes, and room for most bytes of a reply. Long
// ones of either may have no frame.
func (w *world) call(n, most int) {
	op := w.ring.Claim()
	if op == nil {
		return
	}
	if n == 255 { // longer than any frame
		n = 2000
	}
	o := &worldOp{w: w, peer: w.rng.IntN(len(w.peers)), n: n, message: true, out: make([]byte, wire.ReplyHead+most)}
	op.Peer, op.Context, op.Key, op.Offset, op.Count = w.peers[o.peer].ID(), o, 0, uint64(most), uint32(n)
	op.Verb, op.Opcode, op.Datatype, op.Flags, op.Result = wire.VerbCall, wire.OpWrite, wire.Byte, 0, o.out
	op.SetOperands(make([]byte, n), nil)
	op.Publish()
	w.ops = append(w.ops, o)
}
