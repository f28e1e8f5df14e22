// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"
)

// write appends a record of a message, of whatever kind.
func write(w *RecordWriter, m *Message) bool {
	if m.Atomic.Form == 0 {
		part, ok := w.Message(m, uint64(len(m.Part)))
		return ok && copy(part, m.Part) == len(m.Part)
	}
	operand, compare, ok := w.TaggedAtomic(m)
	return ok && copy(operand, m.Part) == len(m.Part) && copy(compare, m.Atomic.Compare) == len(m.Atomic.Compare)
}

// sameAtomic compares what a tagged atomic has besides a message.
func sameAtomic(a, b *Message) bool {
	x, y := a.Atomic, b.Atomic
	return x.Form == y.Form && x.Op == y.Op && x.Datatype == y.Datatype && x.Count == y.Count && x.Offset == y.Offset && bytes.Equal(x.Compare, y.Compare)
}

// taggedAtomic returns a message that is a tagged atomic, with its operands.
func taggedAtomic(form Verb, op, datatype uint8, count uint32) Message {
	n := int(count) * int(elemSize[datatype])
	m := Message{Begins: true, Tagged: true, Match: form != VerbAtomic, Length: uint64(n), Tag: 0x1122334455667788, Source: 258,
		Atomic: TaggedAtomic{Form: form, Op: op, Datatype: datatype, Count: count, Offset: 1<<33 | 8}}
	if op != OpRead {
		m.Part = pattern(n)
	}
	if form == VerbCompare {
		m.Atomic.Compare = slices.Repeat([]byte{9}, n)
	}
	return m
}

// taggedAtomics returns one of every form.
func taggedAtomics() []Message {
	swap := taggedAtomic(VerbCompare, opCswap, dtUint8, 3)
	swap.HasData, swap.Data = true, 0x99
	return []Message{taggedAtomic(VerbAtomic, opSum, dtUint64, 2), taggedAtomic(VerbFetch, opSum, dtUint64, 1), taggedAtomic(VerbFetch, OpRead, dtUint64, 1), swap}
}

// atomics encodes one tagged atomic.
func atomics(m Message) []byte {
	var w RecordWriter
	w.Reset(make([]byte, 256), 256)
	if !write(&w, &m) {
		panic("no room")
	}
	return w.buf[:w.Len()]
}

func goldenTaggedAtomics(t *testing.T) []golden {
	all := taggedAtomics()
	return []golden{
		sent(t, "request-tagged-atomic", "request: a message, and an add to two uint64 of the buffer of a tagged receive", Message{Begins: true, Source: 258}, all[0]),
		sent(t, "request-tagged-fetch", "request: fetch-add of one uint64 in the buffer of a tagged receive, behind another add", all[0], all[1]),
		sent(t, "request-tagged-read", "request: read of one uint64 in the buffer of a tagged receive", all[2]),
		sent(t, "request-tagged-compare", "request: compare-and-swap of three uint8 in the buffer of a tagged receive, padded, with data", all[3]),
	}
}

// What is written is read again, as many elements fit as MaxTagged says, and nothing
// follows a record whose answer says how it ended.
func TestTaggedAtomicRoundTrip(t *testing.T) {
	for seed := range uint64(2000) {
		rng := rand.New(rand.NewPCG(seed, 3))
		room := MinMTU - HeaderLen + rng.IntN(1300)
		form, op := VerbAtomic+Verb(rng.IntN(3)), uint8(rng.IntN(40))
		if form == VerbAtomic && op == OpRead {
			continue
		}
		datatype := uint8(rng.IntN(NumDatatypes))
		most := MaxTagged(form, op, datatype, room)
		m := taggedAtomic(form, op, datatype, most)
		m.Match, m.HasData, m.Data = m.Match || rng.IntN(2) == 0, true, rng.Uint64()
		var w RecordWriter
		w.Reset(make([]byte, room), room)
		if !write(&w, &m) {
			t.Fatalf("seed %d: %d elements of %d do not fit %d bytes", seed, most, datatype, room)
		}
		var r MessageReader
		var got Message
		r.Reset(w.buf[:w.Len()], 1)
		if !r.Next(&got) || !sameHead(&got, &m) || !bytes.Equal(got.Part, m.Part) || !sameAtomic(&got, &m) || r.Next(&got) || r.Reason() != ReasonOK {
			t.Fatalf("seed %d: %+v, want %+v; %v", seed, got, m, r.Reason())
		}
		w.Reset(make([]byte, 2*room), 2*room)
		m.Atomic.Count = 1
		m = taggedAtomic(form, op, datatype, 1)
		write(&w, &m)
		if more := write(&w, &Message{Begins: true}); more != (form == VerbAtomic) {
			t.Fatalf("seed %d: another record behind form %v: %t", seed, form, more)
		}
		over := taggedAtomic(form, op, datatype, most+uint32(32/elemSize[datatype])+1)
		over.HasData = true
		w.Reset(make([]byte, room), room)
		if write(&w, &over) {
			t.Fatalf("seed %d: %d elements of %d fit %d bytes, more than %d", seed, over.Atomic.Count, datatype, room, most)
		}
	}
}

