// SPDX-License-Identifier: Apache-2.0

package xdpfab_test

import (
	"errors"
	"math"
	"testing"

	"github.com/xdpfab/xdpfab/xdpfab"
)

// testBounds checks the functions with bounds on a word of low and high limit.
func testBounds[T xdpfab.Integer](t *testing.T, p *xdpfab.Peer, lowest, highest, zero, one, three, four T) {
	t.Helper()
	w, err := xdpfab.Word[T](ctx(t), p, "r", 2)
	if err == nil {
		err = w.Store(ctx(t), three)
	}
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range []struct {
		f     func() (bool, error)
		held  bool
		after T
	}{
		{func() (bool, error) { return xdpfab.AddAtMost(ctx(t), w, one, four) }, true, four},
		{func() (bool, error) { return xdpfab.AddAtMost(ctx(t), w, one, four) }, false, four},
		{func() (bool, error) { return xdpfab.AddAtMost(ctx(t), w, highest, highest) }, false, four},
		{func() (bool, error) { return xdpfab.AddAtMost(ctx(t), w, zero, four) }, true, four},
		{func() (bool, error) { return xdpfab.AddAtMost(ctx(t), w, zero, three) }, false, four},
		{func() (bool, error) { return xdpfab.SubAtLeast(ctx(t), w, three, zero) }, true, one},
		{func() (bool, error) { return xdpfab.SubAtLeast(ctx(t), w, three, zero) }, false, one},
		{func() (bool, error) { return xdpfab.SubAtLeast(ctx(t), w, one, zero) }, true, zero},
		{func() (bool, error) { return xdpfab.SetBit(ctx(t), w, 0) }, false, one},
		{func() (bool, error) { return xdpfab.SetBit(ctx(t), w, 1) }, false, three},
		{func() (bool, error) { return xdpfab.SetBit(ctx(t), w, 1) }, true, three},
		{func() (bool, error) { return xdpfab.ClearBit(ctx(t), w, 1) }, true, one},
		{func() (bool, error) { return xdpfab.ClearBit(ctx(t), w, 1) }, false, one},
	} {
		held, err := c.f()
		if got, err2 := w.Load(ctx(t)); held != c.held || got != c.after || err != nil || err2 != nil {
			t.Errorf("call %d: %t and then %v, %v, %v; want %t and %v", i, held, got, err, err2, c.held, c.after)
		}
	}
	old, err := xdpfab.AddSaturating(ctx(t), w, highest)
	if top, err2 := w.Load(ctx(t)); old != one || top != highest || err != nil || err2 != nil {
		t.Errorf("saturated from %v to %v, %v, %v", old, top, err, err2)
	}
	if err := w.Store(ctx(t), lowest); err != nil {
		t.Fatal(err)
	}
	old, err = xdpfab.SubSaturating(ctx(t), w, one)
	if bottom, err2 := w.Load(ctx(t)); old != lowest || bottom != lowest || err != nil || err2 != nil {
		t.Errorf("saturated from %v to %v, %v, %v", old, bottom, err, err2)
	}
}

func TestBounds(t *testing.T) {
	f := setUp(t, xdpfab.DomainAttr{}, 64)
	p, _ := dialWord[uint64](t, f)
	testBounds[int8](t, p, math.MinInt8, math.MaxInt8, 0, 1, 3, 4)
	testBounds[uint16](t, p, 0, math.MaxUint16, 0, 1, 3, 4)
	testBounds[int32](t, p, math.MinInt32, math.MaxInt32, 0, 1, 3, 4)
	testBounds[uint64](t, p, 0, math.MaxUint64, 0, 1, 3, 4)
	unsigned := func(n uint64) xdpfab.U128 { return xdpfab.U128{Lo: n} }
	testBounds(t, p, unsigned(0), xdpfab.U128{Lo: math.MaxUint64, Hi: math.MaxUint64}, unsigned(0), unsigned(1),
		unsigned(3), unsigned(4))
	signed := func(n uint64) xdpfab.I128 { return xdpfab.I128{Lo: n} }
	testBounds(t, p, xdpfab.I128{Hi: math.MinInt64}, xdpfab.I128{Lo: math.MaxUint64, Hi: math.MaxInt64}, signed(0),
		signed(1), signed(3), signed(4))
}

