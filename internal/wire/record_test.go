// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"
)

// Datatypes and operations that the tests need by name.
const (
	dtUint8             = 1
	dtInt16             = 2
	dtUint64            = 7
	dtLongDoubleComplex = 13
	opSum               = 2
	opCswap             = 12
)

var word = []byte{1, 2, 3, 4, 5, 6, 7, 8}

// pattern returns n bytes, none of them zero.
func pattern(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i%255 + 1)
	}
	return b
}

// randomRecord draws a record that the encoder accepts.
func randomRecord(rng *rand.Rand) Record {
	verbs := []Verb{VerbAtomic, VerbFetch, VerbCompare, VerbAtomic, VerbFetch, VerbCompare, VerbRead, VerbWrite, VerbLookup, VerbList}
	rec := Record{Verb: verbs[rng.IntN(len(verbs))]}
	switch rec.Verb {
	case VerbLookup:
		rec.Name = pattern(1 + rng.IntN(MaxNameLen))
		return rec
	case VerbList:
		rec.Ordinal = rng.Uint32()
		return rec
	}
	rec.Op, rec.Datatype = uint8(rng.IntN(40)), uint8(rng.IntN(NumDatatypes))
	rec.Key, rec.Incarnation = rng.Uint64N(2), rng.Uint32N(3)*rng.Uint32N(2)
	rec.Offset = rng.Uint64() >> rng.IntN(64)
	rec.Count = 1 + uint32(rng.IntN(4))
	rec.Total = rec.Count + uint32(rng.IntN(2)*rng.IntN(1000))
	if rec.Verb.Transfer() {
		rec.Op, rec.Datatype = opOf(rec.Verb), Byte
		if rng.IntN(4) == 0 {
			rec.Count, rec.Total = 0, 0
		}
	}
	n := int(rec.Count) * ElemSize(rec.Datatype)
	if rec.Op != OpRead {
		rec.Operand = pattern(n)
	}
	if rec.Verb == VerbCompare {
		rec.Compare = pattern(n)
	}
	return rec
}

// similar draws a record that could be in a run with rec, more often than not.
func similar(rng *rand.Rand, rec Record) Record {
	rec.Count, rec.Total = 1, 1
	rec.Offset = uint64(rng.Uint32())
	size := ElemSize(rec.Datatype)
	draw := func(b []byte) []byte {
		if b = bytes.Clone(b[:min(size, len(b))]); len(b) > 0 && rng.IntN(4) == 0 {
			b[rng.IntN(len(b))] = byte(rng.IntN(3))
		}
		return b
	}
	rec.Operand, rec.Compare = draw(rec.Operand), draw(rec.Compare)
	if !rec.Verb.Atomic() {
		return randomRecord(rng)
	}
	return rec
}

// sameRecord compares everything but the flags, which are the encoder's choice.
func sameRecord(a, b *Record) bool {
	return a.Verb == b.Verb && a.Op == b.Op && a.Datatype == b.Datatype && a.Key == b.Key && a.Incarnation == b.Incarnation && a.Offset == b.Offset &&
		a.Count == b.Count && a.Total == b.Total && a.Ordinal == b.Ordinal && bytes.Equal(a.Operand, b.Operand) &&
		bytes.Equal(a.Compare, b.Compare) && bytes.Equal(a.Name, b.Name)
}

// decode reads all records; the payload must be well formed.
func decode(t *testing.T, payload []byte, ops int) (recs []Record) {
	t.Helper()
	var r RecordReader
	r.Reset(payload, ops)
	for {
		var rec Record
		if !r.Next(&rec) {
			break
		}
		for i := range rec.Ops() {
			rec.Element(i)
			recs = append(recs, rec)
		}
	}
	if r.Reason() != ReasonOK || len(recs) != ops {
		t.Fatalf("decoded %d of %d records: %v\n% x", len(recs), ops, r.Reason(), payload)
	}
	return recs
}

