// SPDX-License-Identifier: Apache-2.0

package session

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/xdpfab/xdpfab/internal/wire"
)

// Buffers of a pool for jumbo frames are lent, swapped for small ones and given back at
// random: no two have the same memory, contents stay, the limit counts both sizes, and in
// the end every buffer is there again.
func TestPoolOfTwoSizes(t *testing.T) {
	const size, limit = 9000 - 34, 20
	p := NewPool(size, limit)
	rng := rand.New(rand.NewPCG(1, 2))
	type loan struct {
		b    []byte
		mark byte
		n    int // bytes that are marked
	}
	var lent []loan
	mark := func(b []byte, n int) {
		m := byte(rng.IntN(255) + 1)
		for i := range b[:n] {
			b[i] = m
		}
		lent = append(lent, loan{b, m, n})
	}
	smalls := 0
	for range 20_000 {
		n := 1 + rng.IntN(size)
		if rng.IntN(2) == 0 {
			n = 1 + rng.IntN(SmallPayload)
		}
		switch rng.IntN(4) {
		case 0:
			if b := p.Get(); (b == nil) != (len(lent) == limit) || b != nil && len(b) != size {
				t.Fatalf("%d lent of %d: a buffer of %d bytes", len(lent), limit, len(b))
			} else if b != nil {
				mark(b, n)
			}
		case 1:
			if b := p.GetFor(n); (b == nil) != (len(lent) == limit) || b != nil && (len(b) < n || (len(b) == size) != (n > SmallPayload)) {
				t.Fatalf("%d lent of %d: a buffer of %d bytes for %d", len(lent), limit, len(b), n)
			} else if b != nil {
				mark(b, n)
			}
		case 2:
			if len(lent) == 0 {
				continue
			}
			l := &lent[rng.IntN(len(lent))]
			was := len(l.b)
			l.b = p.Fit(l.b, l.n)
			if len(l.b) < was {
				smalls++
			}
			if rng.IntN(8) == 0 {
				if l.b = p.Full(l.b); len(l.b) != size {
					t.Fatalf("a full buffer of %d bytes", len(l.b))
				}
				for i := range l.b[:l.n] {
					l.b[i] = l.mark
				}
			}
		case 3:
			if len(lent) == 0 {
				continue
			}
			i := rng.IntN(len(lent))
			p.Put(lent[i].b)
			lent[i] = lent[len(lent)-1]
			lent = lent[:len(lent)-1]
		}
		for _, l := range lent {
			if bytes.Count(l.b[:l.n], []byte{l.mark}) != l.n {
				t.Fatalf("a buffer of %d bytes has lost its contents", len(l.b))
			}
		}
		if p.Lent() != len(lent) || p.Left() != limit-len(lent) || p.Empty() != (len(lent) == limit) {
			t.Fatalf("%d lent, the pool counts %d, %d left", len(lent), p.Lent(), p.Left())
		}
	}
	for _, l := range lent {
		p.Put(l.b)
	}
	if u := p.Usage(); u != (PoolUsage{0, limit, limit}) || len(p.full) > limit || len(p.less) > limit || smalls == 0 {
		t.Errorf("%+v; %d full and %d small buffers; %d were swapped", u, len(p.full), len(p.less), smalls)
	}
}

// Sessions that come and go while all buffers are lent give long answers from their own
// buffers, which began as small ones. The pool keeps no more of these than it may lend.
func TestPoolKeepsNoMoreThanItLends(t *testing.T) {
	const limit, frame = 3, 9000
	answers, holds := NewPool(frame-wire.HeaderLen, limit), NewPool(frame-wire.HeaderLen, limit)
	for answers.Get() != nil {
	}
	for epoch := range uint32(100) {
		s := NewTarget(NewShare(answers), NewShare(holds), TargetParams{Epoch: epoch, MaxFrame: frame, Window: 1}, 0)
		first := FirstPSN(epoch)
		h := wire.Header{Type: wire.Request, Epoch: epoch, PSN: first, Ack: first - 1, Ops: 1}
		if v := s.Receive(0, &h, []byte{1}); v != Execute {
			t.Fatalf("verdict %v", v)
		}
		b := s.Buffer()
		s.Executed(b, len(b), 1, 0)
		s.Release()
	}
	if len(answers.less) > limit || len(answers.full) > limit || answers.Lent() != limit {
		t.Errorf("%d small and %d full buffers are kept, and %d lent: want at most %d of each", len(answers.less),
			len(answers.full), answers.Lent(), limit)
	}
}
