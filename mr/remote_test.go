// SPDX-License-Identifier: Apache-2.0

package mr

import (
	"encoding"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
)

var (
	_ encoding.BinaryMarshaler   = RemoteRegion{}
	_ encoding.BinaryUnmarshaler = (*RemoteRegion)(nil)
)

// A description survives the way, and that of a region has what peers need.
func TestRemoteRegion(t *testing.T) {
	m, err := Alloc(4096, AllocOptions{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := NewTable().Register(m, Options{Name: "hits", Access: RemoteRead, Virtual: true})
	if err != nil {
		t.Fatal(err)
	}
	own := r.Remote()
	if own.Name != "hits" || own.Key != r.Key() || own.Size != 4096 || own.Base != r.Base() || own.Base == 0 ||
		own.Access != RemoteRead || own.Incarnation != r.Incarnation() || own.Incarnation == 0 {
		t.Errorf("%+v of %v", own, r)
	}
	long := RemoteRegion{Name: strings.Repeat("n", MaxName), Key: math.MaxUint64, Size: 1, Base: math.MaxUint64 - 1,
		Access: allAccess, Incarnation: math.MaxUint32}
	for _, r := range []RemoteRegion{{}, {Key: 7}, own, long} {
		b, err := r.MarshalBinary()
		if err != nil || len(b) > 96 {
			t.Fatalf("%+v: %d bytes, %v", r, len(b), err)
		}
		var got RemoteRegion
		if err := got.UnmarshalBinary(b); err != nil || got != r {
			t.Errorf("%+v, %v, want %+v", got, err, r)
		}
		clear(b)
		if got != r {
			t.Error("the description holds on to the bytes")
		}
	}
}

// What describes no region is refused on both ways, and changes nothing.
func TestRemoteRegionRefused(t *testing.T) {
	good, err := RemoteRegion{Name: "hits", Key: 7, Size: 64}.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	with := func(at int, with ...byte) []byte {
		return append(append(slices.Clone(good[:at]), with...), good[min(at+len(with), len(good)):]...)
	}
	full := slices.Repeat([]byte{0xff}, 8)
	for name, b := range map[string][]byte{
		"nothing": nil, "a mark": good[:3], "a short head": good[:remoteHead-1], "another mark": with(0, 'y'),
		"another version": with(2, '9'), "rights": with(3, 4), "beyond the address space": with(24, full...),
		"a long name": append(slices.Clone(good), make([]byte, MaxName)...),
	} {
		was := RemoteRegion{Key: 1}
		got := was
		if err := got.UnmarshalBinary(b); !errors.Is(err, ErrRemoteRegion) || got != was {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	for _, r := range []RemoteRegion{{Name: strings.Repeat("n", MaxName+1)}, {Access: 8}, {Base: 2, Size: math.MaxUint64 - 1}} {
		if b, err := r.MarshalBinary(); !errors.Is(err, ErrRemoteRegion) {
			t.Errorf("%+v: %d bytes, %v", r, len(b), err)
		}
	}
}

// Whatever is read is written as it was, and nothing panics.
func FuzzRemoteRegion(f *testing.F) {
	b, _ := RemoteRegion{Name: "hits", Key: 7, Size: 64, Access: allAccess}.MarshalBinary()
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		var r RemoteRegion
		if r.UnmarshalBinary(b) != nil {
			return
		}
		if again, err := r.MarshalBinary(); err != nil || string(again) != string(b) {
			t.Errorf("%x became %x, %v", b, again, err)
		}
	})
}