// A field has its own sum at every place and of every width, and nothing else changes.
func TestAddField(t *testing.T) {
	f := setUp(t, xdpfab.DomainAttr{}, 64)
	p, w := dialWord[uint16](t, f)
	const before, delta = 0xa5f3, 0xbeef
	for offset := range 16 {
		for width := 1; offset+width <= 16; width++ {
			if err := w.Store(ctx(t), before); err != nil {
				t.Fatal(err)
			}
			old, err := xdpfab.AddField(ctx(t), w, offset, width, delta)
			mask := uint32(1)<<width - 1
			field := uint32(before) >> offset & mask
			want := before&^(mask<<offset) | (field+delta)&mask<<offset
			if got, err2 := w.Load(ctx(t)); uint32(old) != field || uint32(got) != want || err != nil || err2 != nil {
				t.Errorf("%d bits at %d: from %#x to %#x, %v, %v; want from %#x to %#x", width, offset, old, got, err, err2,
					field, want)
			}
		}
	}
	wide, err := xdpfab.Word[xdpfab.U128](ctx(t), p, "r", 1)
	if err == nil {
		err = wide.Store(ctx(t), xdpfab.U128{Lo: 7, Hi: math.MaxUint64})
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		offset, width int
		delta, old    uint64
		after         xdpfab.U128
	}{
		{60, 8, 0x11, 0xf0, xdpfab.U128{Lo: 7 | 1<<60, Hi: math.MaxUint64 &^ 0xf}}, // f0 + 11 = 01
		{64, 4, 1, 0, xdpfab.U128{Lo: 7 | 1<<60, Hi: math.MaxUint64 &^ 0xe}},
		{127, 1, 1, 1, xdpfab.U128{Lo: 7 | 1<<60, Hi: math.MaxUint64 >> 1 &^ 0xe}},
	} {
		old, err := xdpfab.AddField(ctx(t), wide, c.offset, c.width, xdpfab.U128{Lo: c.delta})
		if got, err2 := wide.Load(ctx(t)); old.Lo != c.old || old.Hi != 0 || got != c.after || err != nil || err2 != nil {
			t.Errorf("%d bits at %d: from %#x to %#x, %v, %v; want from %#x to %#x", c.width, c.offset, old, got, err, err2,
				c.old, c.after)
		}
	}
}

// Bits that a word does not have are refused.
func TestNoSuchBits(t *testing.T) {
	f := setUp(t, xdpfab.DomainAttr{}, 64)
	_, w := dialWord[uint32](t, f)
	for _, bits := range [][2]int{{-1, 1}, {32, 1}, {0, 33}, {31, 2}, {5, 0}, {1, math.MaxInt}, {math.MinInt, math.MinInt}} {
		want := xdpfab.ErrOutOfBounds
		if bits[1] < 1 {
			want = xdpfab.ErrArgument // no word has such a field
		}
		if _, err := xdpfab.AddField(ctx(t), w, bits[0], bits[1], 1); !errors.Is(err, want) {
			t.Errorf("%v: %v, want %v", bits, err, want)
		}
	}
	for _, bit := range []int{-1, 32} {
		_, err := xdpfab.SetBit(ctx(t), w, bit)
		if _, err2 := xdpfab.ClearBit(ctx(t), w, bit); !errors.Is(err, xdpfab.ErrOutOfBounds) || !errors.Is(err2, xdpfab.ErrOutOfBounds) {
			t.Errorf("bit %d: %v, %v", bit, err, err2)
		}
	}
	if _, err := xdpfab.SetBit(ctx(t), xdpfab.Remote[uint32]{}, 1); !errors.Is(err, xdpfab.ErrClosed) {
		t.Errorf("of no word: %v", err)
	}
}
