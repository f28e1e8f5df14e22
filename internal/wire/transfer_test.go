// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func goldenTransfers(t *testing.T) []golden {
	const key, inc = 0x8877665544332211, 0x5a5b5c5d
	read := Record{Verb: VerbRead, Op: OpRead, Datatype: Byte, Key: key, Offset: 64, Count: 1000, Total: 1000}
	write := Record{Verb: VerbWrite, Op: OpWrite, Datatype: Byte, Key: key, Offset: 64, Count: 11, Total: 11, Operand: pattern(11)}
	part, empty, far := write, write, read
	part.Incarnation, part.Offset, part.Count, part.Total, part.Operand = inc, 1<<33+5, 19, 1<<30, pattern(19)
	empty.Offset, empty.Count, empty.Total, empty.Operand = 4096, 0, 0, nil
	far.Offset, far.Count, far.Total = 1<<33, 1, 1
	add := Record{Verb: VerbFetch, Op: opSum, Datatype: dtUint64, Key: key, Offset: 64, Operand: word}
	return []golden{
		request(t, "request-remote-read", "request: remote read of 1000 bytes", read),
		request(t, "request-remote-write", "request: remote write of 11 bytes, padded", write),
		request(t, "request-remote-write-part", "request: remote write, the first 19 bytes of 1 GiB, which end at a word", part),
		request(t, "request-remote-empty", "request: remote write of no bytes, and read of one byte far into the region", empty, far),
		request(t, "request-remote-mixed", "request: remote write, fetch-add, remote read of one region; the key is given once", write, add, read),
		noticed(t, "request-remote-notice", "request: remote write of 11 bytes, and a notice of it",
			Notice{Data: 0x1122334455667788, Length: 11, Covers: 1, Source: 258, Transfer: true}, write),
	}
}

// TestDocOfTransfers builds remote reads and writes as the document says.
func TestDocOfTransfers(t *testing.T) {
	rows := table(t, "Read and write have the form of an atomic verb")
	if len(rows) != 3 {
		t.Fatalf("%d rows, want one for read and two for writes", len(rows))
	}
	var signal [SignalLen]byte
	(&Signal{Key: v64, Offset: v64, Operand: v64, Incarnation: v32, Op: opSum, Datatype: dtUint64}).Put(signal[:])
	for i, rec := range []Record{
		{Verb: VerbRead, Op: OpRead, Datatype: Byte, Key: v64, Offset: v32, Count: 5},
		{Verb: VerbWrite, Op: OpWrite, Datatype: Byte, Key: v64, Offset: v32, Count: 5, Operand: pattern(5)},
		{Verb: VerbSignal, Op: OpWrite, Datatype: Byte, Key: v64, Offset: v32, Count: 5, Operand: pattern(5), Compare: signal[:]},
	} {
		row := rows[i]
		want := []byte{byte(number(t, row[0], 16)), byte(number(t, row[1], 10)), byte(number(t, row[2], 10)), RecordKey | RecordCount}
		want = slices.Concat(want, le(v64, 8), le(v32, 4), le(5, 4))
		if strings.HasPrefix(row[3], "operand") {
			want = append(append(want, rec.Operand...), 0, 0, 0)
		}
		if strings.HasSuffix(row[3], "signal") {
			want = slices.Concat(want, le(v64, 8), le(v64, 8), le(v64, 8), le(v32, 4), []byte{opSum, dtUint64, 0, 0})
		}
		var w RecordWriter
		b := make([]byte, 128)
		w.Reset(b, 128)
		if !w.Append(&rec) || !bytes.Equal(b[:w.Len()], want) {
			t.Errorf("%v: encoded as\n% x, the document says\n% x", rec.Verb, b[:w.Len()], want)
		}
		if returns := row[4] == "the bytes"; rec.Verb.Returns() != returns {
			t.Errorf("%v returns a value: %t, the document says %t", rec.Verb, rec.Verb.Returns(), returns)
		}
	}
}

