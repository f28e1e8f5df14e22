// SPDX-License-Identifier: Apache-2.0

package matching

import (
	"bytes"
	"slices"
	"testing"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// combine sends a tagged atomic on uint64 and returns its status and result; ok is false
// if it was not admitted.
func (r *rig) combine(in *Inflow, m wire.Message, operands ...uint64) (old []uint64, status wire.Status, ok bool) {
	r.t.Helper()
	m.Begins, m.Tagged = true, true
	m.Part, m.Length = words(operands...), uint64(8*m.Atomic.Count)
	var result []byte
	if m.Atomic.Form != wire.VerbAtomic {
		result = make([]byte, m.Length)
	}
	in.Begin()
	if ok = in.Admit(&m); ok {
		status = in.Combine(&m, result)
	}
	in.End()
	r.check()
	for len(result) > 0 {
		old, result = append(old, uint64(result[0])), result[8:]
	}
	return old, status, ok
}

// words encodes small values of uint64.
func words(values ...uint64) (b []byte) {
	for _, v := range values {
		b = append(b, byte(v), 0, 0, 0, 0, 0, 0, 0)
	}
	return b
}

// adds is a sum to so many words of the buffer of a receive with tag 5.
func adds(form wire.Verb, offset uint64, count uint32) wire.Message {
	return wire.Message{Tag: 5, Match: form != wire.VerbAtomic,
		Atomic: wire.TaggedAtomic{Form: form, Op: uint8(atomic.Sum), Datatype: uint8(atomic.Uint64), Count: count, Offset: offset}}
}

// An atomic is combined with the buffer of the oldest receive that its tag matches, also
// when it came first, and only once.
func TestTaggedAtomic(t *testing.T) {
	r := newRig(t)
	in := r.q.NewInflow(peer(1))
	one := Receive{Match: Match{Tagged: true, Tag: 5, AnySource: true}, Context: "one", Buf: words(1, 2, 3)}
	r.post(one)
	if old, status, ok := r.combine(in, adds(wire.VerbFetch, 8, 2), 10, 20); !ok || status != wire.StatusOK || !slices.Equal(old, []uint64{2, 3}) {
		t.Fatalf("found %v, %v, %v", old, status, ok)
	}
	if d := r.want("one:16"); !d[0].Atomic || !d[0].Tagged || d[0].Tag != 5 || d[0].Received != 16 || !bytes.Equal(one.Buf, words(1, 12, 23)) {
		t.Fatalf("%+v, buffer %v", d, one.Buf)
	}
	if _, _, ok := r.combine(in, adds(wire.VerbFetch, 8, 1), 1); ok {
		t.Fatal("an atomic that returns values was admitted without a receive")
	}
	long := make([]uint64, 300) // more than a chunk
	for i := range long {
		long[i] = uint64(i % 100)
	}
	if _, status, ok := r.combine(in, adds(wire.VerbAtomic, 0, 300), long...); !ok || status != wire.StatusOK {
		t.Fatalf("held: %v, %v", status, ok)
	}
	if d, ok := r.q.Peek(&one.Match, Look, "peek"); !ok || !d.Atomic || d.Length != 2400 {
		t.Fatalf("peek: %+v, %v", d, ok)
	}
	two := one
	two.Context, two.Buf = "two", words(slices.Repeat([]uint64{1}, 300)...)
	r.post(two)
	r.want("two:2400")
	for i := range long {
		if two.Buf[8*i] != byte(i%100+1) {
			t.Fatalf("word %d is %d", i, two.Buf[8*i])
		}
	}
}

// What does not fit its receive changes nothing, ends the receive, and tells why.
func TestTaggedAtomicMisfits(t *testing.T) {
	for name, c := range map[string]struct {
		buffers [][]byte
		change  func(*wire.Message)
		status  wire.Status
		reason  string
	}{
		"beyond the end":       {[][]byte{words(0)}, func(*wire.Message) {}, wire.StatusOutOfBounds, "truncated"},
		"far beyond the end":   {[][]byte{words(0)}, func(m *wire.Message) { m.Atomic.Offset = 1 << 63 }, wire.StatusOutOfBounds, "truncated"},
		"in two buffers":       {[][]byte{words(0, 0), words(0)}, func(*wire.Message) {}, wire.StatusMisaligned, "misplaced"},
		"misaligned":           {[][]byte{words(0, 0, 0)}, func(m *wire.Message) { m.Atomic.Offset = 4 }, wire.StatusMisaligned, "misplaced"},
		"no such operation":    {[][]byte{words(0, 0, 0)}, func(m *wire.Message) { m.Atomic.Op = uint8(atomic.Cswap) }, wire.StatusUnsupported, "unsupported"},
		"an unknown operation": {[][]byte{words(0, 0, 0)}, func(m *wire.Message) { m.Atomic.Op = 77 }, wire.StatusUnsupported, "unsupported"},
	} {
		for _, held := range []bool{false, true} {
			r := newRig(t)
			in := r.q.NewInflow(peer(1))
			m := adds(wire.VerbAtomic, 8, 2)
			c.change(&m)
			post := func() {
				r.post(Receive{Match: Match{Tagged: true, Tag: 5, AnySource: true}, Context: "it", Buffers: c.buffers})
			}
			if !held {
				post()
			}
			_, status, ok := r.combine(in, m, 1, 1)
			if held {
				post()
			} else if status != c.status {
				t.Errorf("%s: status %v, want %v", name, status, c.status)
			}
			if d := r.want("it:16 " + c.reason); !ok || d[0].Received != 0 {
				t.Errorf("%s: admitted %v, %+v", name, ok, d)
			}
			for _, b := range c.buffers {
				if !bytes.Equal(b, make([]byte, len(b))) {
					t.Errorf("%s: the buffer is %v", name, b)
				}
			}
		}
	}
}
