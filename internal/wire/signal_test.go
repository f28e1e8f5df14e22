// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"encoding/hex"
	"os/exec"
	"path/filepath"
	"testing"
)

// goldenSignals are writes with a signal, and the operations of xdpfab's own range.
func goldenSignals(t *testing.T) []golden {
	const key, inc = 0x8877665544332211, 0x5a5b5c5d
	const sumAtMost, sumSat, diffSat, msum = 32, 34, 35, 36
	signal := func(s Signal) []byte {
		b := make([]byte, SignalLen)
		s.Put(b)
		return b
	}
	own := Record{Verb: VerbSignal, Op: OpWrite, Datatype: Byte, Key: key, Offset: 64, Count: 11, Total: 11, Operand: pattern(11),
		Compare: signal(Signal{Key: key, Offset: 8, Operand: 1, Op: opSum, Datatype: dtUint64})}
	part, alone, last := own, own, own
	part.Incarnation, part.Offset, part.Count, part.Total, part.Operand = inc, 1<<33+5, 19, 1<<20, pattern(19)
	part.Compare = signal(Signal{Key: 3, Offset: 1 << 40, Operand: v64, Incarnation: inc + 1, Op: OpWrite, Datatype: dtUint64})
	alone.Offset, alone.Count, alone.Total, alone.Operand = 4096, 0, 0, nil
	alone.Compare = signal(Signal{Key: 3, Offset: 5, Operand: 0x7f, Op: opSum, Datatype: dtUint8})
	last.Offset, last.Count, last.Total, last.Operand = 72, 8, 8, word
	add := Record{Verb: VerbFetch, Op: opSum, Datatype: dtUint64, Key: key, Offset: 64, Operand: word}
	bound := Record{Verb: VerbCompare, Op: sumAtMost, Datatype: dtUint64, Key: key, Offset: 64, Operand: word, Compare: bytes.Repeat([]byte{0x7f}, 8)}
	bound2, fields, saturates, falls := bound, bound, add, add
	bound2.Offset = 72
	fields.Op, fields.Count, fields.Operand, fields.Compare = msum, 2, pattern(16), bytes.Repeat([]byte{0x80}, 16)
	saturates.Op, saturates.Datatype, saturates.Count, saturates.Operand = sumSat, dtUint8, 3, pattern(3)
	falls.Verb, falls.Op = VerbAtomic, diffSat
	return []golden{
		request(t, "request-signal", "request: remote write of 11 bytes, padded; the signal adds 1 to a word of the same region", own),
		request(t, "request-signal-part", "request: the first 19 bytes of 1 MiB, and the signal of all, which sets a word of another region", part),
		request(t, "request-signal-alone", "request: a signal behind a write of no bytes adds to a uint8", alone),
		request(t, "request-signal-mixed", "request: a write with a signal in another region, fetch-add, write with a signal: the key of the writes is given once",
			with(own, alone.Compare), add, last),
		request(t, "request-bounded", "request: a run of two sums with the same bound, one of fields, a saturating sum of three uint8, a saturating difference",
			bound, bound2, fields, saturates, falls),
	}
}

// TestSignalFramesOfC: a program in C that follows the document makes the same frames.
func TestSignalFramesOfC(t *testing.T) {
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skipf("needs a C compiler: %v", err)
	}
	program := filepath.Join(t.TempDir(), "signal")
	if out, err := exec.Command(cc, "-O1", "-Wall", "-Werror", "-o", program, "testdata/signal.c").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	said, err := exec.Command(program).Output()
	if err != nil {
		t.Fatal(err)
	}
	want := ""
	for _, g := range goldenSignals(t) {
		want += g.name + ": " + hex.EncodeToString(g.bytes) + "\n"
	}
	if string(said) != want {
		t.Errorf("the program in C says\n%swant\n%s", said, want)
	}
}

// with is a write with another signal.
func with(rec Record, signal []byte) Record {
	rec.Compare = signal
	return rec
}

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
