// SPDX-License-Identifier: Apache-2.0

package xdpfab_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

func testSlice[T xdpfab.Element](t *testing.T, f *fixture, p *xdpfab.Peer, r fi.RemoteRegion, at uint64, values ...T) {
	t.Helper()
	clear(f.mem)
	back := make([]T, len(values))
	if err := errors.Join(xdpfab.WriteSlice(ctx(t), p, r, at, values), xdpfab.ReadSlice(ctx(t), p, r, at, back)); err != nil {
		t.Fatal(err)
	}
	want := make([]byte, len(f.mem))
	copy(want[at:], xdpfab.Bytes(values...))
	if !slices.Equal(back, values) || !bytes.Equal(f.mem, want) {
		t.Errorf("%T at %d: read back %v, want %v; memory right: %t", values, at, back, values, bytes.Equal(f.mem, want))
	}
}

// Slices of every kind of value are written as Bytes lays them out, and read back.
func TestSlices(t *testing.T) {
	f, p, r := dialled(t, fi.DomainAttr{})
	type celsius float32
	testSlice(t, f, p, r, 0, uint64(1), math.MaxUint64)
	testSlice(t, f, p, r, 3, int16(-2), 5, 6)
	testSlice(t, f, p, r, 16, 1, -1, math.MinInt)
	testSlice(t, f, p, r, 64, math.Pi, math.Inf(-1))
	testSlice(t, f, p, r, 7, celsius(-40))
	testSlice(t, f, p, r, 8, complex(1, -2))
	testSlice(t, f, p, r, 32, xdpfab.U128{Lo: 1, Hi: 2}, xdpfab.U128{Hi: 3})
	testSlice[uint32](t, f, p, r, 1<<16)
	testSlice(t, f, p, r, 1, make([]uint32, 16000)...)

	binary.LittleEndian.PutUint32(f.mem[100:], 0x01020304)
	var one [1]uint32
	if err := xdpfab.ReadSlice(ctx(t), p, r, 100, one[:]); err != nil || one[0] != 0x01020304 {
		t.Errorf("%#x, %v", one[0], err)
	}
	if err := xdpfab.WriteSlice(ctx(t), p, r, 1<<16-8, make([]uint32, 3)); !errors.Is(err, fi.ErrOutOfBounds) {
		t.Errorf("beyond the end: %v", err)
	}
}
