// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"

	"github.com/xdpfab/xdpfab/internal/matching"
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// inbox is the owner of the target's endpoint, in one life: it receives messages, each of
// which has the number of its operation as the tag. A quarter of its receives are too
// short for most messages.
type inbox struct {
	w *world
	q *matching.Queue
}

func (w *world) newInbox() *inbox {
	b := &inbox{w: w}
	b.q = matching.New(matching.Config{Receives: 64, Unexpected: 8, Memory: 1 << 15, Sink: b, Room: func() { w.eng[1].Room() }})
	return b
}

func (b *inbox) Take() bool { return b.w.rng.IntN(8) > 0 }
func (b *inbox) Return()    {}

func (b *inbox) Deliver(d *matching.Done) {
	w := b.w
	if d.Reason != matching.Received && d.Reason != matching.Truncated || !w.strict {
		return
	}
	if d.Tag >= uint64(len(w.ops)) || !w.ops[d.Tag].message {
		w.t.Errorf("seed %d: a message %+v that nobody sent", w.seed, d)
		return
	}
	o, buf := w.ops[d.Tag], *d.Context.(*[]byte)
	if d.Atomic && d.Reason == matching.Truncated && o.tells {
		return // the initiator is told that it was not executed
	}
	o.told++
	if want := contents(int(d.Tag), o.n); d.Length != uint64(o.n) || !bytes.Equal(buf[:d.Received], want[:d.Received]) || !d.Atomic && d.Received != uint64(min(len(buf), o.n)) {
		w.t.Errorf("seed %d: message %d of %d bytes arrives as %+v", w.seed, d.Tag, o.n, d)
	}
}

// contents returns the bytes of a message.
func contents(number, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(number*31 + i*7 + i>>8)
	}
	return b
}

// receive posts a receive that takes any message, unless there are some already.
func (w *world) receive() {
	if w.inbox.q.Usage().Posted >= 4 {
		return
	}
	buf := make([]byte, 20_000)
	if w.rng.IntN(4) == 0 {
		buf = buf[:w.rng.IntN(200)]
	}
	context := buf[:len(buf):len(buf)]
	_ = w.inbox.q.Post(&matching.Receive{Match: matching.Match{Tagged: true, Ignore: ^uint64(0), AnySource: true},
		Buffers: [][]byte{buf}, Context: &context})
}

// fill makes a submission a message.
func (o *worldOp) fill(op *Submission, number int) {
	op.Verb, op.Key, op.Count, op.Opcode, op.Datatype, op.Offset = wire.VerbTagged, uint64(number), uint32(o.n), 0, wire.Byte, 0
	if op.Flags &= FlagFence; o.w.rng.IntN(4) == 0 {
		op.Flags |= FlagMatch
	}
	if o.n > 0 && o.n < 1000 && o.w.rng.IntN(3) == 0 { // a tagged atomic
		if op.Verb, op.Opcode = wire.VerbTaggedAtomic, wire.OpWrite; o.fetch {
			op.Verb, op.Flags = wire.VerbTaggedFetch, op.Flags|FlagMatch
		}
		o.tells = op.Flags&FlagMatch != 0
	}
	o.fetch, op.Data, op.Result = false, 0, nil
	op.SetOperands(contents(number, o.n), nil)
}

// inflow returns where the messages of a session go.
func (w *world) inflow(_ uint16, from wire.Addr) session.Inflow { return w.inbox.q.NewInflow(from) }