func TestRecordsRoundTrip(t *testing.T) {
	for seed := range uint64(500) {
		rng := rand.New(rand.NewPCG(seed, 0))
		buf := bytes.Repeat([]byte{0xee}, 64+rng.IntN(1400))
		var (
			w    RecordWriter
			sent []Record
		)
		w.Reset(buf, 1<<20)
		for {
			rec := randomRecord(rng)
			for n := rng.IntN(3) * rng.IntN(20); n >= 0 && w.Append(&rec); n-- {
				sent = append(sent, rec)
				rec = similar(rng, rec)
			}
			if rng.IntN(50) == 0 {
				break
			}
		}
		if w.Ops() != len(sent) {
			t.Fatalf("seed %d: Ops %d, want %d", seed, w.Ops(), len(sent))
		}
		got := decode(t, buf[:w.Len()], w.Ops())
		for i := range sent {
			if !sameRecord(&got[i], &sent[i]) {
				t.Fatalf("seed %d, record %d: %+v, want %+v", seed, i, got[i], sent[i])
			}
		}
		if !bytes.Equal(buf[w.Len():], bytes.Repeat([]byte{0xee}, len(buf)-w.Len())) {
			t.Fatalf("seed %d: bytes written past Len", seed)
		}
	}
}

func TestRecordLengths(t *testing.T) {
	add := Record{Verb: VerbFetch, Op: opSum, Datatype: dtUint64, Key: 7, Offset: 8, Operand: word}
	with := func(f func(*Record)) Record { r := add; f(&r); return r }
	tests := []struct {
		name string
		rec  Record
		want int
	}{
		{"first fetch-add", add, 24},
		{"second fetch-add", with(func(r *Record) { r.Offset = 16 }), 8},
		{"third fetch-add", with(func(r *Record) { r.Offset = 24 }), 4},
		{"with another operand", with(func(r *Record) { r.Operand = pattern(9)[1:] }), 16},
		{"and another", add, 16},
		{"and another still", with(func(r *Record) { r.Operand = pattern(9)[1:] }), 12},
		{"other key", with(func(r *Record) { r.Key = 8 }), 24},
		{"far offset", with(func(r *Record) { r.Key, r.Offset = 8, 1<<32 }), 20},
		{"two elements", with(func(r *Record) { r.Key, r.Count, r.Operand = 8, 2, pattern(16) }), 28},
		{"segment", with(func(r *Record) { r.Key, r.Total = 8, 9 }), 20},
		{"compare", with(func(r *Record) { r.Key, r.Verb, r.Op, r.Compare = 8, VerbCompare, opCswap, word }), 24},
		{"byte", with(func(r *Record) { r.Key, r.Datatype, r.Operand = 8, dtUint8, word[:1] }), 12},
		{"read", with(func(r *Record) { r.Key, r.Op, r.Operand = 8, OpRead, nil }), 8},
		{"list", Record{Verb: VerbList}, 8},
		{"lookup", Record{Verb: VerbLookup, Name: []byte("hello")}, 12},
		{"key survives a lookup", with(func(r *Record) { r.Key = 8 }), 16},
	}
	var w RecordWriter
	w.Reset(make([]byte, 1400), 1400)
	for _, tt := range tests {
		before := w.Len()
		if !w.Append(&tt.rec) {
			t.Fatalf("%s: does not fit", tt.name)
		}
		if got := w.Len() - before; got != tt.want {
			t.Errorf("%s: %d bytes, want %d", tt.name, got, tt.want)
		}
	}
}

