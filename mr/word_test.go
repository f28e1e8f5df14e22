// SPDX-License-Identifier: Apache-2.0

package mr

import (
	"encoding/binary"
	"errors"
	"strings"
	"testing"
)

func TestWords(t *testing.T) {
	m, err := Alloc(4096, AllocOptions{})
	if err != nil {
		t.Fatal(err)
	}
	r := register(t, NewTable(), m, Options{Offset: 64, Length: 32})
	u64, err1 := r.Uint64(3)
	i64, err2 := r.Int64(0)
	u32, err3 := r.Uint32(2)
	i32, err4 := r.Int32(3)
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		t.Fatal(err)
	}
	u64.Store(1<<63 + 5)
	i64.Add(-2)
	u32.Store(7)
	i32.Store(-7)
	le, b := binary.LittleEndian, m.Bytes()[64:]
	if le.Uint64(b[24:]) != 1<<63+5 || int64(le.Uint64(b)) != -2 || le.Uint32(b[8:]) != 7 || int32(le.Uint32(b[12:])) != -7 {
		t.Errorf("memory %x", b[:32])
	}
	for _, i := range []int{-1, 4, 1 << 62} {
		if w, err := r.Uint64(i); w != nil || !errors.Is(err, ErrOutOfBounds) {
			t.Errorf("word %d: %v, %v", i, w, err)
		}
	}
	if _, err := r.Int32(8); !errors.Is(err, ErrOutOfBounds) || !strings.HasSuffix(err.Error(), "want an index of 0 or more, and less than that") {
		t.Errorf("word 8 of 8: %v", err)
	}
	odd := register(t, NewTable(), m, Options{Offset: 4})
	if _, err := odd.Int64(0); !errors.Is(err, ErrMisaligned) {
		t.Errorf("eight bytes at offset 4: %v", err)
	}
	if _, err := odd.Uint32(0); err != nil {
		t.Errorf("four bytes at offset 4: %v", err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Uint64(0); !errors.Is(err, ErrClosed) || strings.Count(err.Error(), "closed") != 1 {
		t.Errorf("closed: %v, want it said once", err)
	}
}