func TestTaggedAtomicRefused(t *testing.T) {
	all := taggedAtomics()
	add, fetch, swap := atomics(all[0]), atomics(all[1]), atomics(all[3])
	with := func(b []byte, at int, v byte) []byte { c := slices.Clone(b); c[at] = v; return c }
	for name, c := range map[string]struct {
		payload []byte
		ops     int
		want    Reason
	}{
		"add":                         {add, 1, ReasonOK},
		"two":                         {slices.Concat(add, fetch), 2, ReasonOK},
		"fetch":                       {fetch, 1, ReasonOK},
		"compare":                     {swap, 1, ReasonOK},
		"a record behind an answer":   {slices.Concat(fetch, add), 2, ReasonBadPayload},
		"an unknown flag":             {with(add, 1, 4), 1, ReasonBadFlags},
		"a fetch that may be held":    {with(fetch, 1, 0), 1, ReasonBadFlags},
		"no such datatype":            {with(add, 5, NumDatatypes), 1, ReasonBadDatatype},
		"bytes without a meaning":     {with(add, 7, 1), 1, ReasonBadPadding},
		"padding of the operand":      {with(swap, atomicHead+dataField+3, 1), 1, ReasonBadPadding},
		"padding of the comparand":    {with(swap, atomicHead+dataField+7, 1), 1, ReasonBadPadding},
		"no elements":                 {with(add, 24, 0), 1, ReasonBadCount},
		"an offset beyond all memory": {with(add, 8, 0xff)[:8:8], 1, ReasonTruncated},
		"cut":                         {add[:len(add)-4], 1, ReasonTruncated},
		"cut in the head":             {add[:atomicHead-4], 1, ReasonTruncated},
		"more elements than there":    {with(add, 24, 200), 1, ReasonTruncated},
		"more than any frame has":     {with(add, 26, 1), 1, ReasonBadCount},
		"a read without a result":     {with(add, 4, OpRead), 1, ReasonBadPayload},
	} {
		if got := validateMessages(c.payload, c.ops); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	wraps := slices.Clone(add)
	copy(wraps[8:16], bytes.Repeat([]byte{0xff}, 8))
	if got := validateMessages(wraps, 1); got != ReasonBadCount {
		t.Errorf("offset and length that are more than 64 bits: %v", got)
	}
}

// TestDocOfTaggedAtomic compares the table of the record with the code.
func TestDocOfTaggedAtomic(t *testing.T) {
	with := func(v uint64, m Message) setter {
		m.HasData = true
		return setter{value: v, encode: func() []byte {
			b := make([]byte, atomicHead+dataField)
			m.putAtomic(b, max(m.Atomic.Form, VerbAtomic).Tagged())
			return b
		}}
	}
	layout(t, table(t, "Tagged atomic, tagged fetch"), 2, with(0, Message{}).encode(), map[string]setter{
		"verb": with(uint64(VerbTaggedCompare), Message{Atomic: TaggedAtomic{Form: VerbCompare}}), "flags": with(3, Message{Match: true}),
		"source": with(v16, Message{Source: v16}), "operation": with(v8, Message{Atomic: TaggedAtomic{Op: v8}}),
		"datatype": with(v8, Message{Atomic: TaggedAtomic{Datatype: v8}}), "offset": with(v64, Message{Atomic: TaggedAtomic{Offset: v64}}),
		"tag": with(v64, Message{Tag: v64}), "count": with(v32, Message{Atomic: TaggedAtomic{Count: v32}}), "data": with(v64, Message{Data: v64}),
	})
}
