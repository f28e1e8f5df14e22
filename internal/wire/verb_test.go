// SPDX-License-Identifier: Apache-2.0

package wire

import "testing"

func TestVerbs(t *testing.T) {
	type facts struct {
		atomic   bool
		transfer bool
		returns  bool   // what it finds in memory
		elements uint32 // of an operation on 5
		result   int    // bytes, of 5 elements of uint64
		operands int    // arrays, of a sum
	}
	known := map[Verb]facts{
		VerbAtomic:       {true, false, false, 5, 0, 1},
		VerbFetch:        {true, false, true, 5, 40, 1},
		VerbCompare:      {true, false, true, 5, 40, 2},
		VerbWait:         {false, false, false, 1, TicketLen, 1},
		VerbRead:         {false, true, true, 5, 40, 1},
		VerbWrite:        {false, true, false, 5, 0, 1},
		VerbSignal:       {false, true, false, 5, 0, 1},
		VerbSend:         {false, false, false, 5, 0, 1},
		VerbTagged:       {false, false, false, 5, 0, 1},
		VerbPart:         {false, false, false, 5, 0, 1},
		VerbTaggedAtomic: {false, false, false, 5, 0, 1}, VerbTaggedFetch: {false, false, true, 5, 40, 1}, VerbTaggedCompare: {false, false, true, 5, 40, 2},
		VerbLookup: {false, false, false, 1, EntryLen, 1},
		VerbList:   {false, false, false, 1, EntryLen, 1},
		VerbNotice: {false, false, false, 1, 0, 1},
	}
	for n := range 256 {
		v := Verb(n)
		want, ok := known[v]
		if !ok {
			want = facts{false, false, false, 1, 0, 1}
		}
		got := facts{v.Atomic(), v.Transfer(), v.Returns(), uint32(v.Elements(5)), v.ResultLen(dtUint64, 5), v.operands(opSum)}
		if got != want {
			t.Errorf("%v (%#x): %+v, want %+v", v, n, got, want)
		}
		if v.Array() != (want.atomic || want.transfer) || v.Elements(0) != 1 {
			t.Errorf("%v: of an array: %t, %d units of no elements, want one", v, v.Array(), v.Elements(0))
		}
		if v.operands(OpRead) != want.operands-1 {
			t.Errorf("%v: %d operands of a read, want one less than of a sum", v, v.operands(OpRead))
		}
		var r RecordReader
		r.Reset(append([]byte{byte(v), 1, 0, 0}, make([]byte, 100)...), 1)
		refused := ReasonBadVerb
		if n >= 0x10 && n <= 0x4f {
			refused = ReasonReservedVerb
		}
		if r.Next(new(Record)); (r.Reason() == refused) == (ok && !v.Message()) {
			t.Errorf("%v (%#x): known is %v, the reader says %v", v, n, ok, r.Reason())
		}
	}
	if got := VerbCompare.String() + Verb(9).String() + VerbLocal.String(); got != "compareverb(9)verb(240)" {
		t.Error(got)
	}
}
