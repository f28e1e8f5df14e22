// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/mr"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// divide divides a buffer into pieces of whole elements; some are empty.
func divide(rng *rand.Rand, b []byte, size int) (list [][]byte) {
	for len(b) > 0 {
		n := min(rng.IntN(1+rng.IntN(1+2*len(b)/size)), len(b)/size) * size
		list, b = append(list, b[:n:n]), b[n:]
	}
	return append(list, nil)
}

// An operation in pieces does the same as one in whole buffers: in every form, with
// every size of element, short and over many frames, on an array and on extents.
func TestPieces(t *testing.T) {
	types := []struct {
		datatype atomic.Datatype
		form     atomic.Func
		op       atomic.Op
	}{
		{atomic.Uint8, atomic.Base, atomic.Bxor}, {atomic.Uint16, atomic.Fetch, atomic.Sum}, {atomic.Uint32, atomic.Compare, atomic.Cswap},
		{atomic.Uint64, atomic.Base, atomic.Sum}, {atomic.Uint64, atomic.Fetch, atomic.Sum}, {atomic.Uint64, atomic.Fetch, atomic.Read},
		{atomic.Uint64, atomic.Compare, atomic.CswapNE}, {atomic.Uint128, atomic.Fetch, atomic.Write}, {atomic.DoubleComplex, atomic.Compare, atomic.Cswap},
	}
	for _, progress := range []fi.ProgressMode{fi.ProgressAuto, fi.ProgressManual} {
		f := setUp(t, fi.DomainAttr{Progress: progress}, 64)
		rng := rand.New(rand.NewPCG(1, uint64(progress)))
		for i := range reduced(400, 120) {
			x := types[rng.IntN(len(types))]
			size := x.datatype.Size()
			n := 1 + rng.IntN(1+rng.IntN(1+rng.IntN(len(f.mem)/2/size)))
			whole := fi.Msg{Dest: f.dest, Key: 1, Datatype: x.datatype, Op: x.op, Count: n, Buf: random(rng, n*size)}
			if x.form != atomic.Base {
				whole.Result = make([]byte, n*size)
			}
			if x.form == atomic.Compare {
				whole.Compare = random(rng, n*size)
			}
			if n > 1 && rng.IntN(3) == 0 {
				whole.Key, whole.RMA = 0, []mr.Extent{{Key: 1, Offset: uint64(size), Count: 1}, {Key: 1, Offset: 2 * uint64(size), Count: uint32(n - 1)}}
			}
			pieces := whole
			pieces.Buf, pieces.Compare, pieces.Result, pieces.Count = nil, nil, nil, n*rng.IntN(2)
			pieces.Pieces = &fi.Pieces{Buf: divide(rng, whole.Buf, size)}
			result := make([]byte, len(whole.Result))
			pieces.Pieces.Compare, pieces.Pieces.Result = divide(rng, whole.Compare, size), divide(rng, result, size)
			if rng.IntN(4) == 0 { // not all have to be in pieces
				pieces.Buf, pieces.Pieces.Buf = whole.Buf, nil
			}
			before := bytes.Clone(f.mem)
			var after [2][]byte
			for j, m := range []*fi.Msg{&whole, &pieces} {
				copy(f.mem, before)
				if err := post(f, x.form, m); err != nil {
					t.Fatalf("operation %d: %v", i, err)
				}
				if c := take(t, f); c.Err != nil {
					t.Fatalf("operation %d: %v", i, c.Err)
				}
				after[j] = bytes.Clone(f.mem)
			}
			what := fmt.Sprintf("operation %d: %v %v on %d of %v", i, x.form, x.op, n, x.datatype)
			if !bytes.Equal(after[0], after[1]) {
				t.Fatalf("%s: the memory differs", what)
			}
			if !bytes.Equal(whole.Result, result) {
				t.Fatalf("%s: the result differs", what)
			}
		}
	}
}

func random(rng *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rng.IntN(3)) // so that comparisons succeed
	}
	return b
}