func TestWriterRefuses(t *testing.T) {
	tests := map[string]Record{
		"verb":           {Verb: 0x13},
		"verb 0":         {},
		"datatype":       {Verb: VerbAtomic, Datatype: NumDatatypes, Operand: word},
		"no operand":     {Verb: VerbAtomic, Datatype: dtUint64},
		"short operand":  {Verb: VerbAtomic, Datatype: dtUint64, Operand: word[:7]},
		"no compare":     {Verb: VerbCompare, Datatype: dtUint64, Operand: word},
		"total":          {Verb: VerbAtomic, Datatype: dtUint64, Count: 2, Total: 1, Operand: pattern(16)},
		"count":          {Verb: VerbFetch, Op: OpRead, Datatype: dtUint64, Count: 1<<32 - 1},
		"empty name":     {Verb: VerbLookup},
		"long name":      {Verb: VerbLookup, Name: pattern(MaxNameLen + 1)},
		"no room":        {Verb: VerbAtomic, Datatype: dtUint64, Count: 50, Operand: pattern(400)},
		"no answer room": {Verb: VerbFetch, Op: OpRead, Datatype: dtUint64, Count: 50},
	}
	for name, rec := range tests {
		buf := bytes.Repeat([]byte{0xee}, 300)
		var w RecordWriter
		w.Reset(buf, 300)
		if w.Append(&rec) || w.Len() != 0 || w.Ops() != 0 || Validate(nil, 0) != ReasonOK {
			t.Errorf("%s: taken", name)
		}
		good := Record{Verb: VerbAtomic, Datatype: dtUint64, Operand: word, Key: rec.Key}
		if !w.Append(&good) || w.Len() != 24 {
			t.Errorf("%s: a refused record left a trace: the next has %d bytes, want 24", name, w.Len())
		}
	}
}

