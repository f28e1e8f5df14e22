// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"
)

// randomNotice draws a notice.
func randomNotice(rng *rand.Rand) Notice {
	return Notice{Data: rng.Uint64(), Length: rng.Uint64() >> rng.IntN(64), Covers: rng.Uint32() >> rng.IntN(32), Source: uint16(rng.Uint32()), Returns: rng.IntN(2) == 0, Transfer: rng.IntN(2) == 0}
}

// A notice ends a payload: the writer takes nothing behind it, and the reader returns
// what was written, whatever comes before.
func TestNoticeRoundTrip(t *testing.T) {
	for seed := range uint64(500) {
		rng := rand.New(rand.NewPCG(seed, 1))
		buf := bytes.Repeat([]byte{0xee}, NoticeLen+rng.IntN(1400))
		var w RecordWriter
		w.Reset(buf, 64+rng.IntN(1400))
		for range rng.IntN(40) {
			rec := randomRecord(rng)
			w.Append(&rec)
		}
		ops, sent := w.Ops(), randomNotice(rng)
		if before := w.Len(); !w.Notice(&sent) {
			if len(buf)-before >= NoticeLen && w.Len() == before && w.room >= statusEntry {
				t.Fatalf("seed %d: there is room, but the notice is not taken", seed)
			}
			continue
		}
		if w.Ops() != ops+1 {
			t.Fatalf("seed %d: %d records, want %d", seed, w.Ops(), ops+1)
		}
		more := Record{Verb: VerbFetch, Op: OpRead, Datatype: dtUint64, Count: 1, Total: 1}
		if w.Append(&more) || w.Fit(&more) != 0 || w.Extend(8, 0) || w.Notice(&sent) {
			t.Fatalf("seed %d: something is taken behind a notice", seed)
		}
		var r RecordReader
		var rec Record
		r.Reset(buf[:w.Len()], w.Ops())
		if uses, reason := r.Rest(); uses&FeatureNotices == 0 || reason != ReasonOK {
			t.Fatalf("seed %d: features %#x, %v", seed, uses, reason)
		}
		for r.Next(&rec) {
		}
		if got := r.Notice(); r.Reason() != ReasonOK || rec.Verb != VerbNotice || got != sent {
			t.Fatalf("seed %d: %v: %+v, want %+v", seed, r.Reason(), got, sent)
		}
	}
}

// Rest reports whether there is a notice also when Next has read it already.
func TestRestBehindNotice(t *testing.T) {
	var w RecordWriter
	w.Reset(make([]byte, 64), 64)
	w.Notice(&Notice{Data: 5})
	var r RecordReader
	var rec Record
	r.Reset(w.buf[:w.Len()], 1)
	if more := r.Next(&rec); !more || rec.Verb != VerbNotice || r.Notice().Data != 5 {
		t.Fatalf("read %t %+v", more, rec)
	}
	if uses, reason := r.Rest(); uses&FeatureNotices == 0 || reason != ReasonOK {
		t.Errorf("features %#x, %v", uses, reason)
	}
}

func TestNoticeRefused(t *testing.T) {
	var w RecordWriter
	w.Reset(make([]byte, 64), 64)
	w.Notice(&Notice{Data: v64, Length: v32, Covers: 3, Source: v16, Returns: true})
	good := w.buf[:w.Len()]
	flags := slices.Clone(good)
	flags[1] |= 4
	list := raw(VerbList, 0, 0, 0, 1)
	for name, c := range map[string]struct {
		payload []byte
		ops     int
		want    Reason
	}{
		"good":              {good, 1, ReasonOK},
		"behind another":    {slices.Concat(list, good), 2, ReasonOK},
		"unknown flag":      {flags, 1, ReasonBadFlags},
		"cut":               {good[:20], 1, ReasonTruncated},
		"before another":    {slices.Concat(good, list), 2, ReasonBadPayload},
		"twice":             {slices.Concat(good, good), 2, ReasonBadPayload},
		"followed by bytes": {append(slices.Clone(good), 0, 0, 0, 0), 1, ReasonTrailing},
	} {
		if got := Validate(c.payload, c.ops); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// noticed is a request frame whose records are followed by a notice.
func noticed(t *testing.T, name, about string, n Notice, records ...Record) golden {
	var w RecordWriter
	w.Reset(make([]byte, 256), 256)
	for i := range records {
		if !w.Append(&records[i]) {
			t.Fatalf("%s: record %d does not fit", name, i)
		}
	}
	if !w.Notice(&n) {
		t.Fatalf("%s: the notice does not fit", name)
	}
	h := head(Request)
	h.Ops = uint8(w.Ops())
	return golden{name, about, seal(h, w.buf[:w.Len()]), func(t *testing.T, b []byte) {
		var r RecordReader
		var rec Record
		for r.Reset(opened(t, b, h), int(h.Ops)); r.Next(&rec); {
		}
		if r.Reason() != ReasonOK || rec.Verb != VerbNotice || r.Notice() != n {
			t.Errorf("%v: %+v, want %+v", r.Reason(), r.Notice(), n)
		}
	}}
}

func goldenNotices(t *testing.T) []golden {
	add := Record{Verb: VerbAtomic, Op: opSum, Datatype: dtUint64, Key: 0x8877665544332211, Offset: 64, Operand: word}
	return []golden{
		noticed(t, "request-notice", "request: add to one uint64, and a notice of it", Notice{Data: 0x1122334455667788, Length: 8, Covers: 1, Source: 258}, add),
		noticed(t, "request-notice-alone", "request: a notice of a fetch, of which 300 records came before",
			Notice{Data: 0x1122334455667788, Length: 2400, Covers: 300, Returns: true}),
	}
}

// TestDocOfNotice compares the table of the notice with the code.
func TestDocOfNotice(t *testing.T) {
	notice := func(v uint64, n Notice) setter {
		return setter{value: v, encode: func() []byte { b := make([]byte, NoticeLen); n.put(b); return b }}
	}
	zero := notice(0, Notice{}).encode()
	layout(t, table(t, "Notice: an event"), 2, zero, map[string]setter{
		"verb": notice(uint64(VerbNotice), Notice{}), "flags": notice(3, Notice{Returns: true, Transfer: true}), "source": notice(v16, Notice{Source: v16}),
		"covers": notice(v32, Notice{Covers: v32}), "data": notice(v64, Notice{Data: v64}), "length": notice(v64, Notice{Length: v64}),
	})
}