func post(f *fixture, form atomic.Func, m *fi.Msg) error {
	switch form {
	case atomic.Base:
		return f.ep.Atomic(m, 0)
	case atomic.Fetch:
		return f.ep.FetchAtomic(m, 0)
	}
	return f.ep.CompareAtomic(m, 0)
}

// Pieces that are injected may be used again at once.
func TestPiecesInjected(t *testing.T) {
	f := setUp(t, fi.DomainAttr{Progress: fi.ProgressManual}, 64)
	a, b := []byte{1, 0, 0, 0, 0, 0, 0, 0}, []byte{2, 0, 0, 0, 0, 0, 0, 0}
	p := &fi.Pieces{Buf: [][]byte{a, b}}
	if err := f.ep.InjectAtomic(&fi.Msg{Pieces: p, Dest: f.dest, Key: 1, Datatype: atomic.Uint64, Op: atomic.Sum}); err != nil {
		t.Fatal(err)
	}
	clear(a)
	clear(b)
	p.Buf = nil
	if err := f.ep.FetchAtomic(&fi.Msg{Result: make([]byte, 8), Dest: f.dest, Key: 1, Datatype: atomic.Uint64, Op: atomic.Read}, 0); err != nil {
		t.Fatal(err)
	}
	if c := take(t, f); c.Err != nil {
		t.Fatal(c.Err)
	}
	if x, y := binary.LittleEndian.Uint64(f.mem), binary.LittleEndian.Uint64(f.mem[8:]); x != 1 || y != 2 {
		t.Errorf("the words are %d and %d, want 1 and 2", x, y)
	}
}

// Lists that cannot be right are refused.
func TestPiecesRefused(t *testing.T) {
	f := setUp(t, fi.DomainAttr{}, 64)
	word := make([]byte, 8)
	for name, c := range map[string]struct {
		m    fi.Msg
		want error
	}{
		"a part of an element":  {fi.Msg{Pieces: &fi.Pieces{Buf: [][]byte{word[:4], word[4:]}}}, fi.ErrLength},
		"both":                  {fi.Msg{Buf: word, Pieces: &fi.Pieces{Buf: [][]byte{word}}}, fi.ErrLength},
		"too many":              {fi.Msg{Pieces: &fi.Pieces{Buf: make([][]byte, fi.MaxPieces+1)}}, fi.ErrTooMany},
		"too short":             {fi.Msg{Count: 2, Pieces: &fi.Pieces{Buf: [][]byte{word}}}, fi.ErrLength},
		"nothing":               {fi.Msg{Pieces: &fi.Pieces{Buf: [][]byte{nil}}}, fi.ErrCount},
		"a result of a base op": {fi.Msg{Buf: word, Pieces: &fi.Pieces{Result: [][]byte{word}}}, fi.ErrLength},
	} {
		c.m.Dest, c.m.Key, c.m.Datatype, c.m.Op = f.dest, 1, atomic.Uint64, atomic.Sum
		if err := f.ep.Atomic(&c.m, 0); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

// A read ignores its operand, in pieces as in one buffer.
func TestReadIgnoresPieces(t *testing.T) {
	f := setUp(t, fi.DomainAttr{}, 64)
	for i, list := range [][][]byte{{make([]byte, 3)}, make([][]byte, 2000), {make([]byte, 4096)}} {
		result := make([]byte, 16)
		want := bytes.Clone(f.mem[:16])
		m := fi.Msg{
			Dest: f.dest, Key: 1, Datatype: atomic.Uint64, Op: atomic.Read, Buf: make([]byte, i), Count: 2,
			Pieces: &fi.Pieces{Buf: list, Result: [][]byte{result[:8], result[8:]}},
		}
		if err := post(f, atomic.Fetch, &m); err != nil {
			t.Errorf("list %d: %v", i, err)
			continue
		}
		if c := take(t, f); c.Err != nil || !bytes.Equal(result, want) {
			t.Errorf("list %d: %x, %v; want %x", i, result, c.Err, want)
		}
	}
}
