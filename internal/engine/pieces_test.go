// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"
	"testing"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
	"github.com/xdpfab/xdpfab/mr"
)

// inPieces posts an operation on n words, from the first one on.
func (c *cable) inPieces(p *Peer, verb wire.Verb, op atomic.Op, n int, x *Pieces) *outcomes {
	return c.submit(p, false, func(s *Submission) {
		s.Verb, s.Opcode, s.Count, s.Flags = verb, uint8(op), uint32(n), 0
		if s.SetPieces(x, nil, nil) {
			c.t.Fatal("the operands are copied")
		}
	})
}

// A poster that changes its lists before completion gets a wrong operation or a failure,
// but the engine goes on.
func TestPiecesThatChange(t *testing.T) {
	const n = 400 // words: several frames
	list := func() [][]byte { return [][]byte{make([]byte, 8*n/4), make([]byte, 8*3*n/4)} }
	for name, test := range map[string]struct {
		change func(x *Pieces)
		fails  bool
	}{
		"no operands":            {func(x *Pieces) { x.Buf = nil }, true},
		"no comparands":          {func(x *Pieces) { x.Compare = nil }, true},
		"no result":              {func(x *Pieces) { x.Result = nil }, false},
		"nothing":                {func(x *Pieces) { *x = Pieces{} }, true},
		"empty pieces":           {func(x *Pieces) { x.Buf[0], x.Compare[1], x.Result[0] = nil, nil, nil }, true},
		"no whole element":       {func(x *Pieces) { x.Buf[0] = x.Buf[0][:5] }, true},
		"a part of a comparand":  {func(x *Pieces) { x.Compare[0] = x.Compare[0][:13] }, true},
		"a result that is short": {func(x *Pieces) { x.Result[0] = x.Result[0][:13] }, false},
		"operands that are long": {func(x *Pieces) { x.Buf = append(x.Buf, make([]byte, 800)) }, false},
		"fewer pieces":           {func(x *Pieces) { x.Buf, x.Compare, x.Result = x.Buf[:1], x.Compare[:1], x.Result[:1] }, true},
	} {
		for _, when := range []string{"at once", "while some are under way"} {
			t.Run(name+" "+when, func(t *testing.T) {
				c := newCable(t, session.Config{Window: 1})
				p := c.peer(ethernet())
				c.write(p, 0, 1)
				x := &Pieces{Buf: list(), Compare: list(), Result: list()}
				r := c.inPieces(p, wire.VerbCompare, atomic.Cswap, n, x)
				if when != "at once" {
					c.nodes[0].eng[0].Step() // takes it, and sends one frame
				}
				test.change(x)
				if res := c.done(r); (res.Outcome != Success) != test.fails {
					t.Errorf("%+v, want a failure: %t", res, test.fails)
				}
				c.write(p, 0, 2)
			})
		}
	}
}

// What is told later of an operation in pieces is its result in one piece; the answer
// that comes late does not touch the pieces.
func TestPiecesCancelled(t *testing.T) {
	for _, extents := range []bool{false, true} {
		c := newCable(t, session.Config{})
		p := c.peer(ethernet())
		c.write(p, 0, 1)
		const n = 300
		var want []byte
		for i := range uint64(n) {
			want = append(want, words(i+1)...)
		}
		copy(c.nodes[1].bytes, want)
		x := &Pieces{Result: [][]byte{make([]byte, 8), nil, make([]byte, 8*(n-3)), make([]byte, 16)}}
		x.Buf = [][]byte{make([]byte, 8*(n-1)), make([]byte, 8)}
		c.pass = func(int, []byte) bool { return false }
		r := &outcomes{}
		c.submit(p, false, func(s *Submission) {
			s.Context, s.Count = r, n
			if s.SetPieces(x, nil, nil); extents {
				s.SetExtents([]mr.Extent{{Key: 1, Count: 1}, {Key: 1, Offset: 8, Count: n - 2}, {Key: 1, Offset: 8 * (n - 1), Count: 1}})
			}
		})
		for range 10 {
			c.step()
		}
		if !p.Cancel(r) || len(r.all) != 1 || r.all[0].Later == nil {
			t.Fatalf("cancelled: %+v", r.all)
		}
		c.pass = nil
		later := r.all[0].Later
		if res := c.known(later); res.Outcome != Success {
			t.Fatalf("later: %+v", res)
		}
		if _, got := later.Outcome(); !bytes.Equal(got, want) {
			t.Errorf("the result that is told later differs")
		}
		for i, b := range x.Result {
			if !bytes.Equal(b, make([]byte, len(b))) {
				t.Errorf("piece %d was changed after the caller had it back", i)
			}
		}
	}
}
