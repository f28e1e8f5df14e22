// SPDX-License-Identifier: Apache-2.0

package xdpfab_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/xdpfab/xdpfab/xdpfab"
)

type meters int16

func TestBytes(t *testing.T) {
	for _, tt := range []struct{ got, want []byte }{
		{xdpfab.Bytes[uint64](), nil},
		{xdpfab.Bytes[uint32](2, 3), []byte{2, 0, 0, 0, 3, 0, 0, 0}},
		{xdpfab.Bytes[meters](-2, 0x102), []byte{0xfe, 0xff, 2, 1}},
		{xdpfab.Bytes(1.0), []byte{0, 0, 0, 0, 0, 0, 0xf0, 0x3f}},
		{xdpfab.AppendBytes([]byte{9}, int8(-1)), []byte{9, 0xff}},
	} {
		if !bytes.Equal(tt.got, tt.want) {
			t.Errorf("%v, want %v", tt.got, tt.want)
		}
	}
	want := []meters{-2, 0x102}
	buf := append(xdpfab.Bytes(want...), 1) // and half an element
	if got := xdpfab.Values[meters](buf); !slices.Equal(got, want) {
		t.Errorf("values %v, want %v", got, want)
	}
	got := []meters{7, 7, 7}
	if n := xdpfab.ReadBytes(buf, got); n != 2 || !slices.Equal(got, []meters{-2, 0x102, 7}) {
		t.Errorf("read %d, %v", n, got)
	}
	if n := xdpfab.ReadBytes(buf, got[:1]); n != 1 {
		t.Errorf("read %d elements into room for one", n)
	}
}
