// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"slices"
	"testing"
)

// tickets is the payload of a frame of tickets.
func tickets(all ...Ticket) []byte {
	b := make([]byte, len(all)*TicketLen)
	for i := range all {
		all[i].Put(b[i*TicketLen:])
	}
	return b
}

// waitRecord is a compare-and-swap of 0 to 7 that waits for a second.
func waitRecord() Record {
	return Record{Verb: VerbWait, Op: opCswap, Datatype: dtUint64, Key: 0x8877665544332211, Offset: 64, Incarnation: 0x5a5b5c5d,
		Count: 1, Total: 1, Limit: 1e6, Operand: []byte{7, 0, 0, 0, 0, 0, 0, 0}, Compare: make([]byte, 8)}
}

// goldenWaits are operations that wait at the target, and what is asked and told of them.
func goldenWaits(t *testing.T) []golden {
	short := waitRecord()
	short.Datatype, short.Limit, short.Incarnation, short.Operand, short.Compare = dtUint8, NoLimit, 0, []byte{7}, []byte{1}
	frame := func(name, about string, psn uint32, all ...Ticket) golden {
		h := head(Tickets)
		h.PSN = psn
		return golden{name, about, seal(h, tickets(all...)), func(t *testing.T, b []byte) {
			if got := opened(t, b, h); !bytes.Equal(got, tickets(all...)) {
				t.Errorf("the payload is % x", got)
			}
		}}
	}
	return []golden{
		request(t, "request-wait", "request: compare-and-swap of one uint64 that waits for a second", waitRecord()),
		request(t, "request-wait-short", "request: compare-and-swap of one uint8 that waits for ever", short),
		frame("tickets-ask", "tickets, the third frame of the initiator: how is record 2 of psn 9, and end record 0", 3,
			Ticket{PSN: 9, Index: 2, Kind: TicketAsk}, Ticket{PSN: 9, Kind: TicketCancel}),
		frame("tickets-told", "tickets of the target: record 2 of psn 9 ran, the value before was 5; record 0 waits", 0,
			Ticket{PSN: 9, Index: 2, Kind: TicketRan, Value: 5}, Ticket{PSN: 9, Kind: TicketParked}),
	}
}

// A waiting compare says what it says, and anything else is refused.
func TestWaitRecords(t *testing.T) {
	for _, dt := range []uint8{dtUint8, dtUint64} {
		rec := waitRecord()
		size := int(elemSize[dt])
		rec.Datatype, rec.Operand, rec.Compare = dt, rec.Operand[:size], rec.Compare[:size]
		b := make([]byte, 100)
		var w RecordWriter
		w.Reset(b, TicketLen+8)
		if !w.Append(&rec) || w.Len() != WaitLen || w.Append(&rec) {
			t.Fatalf("%d bytes, want %d and no room for another answer", w.Len(), WaitLen)
		}
		b = b[:w.Len()]
		var r RecordReader
		r.Reset(b, 1)
		if uses, reason := r.Rest(); reason != ReasonOK || uses != FeatureWaits {
			t.Fatalf("%v, uses %v", reason, uses.Names())
		}
		var got Record
		if !r.Next(&got) || got.Limit != rec.Limit || got.Key != rec.Key || got.Offset != rec.Offset || got.Count != 1 ||
			got.Incarnation != rec.Incarnation || !bytes.Equal(got.Operand, rec.Operand) || !bytes.Equal(got.Compare, rec.Compare) {
			t.Errorf("%+v became %+v", rec, got)
		}
		for at, want := range map[int]Reason{2: ReasonBadDatatype, 3: ReasonBadFlags, 24 + size: ReasonBadPadding, 39: ReasonBadPadding} {
			if size == 8 && at > 3 {
				continue
			}
			bad := bytes.Clone(b)
			bad[at] = 0xff
			if got := Validate(bad, 1); got != want {
				t.Errorf("byte %d: %v, want %v", at, got, want)
			}
		}
		if got := Validate(b[:WaitLen-4], 1); got != ReasonTruncated {
			t.Errorf("cut off: %v", got)
		}
	}
	var w RecordWriter
	w.Reset(make([]byte, 100), 100)
	for _, f := range []func(r *Record){
		func(r *Record) { r.Compare = nil },
		func(r *Record) { r.Operand = r.Operand[:4] },
		func(r *Record) {
			r.Datatype, r.Operand, r.Compare = dtLongDoubleComplex, make([]byte, 32), make([]byte, 32)
		},
	} {
		rec := waitRecord()
		if f(&rec); w.Append(&rec) {
			t.Errorf("%+v is written", rec)
		}
	}
}

// A frame of tickets has whole ones, each of a kind that is known, and values only where
// something ran.
func TestTickets(t *testing.T) {
	ran := Ticket{PSN: 1 << 31, Index: 200, Kind: TicketRan, Value: v64}
	if got := TicketAt(tickets(ran)); got != ran {
		t.Errorf("%+v", got)
	}
	good := slices.Concat(tickets(ran), tickets(Ticket{Kind: TicketGone}))
	if _, _, r := Parse(seal(goodHeader(Tickets), good)); r != ReasonOK {
		t.Error(r)
	}
	for name, f := range map[string]func(b []byte) []byte{
		"none":     func([]byte) []byte { return nil },
		"half one": func(b []byte) []byte { return b[:24] },
		"kind":     func(b []byte) []byte { b[4] = byte(numTicketKinds); return b },
		"no kind":  func(b []byte) []byte { b[4] = 0; return b },
		"reserved": func(b []byte) []byte { b[7] = 1; return b },
		"value":    func(b []byte) []byte { b[4] = byte(TicketLate); return b },
	} {
		if _, _, r := Parse(seal(goodHeader(Tickets), f(bytes.Clone(good)))); r != ReasonBadPayload {
			t.Errorf("%s: %v", name, r)
		}
	}
}
