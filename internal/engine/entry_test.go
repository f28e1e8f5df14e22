// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"reflect"
	"testing"
)

// field is where one lies, as the comment on the type says.
type field struct {
	name         string
	offset, size uintptr
}

// The layouts are those that the comments give, and hold no pointer: other processes and
// other languages write and read them.
func TestLayouts(t *testing.T) {
	checkLayout(t, reflect.TypeFor[Entry](), 128, []field{
		{"Cookie", 0, 8}, {"Key", 8, 8}, {"Offset", 16, 8}, {"Data", 24, 8}, {"Count", 32, 4}, {"Incarnation", 36, 4},
		{"Peer", 40, 4}, {"Verb", 44, 1}, {"Opcode", 45, 1}, {"Datatype", 46, 1}, {"Flags", 47, 1}, {"Inline", 48, 80},
	})
	checkLayout(t, reflect.TypeFor[Completion](), 64, []field{
		{"Cookie", 0, 8}, {"Data", 8, 8}, {"Length", 16, 8}, {"Source", 24, 4}, {"Outcome", 28, 1}, {"Status", 29, 1},
		{"Reason", 30, 1}, {"Flags", 31, 1}, {"Inline", 32, 32},
	})
}

func checkLayout(t *testing.T, of reflect.Type, size uintptr, want []field) {
	t.Helper()
	if of.Size() != size || of.NumField() != len(want) {
		t.Errorf("%v has %d bytes and %d fields, want %d and %d", of, of.Size(), of.NumField(), size, len(want))
	}
	for i, w := range want {
		f := of.Field(i)
		if got := (field{f.Name, f.Offset, f.Type.Size()}); got != w {
			t.Errorf("%v: field %+v, want %+v", of, got, w)
		}
		if k := f.Type.Kind(); k == reflect.Pointer || k == reflect.Slice || k == reflect.Interface {
			t.Errorf("%v: field %s points", of, f.Name)
		}
	}
}

// A flight is whole cache lines, of which a simple operation needs the first two: its
// state and side table, and the first half of its entry.
func TestFlightLayout(t *testing.T) {
	of := reflect.TypeFor[flight]()
	if n := of.Size(); n%64 != 0 {
		t.Errorf("a flight has %d bytes, want a multiple of 64", n)
	}
	outer, _ := of.FieldByName("Submission")
	inner, _ := outer.Type.FieldByName("Entry")
	if at := outer.Offset + inner.Offset; at != 64 {
		t.Errorf("the entry of a flight lies at %d, want 64", at)
	}
}
