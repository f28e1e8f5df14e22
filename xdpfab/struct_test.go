// SPDX-License-Identifier: Apache-2.0

package xdpfab_test

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/xdpfab/xdpfab/xdpfab"
)

type point struct{ X, Y float32 }

// record is a struct with all that has a fixed size.
type record struct {
	Count  uint64
	Kind   uint16
	Valid  bool
	_      [5]byte
	Places [2]point
	Delta  int8
}

// A struct comes back as it was, and lies in the region by the rules of encoding/binary.
func TestStruct(t *testing.T) {
	f := setUp(t, xdpfab.DomainAttr{}, 64)
	p, _ := dialWord[uint64](t, f)
	r, err := p.Lookup(ctx(t), "r")
	if err != nil {
		t.Fatal(err)
	}
	want := record{Count: 1 << 40, Kind: 0x0102, Valid: true, Places: [2]point{{1, 2}, {3, -4}}, Delta: -1}
	if err := xdpfab.WriteStruct(ctx(t), p, r, 16, want); err != nil {
		t.Fatal(err)
	}
	got, err := xdpfab.ReadStruct[record](ctx(t), p, r, 16)
	if got != want || err != nil {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	const size = 8 + 2 + 1 + 5 + 2*8 + 1
	if b := f.mem[16 : 16+size]; binary.LittleEndian.Uint64(b) != 1<<40 || b[8] != 2 || b[9] != 1 || b[10] != 1 || b[size-1] != 0xff {
		t.Errorf("the struct lies as %x", b)
	}
	if f.mem[16+size] != 0 || f.mem[15] != 0 {
		t.Error("more than the struct was written")
	}
	if n, err := xdpfab.ReadStruct[[2]uint32](ctx(t), p, r, 16); n != [2]uint32{0, 1 << 8} || err != nil {
		t.Errorf("as an array: %v, %v", n, err)
	}
	last := r.Size - size
	if err := xdpfab.WriteStruct(ctx(t), p, r, last, want); err != nil {
		t.Errorf("at the end: %v", err)
	}
	if err := xdpfab.WriteStruct(ctx(t), p, r, last+1, want); !errors.Is(err, xdpfab.ErrOutOfBounds) {
		t.Errorf("beyond the end: %v", err)
	}
	if _, err := xdpfab.ReadStruct[record](ctx(t), p, r, last+1); !errors.Is(err, xdpfab.ErrOutOfBounds) {
		t.Errorf("from beyond the end: %v", err)
	}
}

// What has no fixed size is refused before anything is sent.
func TestStructRefused(t *testing.T) {
	refused := func(name string, err error) {
		t.Helper()
		if !errors.Is(err, xdpfab.ErrNotImplemented) {
			t.Errorf("%s: %v", name, err)
		}
	}
	var r xdpfab.RemoteRegion
	_, err := xdpfab.ReadStruct[struct{ N int }](ctx(t), nil, r, 0)
	refused("an int", err)
	_, err = xdpfab.ReadStruct[struct{ P *uint64 }](ctx(t), nil, r, 0)
	refused("a pointer in a struct", err)
	_, err = xdpfab.ReadStruct[*record](ctx(t), nil, r, 0)
	refused("a pointer", err)
	_, err = xdpfab.ReadStruct[[]uint64](ctx(t), nil, r, 0)
	refused("a slice", err)
	_, err = xdpfab.ReadStruct[[2]struct{ n uint64 }](ctx(t), nil, r, 0)
	refused("a field that is not exported", err)
	refused("a string", xdpfab.WriteStruct(ctx(t), nil, r, 0, "text"))
	refused("a full slice", xdpfab.WriteStruct(ctx(t), nil, r, 0, []uint64{1}))
	refused("a pointer to write", xdpfab.WriteStruct(ctx(t), nil, r, 0, &record{}))
	refused("nothing", xdpfab.WriteStruct[any](ctx(t), nil, r, 0, nil))
	refused("an interface", xdpfab.WriteStruct[any](ctx(t), nil, r, 0, record{}))
}

// The error of a struct that cannot be copied names the field, and what is wanted.
func TestStructFieldIsNamed(t *testing.T) {
	var r xdpfab.RemoteRegion
	type inner struct {
		A uint8
		B []byte
	}
	for want, err := range map[string]error{
		"field N is of kind int, whose size is that of the machine: want one of a fixed size, such as int64": xdpfab.WriteStruct(
			ctx(t), nil, r, 0, struct{ N int }{}),
		"field Parts.B is of kind slice, which lies elsewhere in memory: want numbers, bools, arrays and structs": xdpfab.WriteStruct(
			ctx(t), nil, r, 0, struct {
				X     uint64
				Parts [2]inner
			}{}),
		"field n is not exported: begin its name with a capital": xdpfab.WriteStruct(ctx(t), nil, r, 0, struct{ n uint64 }{}),
		"it is of kind string, which lies elsewhere in memory: want numbers, bools, arrays and structs": xdpfab.WriteStruct(ctx(t),
			nil, r, 0, "text"),
	} {
		checkText(t, "struct", err, ": "+want, xdpfab.ErrNotImplemented, xdpfab.ErrNotExecuted)
	}
}