func TestTransfersRefused(t *testing.T) {
	tests := []struct {
		name    string
		payload []byte
		want    Reason
	}{
		{"write", raw(VerbWrite, OpWrite, Byte, RecordKey, 7, 0, 64, 1), ReasonOK},
		{"read", raw(VerbRead, OpRead, Byte, RecordKey|RecordCount, 7, 0, 64, 999), ReasonOK},
		{"nothing", raw(VerbWrite, OpWrite, Byte, RecordKey|RecordCount, 7, 0, 64, 0), ReasonOK},
		{"nothing, twice", raw(VerbRead, OpRead, Byte, RecordKey|RecordCount|RecordTotal, 7, 0, 64, 0, 0), ReasonOK},
		{"nothing of something", raw(VerbRead, OpRead, Byte, RecordKey|RecordCount|RecordTotal, 7, 0, 64, 0, 1), ReasonBadCount},
		{"total below count", raw(VerbRead, OpRead, Byte, RecordKey|RecordCount|RecordTotal, 7, 0, 64, 2, 1), ReasonBadCount},
		{"operation of the other", raw(VerbRead, OpWrite, Byte, RecordKey, 7, 0, 64, 1), ReasonBadPayload},
		{"operation of a sum", raw(VerbWrite, opSum, Byte, RecordKey, 7, 0, 64, 1), ReasonBadPayload},
		{"words", raw(VerbWrite, OpWrite, dtUint64, RecordKey, 7, 0, 64, 1, 1), ReasonBadDatatype},
		{"no key", raw(VerbRead, OpRead, Byte, 0, 64, 1), ReasonNoKey},
		{"run", raw(VerbRead, OpRead, Byte, RecordKey|RecordRun|RecordShared, 7, 0, 1, 64), ReasonBadFlags},
		{"options", raw(VerbRead, OpRead, Byte, RecordKey|1<<7, 7, 0, 64), ReasonBadFlags},
		{"padding", raw(VerbWrite, OpWrite, Byte, RecordKey, 7, 0, 64, 0x100), ReasonBadPadding},
		{"cut", raw(VerbWrite, OpWrite, Byte, RecordKey|RecordCount, 7, 0, 64, 5, 1), ReasonTruncated},
	}
	for _, tt := range tests {
		if got := Validate(tt.payload, 1); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
	for name, rec := range map[string]Record{
		"operation":            {Verb: VerbRead, Op: OpWrite, Datatype: Byte, Count: 1},
		"datatype":             {Verb: VerbWrite, Op: OpWrite, Datatype: dtUint64, Count: 1, Operand: word},
		"nothing of something": {Verb: VerbRead, Op: OpRead, Datatype: Byte, Total: 1},
		"operand":              {Verb: VerbWrite, Op: OpWrite, Datatype: Byte, Count: 2, Operand: word[:1]},
	} {
		var w RecordWriter
		w.Reset(make([]byte, 300), 300)
		if w.Append(&rec) || w.Len() != 0 {
			t.Errorf("%s: written", name)
		}
	}
}

// The reader tells which features the records of a frame belong to.
func TestFeaturesOfRecords(t *testing.T) {
	add := Record{Verb: VerbAtomic, Op: opSum, Datatype: dtUint64, Operand: word}
	read := Record{Verb: VerbRead, Op: OpRead, Datatype: Byte, Count: 9}
	for _, c := range []struct {
		records []Record
		notice  bool
		want    Features
	}{
		{[]Record{add, add}, false, 0},
		{[]Record{add, read, add}, false, FeatureMemory},
		{[]Record{add}, true, FeatureNotices},
		{[]Record{read}, true, FeatureMemory | FeatureNotices},
		{nil, true, FeatureMemory | FeatureNotices}, // of a transfer whose records came before
	} {
		var w RecordWriter
		w.Reset(make([]byte, 300), 300)
		for i := range c.records {
			w.Append(&c.records[i])
		}
		if c.notice {
			w.Notice(&Notice{Transfer: c.want&FeatureMemory != 0})
		}
		var r RecordReader
		r.Reset(w.buf[:w.Len()], w.Ops())
		if uses, reason := r.Rest(); uses != c.want || reason != ReasonOK {
			t.Errorf("%+v: %#x, %v; want %#x", c, uses, reason, c.want)
		}
		r.Next(new(Record))
		if uses, _ := r.Rest(); uses != c.want {
			t.Errorf("%+v: %#x behind the first record, want %#x", c, uses, c.want)
		}
	}
}

// TestFitKeepsWords divides transfers: each part but the last ends where a word of 8
// bytes ends, and a part is as long as that allows.
func TestFitKeepsWords(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	for range 300 {
		verb := []Verb{VerbRead, VerbWrite}[rng.IntN(2)]
		rec := Record{Verb: verb, Op: opOf(verb), Datatype: Byte, Key: 1, Offset: rng.Uint64N(1<<33 + 100)}
		room := MinMTU - HeaderLen + rng.IntN(300)
		for left := uint32(1 + rng.IntN(3000)); left > 0; {
			var w RecordWriter
			w.Reset(make([]byte, room), room)
			rec.Count, rec.Total = left, left
			n := w.Fit(&rec)
			if n == 0 || n > left || n < left && (rec.Offset+uint64(n))%8 != 0 {
				t.Fatalf("%d of %d bytes at %#x: want the rest, or a part that ends at a multiple of 8", n, left, rec.Offset)
			}
			if n < left && appendCount(&w, rec, n+8) {
				t.Fatalf("%d of %d bytes at %#x, but another word fits", n, left, rec.Offset)
			}
			rec.Offset += uint64(n)
			left -= n
		}
	}
}