// raw builds an atomic record by hand.
func raw(verb Verb, op, datatype, flags uint8, words ...uint32) []byte {
	b := []byte{byte(verb), op, datatype, flags}
	for _, v := range words {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	return b
}

func TestValidateRefuses(t *testing.T) {
	good := raw(VerbAtomic, opSum, dtUint64, RecordKey, 7, 0, 64, 1, 0)
	tests := []struct {
		name    string
		payload []byte
		ops     int
		want    Reason
	}{
		{"good", good, 1, ReasonOK},
		{"incarnation", raw(VerbAtomic, opSum, dtUint64, RecordKey|RecordIncarnation, 7, 0, 9, 64, 1, 0), 1, ReasonOK},
		{"incarnation without key", append(bytes.Clone(good), raw(VerbAtomic, opSum, dtUint64, RecordIncarnation, 9, 64, 1, 0)...), 2, ReasonBadFlags},
		{"incarnation cut off", raw(VerbAtomic, opSum, dtUint64, RecordKey|RecordIncarnation, 7, 0), 1, ReasonTruncated},
		{"total equals count", raw(VerbAtomic, opSum, dtUint64, RecordKey|RecordTotal, 7, 0, 64, 1, 1, 0), 1, ReasonOK},
		{"count 1 spelt out", raw(VerbAtomic, opSum, dtUint64, RecordKey|RecordCount, 7, 0, 64, 1, 1, 0), 1, ReasonOK},
		{"unknown op", raw(VerbAtomic, 99, dtUint64, RecordKey, 7, 0, 64, 1, 0), 1, ReasonOK},
		{"compare read", raw(VerbCompare, OpRead, dtUint64, RecordKey, 7, 0, 64, 1, 0), 1, ReasonOK},
		{"huge read", raw(VerbFetch, OpRead, dtLongDoubleComplex, RecordKey|RecordCount, 7, 0, 64, 1<<32-1), 1, ReasonOK},
		{"one missing", good, 2, ReasonTruncated},
		{"trailing", append(bytes.Clone(good), 0, 0, 0, 0), 1, ReasonTrailing},
		{"reserved verb 0x13", raw(0x13, opSum, dtUint64, RecordKey, 7, 0, 64, 1, 0), 1, ReasonReservedVerb},
		{"verb 0", raw(0, opSum, dtUint64, RecordKey, 7, 0, 64, 1, 0), 1, ReasonBadVerb},
		{"verb 5", raw(5, opSum, dtUint64, RecordKey, 7, 0, 64, 1, 0), 1, ReasonBadVerb},
		{"datatype", raw(VerbAtomic, opSum, NumDatatypes, RecordKey, 7, 0, 64, 1, 0), 1, ReasonBadDatatype},
		{"flags", raw(VerbAtomic, opSum, dtUint64, 0x81, 7, 0, 64, 1, 0), 1, ReasonBadFlags},
		{"run, shared", raw(VerbAtomic, opSum, dtUint64, 0x31, 7, 0, 2, 1, 0, 64, 72), 2, ReasonOK},
		{"run, apart", raw(VerbAtomic, opSum, dtUint64, 0x11, 7, 0, 2, 64, 1, 0, 72, 1, 0), 2, ReasonOK},
		{"run of one", raw(VerbAtomic, opSum, dtUint64, 0x31, 7, 0, 1, 1, 0, 64), 1, ReasonBadCount},
		{"run of none", raw(VerbAtomic, opSum, dtUint64, 0x31, 7, 0, 0, 1, 0), 1, ReasonBadCount},
		{"run beyond ops", raw(VerbAtomic, opSum, dtUint64, 0x31, 7, 0, 3, 1, 0, 64, 72, 80), 2, ReasonBadCount},
		{"run, enormous", raw(VerbAtomic, opSum, dtUint64, 0x31, 7, 0, 1<<32-1, 1, 0, 64, 72), 2, ReasonBadCount},
		{"run with count", raw(VerbAtomic, opSum, dtUint64, 0x35, 7, 0, 2, 1, 0, 64, 72), 2, ReasonBadFlags},
		{"shared without run", raw(VerbAtomic, opSum, dtUint64, 0x21, 7, 0, 64, 1, 0), 1, ReasonBadFlags},
		{"run of bytes", raw(VerbAtomic, opSum, dtUint8, 0x31, 7, 0, 2, 1, 64, 72), 2, ReasonBadDatatype},
		{"run without key", raw(VerbAtomic, opSum, dtUint64, 0x30, 2, 1, 0, 64, 72), 2, ReasonNoKey},
		{"run, cut", raw(VerbAtomic, opSum, dtUint64, 0x31, 7, 0, 2, 1, 0, 64), 2, ReasonTruncated},
		{"run, operands cut", raw(VerbAtomic, opSum, dtUint64, 0x31, 7, 0, 2, 1), 2, ReasonTruncated},
		{"run, key cut", raw(VerbAtomic, opSum, dtUint64, 0x31, 7, 0), 2, ReasonTruncated},
		{"run of reads", raw(VerbFetch, OpRead, dtUint64, 0x31, 7, 0, 2, 64, 72), 2, ReasonOK},
		{"no key", raw(VerbAtomic, opSum, dtUint64, 0, 64, 1, 0, 0), 1, ReasonNoKey},
		{"no key after list", append(raw(VerbList, 0, 0, 0, 1), raw(VerbAtomic, opSum, dtUint64, 0, 64, 1, 0)...), 2,
			ReasonNoKey},
		{"count 0", raw(VerbAtomic, opSum, dtUint64, RecordKey|RecordCount, 7, 0, 64, 0, 1, 0), 1, ReasonBadCount},
		{"total 0", raw(VerbAtomic, opSum, dtUint64, RecordKey|RecordTotal, 7, 0, 64, 0, 1, 0), 1, ReasonBadCount},
		{"count too large", raw(VerbAtomic, opSum, dtUint64, RecordKey|RecordCount, 7, 0, 64, 2, 1, 0), 1, ReasonTruncated},
		{"count enormous", raw(VerbAtomic, opSum, dtLongDoubleComplex, RecordKey|RecordCount, 7, 0, 64, 1<<32-1, 1), 1,
			ReasonTruncated},
		{"no compare operand", raw(VerbCompare, opCswap, dtUint64, RecordKey, 7, 0, 64, 1, 0), 1, ReasonTruncated},
		{"operand padding", raw(VerbAtomic, opSum, dtUint8, RecordKey, 7, 0, 64, 0x100), 1, ReasonBadPadding},
		{"compare padding", raw(VerbCompare, opCswap, dtInt16, RecordKey, 7, 0, 64, 1, 0x10000), 1, ReasonBadPadding},
		{"fields cut", raw(VerbAtomic, opSum, dtUint64, 15, 7, 0), 1, ReasonTruncated},
		{"list", raw(VerbList, 0, 0, 0, 1), 1, ReasonOK},
		{"list padded", raw(VerbList, 0, 0, 0, 1, 0), 1, ReasonOK},
		{"list padded with a one", raw(VerbList, 0, 0, 0, 1, 1), 1, ReasonBadPadding},
		{"list, reserved", raw(VerbList, 0, 1, 0, 1), 1, ReasonBadPadding},
		{"lookup", raw(VerbLookup, 4, 0, 0, 0x61616161), 1, ReasonOK},
		{"lookup, no name", raw(VerbLookup, 0, 0, 0, 0), 1, ReasonBadName},
		{"lookup, long name", raw(VerbLookup, 65, 0, 0, 0), 1, ReasonBadName},
		{"lookup, cut", raw(VerbLookup, 64, 0, 0, 0), 1, ReasonTruncated},
		{"lookup, reserved", raw(VerbLookup, 4, 0, 1, 0), 1, ReasonBadPadding},
		{"lookup, padding", raw(VerbLookup, 3, 0, 0, 1<<24), 1, ReasonBadPadding},
		{"empty", nil, 1, ReasonTruncated},
		{"negative", nil, -1, ReasonOK},
	}
	for _, tt := range tests {
		if got := Validate(tt.payload, tt.ops); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

// TestEveryRecordTruncation cuts a payload at every length: only the whole is valid.
func TestEveryRecordTruncation(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	buf := make([]byte, 900)
	var w RecordWriter
	w.Reset(buf, 1<<20)
	for rec := randomRecord(rng); w.Append(&rec); rec = randomRecord(rng) {
	}
	for n := range w.Len() {
		if Validate(buf[:n], w.Ops()) == ReasonOK {
			t.Fatalf("%d of %d bytes are valid", n, w.Len())
		}
	}
}

func TestRecordAllocs(t *testing.T) {
	buf := make([]byte, 1400)
	rec := Record{Verb: VerbCompare, Op: opCswap, Datatype: dtUint64, Key: 1, Operand: word, Compare: word}
	if n := testing.AllocsPerRun(100, func() { packAndWalk(buf, &rec) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// packAndWalk fills a frame with copies of rec and reads it back; it returns the number
// of records.
func packAndWalk(buf []byte, rec *Record) int {
	var (
		w   RecordWriter
		r   RecordReader
		out Record
	)
	for w.Reset(buf, len(buf)); w.Append(rec); rec.Offset += 8 {
	}
	rec.Offset = 0
	if Validate(buf[:w.Len()], w.Ops()) != ReasonOK {
		return -1
	}
	for r.Reset(buf[:w.Len()], w.Ops()); r.Next(&out); {
	}
	return w.Ops()
}

func FuzzRecords(f *testing.F) {
	rng := rand.New(rand.NewPCG(5, 6))
	for range 20 {
		buf := make([]byte, 200)
		var w RecordWriter
		w.Reset(buf, 1<<20)
		for rec := randomRecord(rng); w.Append(&rec); rec = randomRecord(rng) {
		}
		f.Add(buf[:w.Len()], uint8(w.Ops()))
		wait := waitRecord()
		w.Reset(buf, 1<<20)
		w.Append(&wait)
		f.Add(bytes.Clone(buf[:w.Len()]), uint8(w.Ops()))
		n := randomNotice(rng)
		rec := randomRecord(rng)
		w.Reset(buf, 1<<20)
		w.Append(&rec)
		w.Notice(&n)
		f.Add(buf[:w.Len()], uint8(w.Ops()))
	}
	f.Add(make([]byte, minPayload), uint8(1))
	f.Fuzz(func(t *testing.T, payload []byte, ops uint8) {
		var (
			r   RecordReader
			rec Record
		)
		for r.Reset(payload, int(ops)); r.Next(&rec); {
		}
		if got := Validate(payload, int(ops)); got != r.Reason() {
			t.Fatalf("Validate says %v, the reader %v", got, r.Reason())
		}
		if r.Reason() != ReasonOK {
			return
		}
		recs := decode(t, payload, int(ops))
		var w RecordWriter
		w.Reset(make([]byte, 2*len(payload)+64), 1<<30) // the encoder decides record by record, and may encode longer than it read
		for i := range recs {
			if recs[i].Verb == VerbNotice { // the last one
				was := r.Notice()
				if !w.Notice(&was) {
					t.Fatalf("a notice does not encode in twice the length it came in: %+v", was)
				}
				continue
			}
			if recs[i].Op == OpRead && recs[i].Count > MaxFrame {
				return // valid, but never encoded: no answer could carry so much
			}
			if !w.Append(&recs[i]) {
				t.Fatalf("record %d does not encode in twice the length it came in: %+v", i, recs[i])
			}
		}
		again := decode(t, w.buf[:w.Len()], w.Ops())
		for i := range recs {
			if !sameRecord(&recs[i], &again[i]) {
				t.Fatalf("record %d: %+v became %+v", i, recs[i], again[i])
			}
		}
	})
}

// BenchmarkRecords reports the time per record of each step on a full frame of 64-bit
// operations.
func BenchmarkRecords(b *testing.B) {
	for _, rec := range []Record{
		{Verb: VerbFetch, Op: opSum, Datatype: dtUint64, Key: 1, Operand: word},
		{Verb: VerbCompare, Op: opCswap, Datatype: dtUint64, Key: 1, Operand: word, Compare: word},
	} {
		buf := make([]byte, 1500-HeaderLen)
		var w RecordWriter
		encode := func() {
			for w.Reset(buf, len(buf)); w.Append(&rec); rec.Offset += 8 {
			}
			rec.Offset = 0
		}
		encode()
		perRecord := func(b *testing.B) {
			b.ReportAllocs()
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*w.Ops()), "ns/record")
		}
		name := fmt.Sprintf("verb%d/%drecords", rec.Verb, w.Ops())
		b.Run(name+"/encode", func(b *testing.B) {
			for b.Loop() {
				encode()
			}
			perRecord(b)
		})
		b.Run(name+"/validate", func(b *testing.B) {
			for b.Loop() {
				if r := Validate(buf[:w.Len()], w.Ops()); r != ReasonOK {
					b.Fatal(r)
				}
			}
			perRecord(b)
		})
		b.Run(name+"/decode", func(b *testing.B) {
			var (
				r   RecordReader
				out Record
				sum uint64
			)
			for b.Loop() {
				for r.Reset(buf[:w.Len()], w.Ops()); r.Next(&out); {
					sum += out.Offset + uint64(out.Operand[0])
				}
			}
			perRecord(b)
		})
	}
}

// A payload is full when not even the shortest record fits.
func TestFull(t *testing.T) {
	const uint64s = 7 // the datatype
	for room := range 20 {
		var w RecordWriter
		w.Reset(make([]byte, 64+room), 1500)
		if !w.Append(&Record{Verb: VerbWrite, Op: OpWrite, Datatype: Byte, Key: 1, Count: 44, Operand: make([]byte, 44)}) || w.Len() != 64 {
			t.Fatalf("the first record has %d bytes", w.Len())
		}
		full := w.Full()
		if fits := w.Append(&Record{Verb: VerbFetch, Op: OpRead, Datatype: uint64s, Key: 1}); fits == full {
			t.Errorf("%d bytes left: full is %t, a record fits: %t", room, full, fits)
		}
	}
}
