// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"testing"
)

// A write with a signal says what it says, in one record or in parts that fit, and
// anything else is refused.
func TestSignalRecords(t *testing.T) {
	s := Signal{Key: v64, Offset: 1 << 40, Operand: v64 + 1, Incarnation: 7, Op: opSum, Datatype: dtUint64}
	var tail [SignalLen]byte
	s.Put(tail[:])
	if got := SignalAt(tail[:]); got != s {
		t.Errorf("%+v, want %+v", got, s)
	}
	for _, n := range []int{0, 1, 8, 9, 300, 4000} {
		data := pattern(n)
		for done := 0; done < max(n, 1); {
			payload := make([]byte, 1400)
			var w RecordWriter
			w.Reset(payload, len(payload))
			rec := Record{Verb: VerbSignal, Op: OpWrite, Datatype: Byte, Key: 5, Offset: uint64(done), Count: uint32(n - done),
				Total: uint32(n - done), Compare: tail[:]}
			if n > 0 {
				rec.Count = w.Fit(&rec)
			}
			rec.Operand = data[done : done+int(rec.Count)]
			if !w.Append(&rec) {
				t.Fatalf("%d of %d bytes: no room", rec.Count, n)
			}
			var r RecordReader
			r.Reset(payload[:w.Len()], 1)
			if uses, reason := r.Rest(); reason != ReasonOK || uses != FeatureMemory|FeatureSignals {
				t.Fatalf("%d bytes: %v, uses %v", n, reason, uses.Names())
			}
			var got Record
			if !r.Next(&got) || !bytes.Equal(got.Operand, rec.Operand) || SignalAt(got.Compare) != s ||
				got.Count != rec.Count || got.Total != rec.Total || got.Offset != rec.Offset {
				t.Fatalf("%d of %d bytes: %+v", rec.Count, n, got)
			}
			if cut := Validate(payload[:w.Len()-4], 1); cut == ReasonOK {
				t.Errorf("%d bytes: accepted without its end", n)
			}
			payload[w.Len()-1] = 1
			if Validate(payload[:w.Len()], 1) != ReasonBadPadding {
				t.Errorf("%d bytes: reserved bytes are not looked at", n)
			}
			done += max(int(rec.Count), 1)
		}
	}
	var w RecordWriter
	w.Reset(make([]byte, 100), 100)
	if w.Append(&Record{Verb: VerbSignal, Op: OpWrite, Datatype: Byte, Key: 5, Count: 1, Operand: []byte{1}}) {
		t.Error("written without a signal")
	}
}
