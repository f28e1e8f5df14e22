// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"math/rand/v2"
	"testing"
)

// TestFit: what Fit returns can be appended, and one element more cannot, unless it was
// the whole.
func TestFit(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	for range 3000 {
		room := MinMTU - HeaderLen + rng.IntN(300)
		resp := room - rng.IntN(100)
		var w RecordWriter
		w.Reset(make([]byte, room), resp)
		for range rng.IntN(4) {
			rec := randomRecord(rng)
			w.Append(&rec)
		}
		rec := randomRecord(rng)
		if !rec.Verb.Array() {
			continue
		}
		rec.Count = 1 + uint32(rng.IntN(600))
		rec.Total = rec.Count
		whole, n := rec.Count, w.Fit(&rec)
		before := w
		if n > 0 && !appendCount(&w, rec, n) {
			t.Fatalf("Fit says %d of %d, but they do not fit: %+v", n, whole, rec)
		}
		w = before
		// A lone element does without the count field that Fit allows for in a part of
		// an array.
		if n < whole && !rec.Verb.Transfer() && (n > 0 || whole > 1) && appendCount(&w, rec, max(n+1, 2)) {
			t.Fatalf("Fit says %d of %d, but one more fits: %+v", n, whole, rec)
		}
	}
}

// appendCount appends the first n elements of the array that rec describes.
func appendCount(w *RecordWriter, rec Record, n uint32) bool {
	rec.Count = n
	bytes := int(n) * ElemSize(rec.Datatype)
	if rec.Op != OpRead {
		rec.Operand = pattern(bytes)
	}
	if rec.Verb == VerbCompare {
		rec.Compare = pattern(bytes)
	}
	return w.Append(&rec)
}

func TestMaxCount(t *testing.T) {
	const all = knownRecordFlags
	tests := []struct {
		name         string
		verb         Verb
		op, datatype uint8
		req, resp    int
		want         uint32
	}{
		{"base, bounded by request", VerbAtomic, opSum, dtUint64, 28 + 80, 6, 10},
		{"base, no response at all", VerbAtomic, opSum, dtUint64, 28 + 80, 5, 0},
		{"fetch, bounded by response", VerbFetch, opSum, dtUint64, 28 + 80, statusHead + 79, 9},
		{"fetch, bounded by request", VerbFetch, opSum, dtUint64, 28 + 80, 1000, 10},
		{"read", VerbFetch, OpRead, dtUint64, 28, 1000, (1000 - statusHead) / 8},
		{"compare", VerbCompare, opCswap, dtUint64, 28 + 80, 1000, 5},
		{"bytes fill whole words", VerbCompare, opCswap, dtUint8, 28 + 14, 1000, 4},
		{"no room", VerbFetch, opSum, dtUint64, 20, 1000, 0},
		{"datatype", VerbFetch, opSum, NumDatatypes, 1000, 1000, 0},
	}
	for _, tt := range tests {
		if got := maxCount(tt.verb, tt.op, tt.datatype, all, tt.req, tt.resp-statusHead); got != tt.want {
			t.Errorf("%s: %d, want %d", tt.name, got, tt.want)
		}
	}
}

func TestWriterStopsAtMaxOps(t *testing.T) {
	var w RecordWriter
	w.Reset(make([]byte, 9000), 1<<20)
	rec := Record{Verb: VerbFetch, Op: OpRead, Datatype: dtUint64}
	for w.Append(&rec) {
	}
	if w.Ops() != MaxOps || w.Fit(&rec) != 0 {
		t.Errorf("%d records, Fit %d; want %d and 0", w.Ops(), w.Fit(&rec), MaxOps)
	}
}
