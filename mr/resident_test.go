// SPDX-License-Identifier: Apache-2.0

package mr

import (
	"errors"
	"testing"
)

// Whoever else has the key of a region loses it while nobody can have it again, and once.
func TestWithdrawing(t *testing.T) {
	freed := 0
	m, err := Resident(make([]byte, 64), func() error { freed++; return nil })
	if err != nil || m.Kind() != KindResident || m.Kind().String() != "resident" || m.FD() != -1 {
		t.Fatalf("%v, %+v", err, m)
	}
	table, key, told := NewTable(), uint64(7), 0
	r, err := table.Register(m, Options{Key: &key, Withdrawing: func() {
		told++
		if _, err := table.Register(m, Options{Key: &key}); !errors.Is(err, ErrKeyInUse) {
			t.Errorf("the key is free: %v", err)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Close(); !errors.Is(err, ErrInUse) || freed != 0 {
		t.Errorf("closing memory in use: %v", err)
	}
	if err := errors.Join(r.Close(), r.Close(), m.Close(), m.Close()); err != nil || told != 1 || freed != 1 {
		t.Errorf("%v; told %d times, freed %d times", err, told, freed)
	}
	if _, err := Resident(nil, nil); !errors.Is(err, ErrSize) {
		t.Errorf("no memory: %v", err)
	}
}
