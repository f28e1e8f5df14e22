// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"encoding/binary"
	"testing"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// long skips a long measurement with -short, as the runs under the race
// detector are: there is only one thread, so it could find nothing.
func long(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("long: run without -short")
	}
}

// lab is a world for measurements: links without chance, all of one delay, and
// pollers that spin.
func lab(p plan) *world {
	p.mtu, p.sessions, p.buffers, p.rxRing, p.txRing = 1500, 256, 1<<14, 1<<16, 1<<12
	p.tick = 5 * microsecond
	w := newWorld(newDice(1), p, nil)
	for i := range w.net.links {
		for j := range w.net.links[i] {
			w.net.links[i][j] = link{delay: p.delay, rates: p.rates}
		}
	}
	for _, n := range w.nodes {
		n.boot()
	}
	return w
}

// flow keeps a number of operations of one kind outstanding between two nodes.
type flow struct {
	w       *world
	n       *node
	ring    *engine.Ring
	peer    *engine.Peer
	key     uint64
	verb    wire.Verb
	operand []byte
	result  []byte

	most, left  int // outstanding at most; still to post
	outstanding int
	doneAt      []int64 // when each completed, in order
	fates       [4]int
}

// newFlow joins two nodes by operations on words 64-bit words.
func newFlow(t testing.TB, w *world, from, to int, verb wire.Verb, words, most, total int) *flow {
	t.Helper()
	n := w.nodes[from]
	f := &flow{w: w, n: n, verb: verb, operand: repeat(1, words), result: make([]byte, 8*words), most: most, left: total}
	f.key = w.nodes[to].regions[arrayRegion].key()
	var err error
	if f.ring, err = engine.NewRing(256, engine.Contexts{}); err != nil {
		t.Fatal(err)
	}
	n.eng.AddRing(f.ring, nil)
	if f.peer, err = n.eng.NewPeer(n.linkTo(w.nodes[to]), 0, 0); err != nil {
		t.Fatal(err)
	}
	return f
}

// fill posts as many operations as may be outstanding.
func (f *flow) fill() {
	for ; f.outstanding < f.most && f.left > 0; f.left-- {
		op := f.ring.Claim()
		if op == nil {
			break
		}
		op.Peer, op.Context, op.Key, op.Offset, op.Count = f.peer.ID(), f, f.key, 0, uint32(len(f.operand)/8)
		op.Verb, op.Opcode, op.Datatype, op.Flags = f.verb, uint8(atomic.Sum), uint8(atomic.Uint64), 0
		op.SetOperands(f.operand, nil)
		if f.verb == wire.VerbFetch {
			op.Result = f.result
		}
		op.Publish()
		f.outstanding++
	}
	f.n.wake(f.w.now)
}

// Complete implements engine.Completer.
func (f *flow) Complete(_ *engine.Submission, c *engine.Completion, later *engine.Later) {
	r := c.Result(later)
	f.outstanding--
	f.fates[r.Outcome]++
	f.doneAt = append(f.doneAt, f.w.now)
	f.fill()
}

// finish runs the world until the flow is complete.
func (f *flow) finish(t testing.TB) {
	t.Helper()
	f.fill()
	f.w.until(f.w.now+100*second, func() bool { return f.left+f.outstanding == 0 || f.w.failure != nil })
	if f.w.failure != nil {
		t.Fatal(f.w.failure)
	}
	if f.left+f.outstanding > 0 {
		t.Fatalf("%d operations to post and %d outstanding after 100 s", f.left, f.outstanding)
	}
}

// frameWords fills a frame of 1500 bytes with one array: the rest is too short
// for the beginning of the next.
const frameWords = 180

// isRequest reports whether the packet carries operations.
func isRequest(packet []byte) (h wire.Header, ok bool) {
	frame, _, reason := wire.Decap(packet)
	if reason != wire.ReasonOK {
		return h, false
	}
	h, _, reason = wire.Parse(frame)
	return h, reason == wire.ReasonOK && h.Type == wire.Request
}

// repeat is the bytes of an array of equal words.
func repeat(v uint64, n int) []byte {
	b := make([]byte, 0, 8*n)
	for range n {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	return b
}
