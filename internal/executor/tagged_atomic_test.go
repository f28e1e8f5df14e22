// SPDX-License-Identifier: Apache-2.0

package executor

import (
	"bytes"
	"strings"
	"testing"

	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// combines is a sum of so many words, by tag.
func combines(form wire.Verb, count uint32) record {
	return record{Message: wire.Message{Begins: true, Tagged: true, Match: form != wire.VerbAtomic,
		Atomic: wire.TaggedAtomic{Form: form, Op: 2, Datatype: 7, Count: count}}}
}

// answer returns the status and the value of the last record of the frame whose response
// is due.
func answer(t *testing.T, s *Session, records, length int) (wire.Status, []byte) {
	t.Helper()
	b := make([]byte, 1500)
	h, payload, reason := wire.Parse(b[:wire.Seal(b, s.Emit(b))])
	if reason != wire.ReasonOK || h.Type != wire.Response {
		t.Fatalf("%+v, %v; want a response", h, reason)
	}
	var r wire.ResponseReader
	r.Reset(payload, int(h.Ops), h.Flags)
	for range records - 1 {
		r.Next(0)
	}
	status, value, _ := r.Next(length)
	if got := r.Finish(); got != wire.ReasonOK {
		t.Fatal(got)
	}
	return status, value
}

// The result of an atomic is in the answer of its frame, also if it had to wait behind
// messages of the frame that had run; what has run runs once.
func TestTaggedAtomicIsAnswered(t *testing.T) {
	in := &inflow{room: 2}
	x, s, psn := receiver(t, in)
	frame := []record{begins(3, 3), combines(wire.VerbAtomic, 2), combines(wire.VerbFetch, 2)}
	if o := messages(t, s, psn, frame...); !o.Waits || o.Frames != 0 {
		t.Fatalf("%+v, want it to wait", o)
	}
	emit(t, s)
	in.room = 1
	if o := s.Retry(); o.Frames != 1 || o.Waits {
		t.Fatalf("%+v, want that the frame has run", o)
	}
	if status, value := answer(t, s, 3, 16); status != wire.StatusOK || bytes.Count(value, []byte{0xab}) != 16 || len(value) != 16 {
		t.Errorf("%v, value %x", status, value)
	}
	if said := in.said(); strings.Count(said, "combine 16") != 2 || strings.Count(said, "put 3") != 1 {
		t.Error(said)
	}
	in.room, in.status = 1, wire.StatusOutOfBounds
	messages(t, s, psn+1, combines(wire.VerbCompare, 1))
	if status, _ := answer(t, s, 1, 8); status != wire.StatusOutOfBounds {
		t.Errorf("%v, want that it was out of bounds", status)
	}
	in.room = 1
	if messages(t, s, psn+2, combines(wire.VerbAtomic, 1), begins(0, 0)); s.partial.n != 0 || s.partial.said != 0 {
		t.Errorf("an atomic that says nothing of its end is answered with %d bytes", s.partial.n)
	}
	s.Freeze(3, psn+1)
	if err := x.Check(); err != nil {
		t.Error(err)
	}
}

// A result that no answer can carry does not arise, and takes no receive.
func TestTaggedAtomicTooLong(t *testing.T) {
	in := &inflow{room: 1}
	_, s, psn := receiver(t, in)
	long := combines(wire.VerbFetch, 1000)
	long.Atomic.Op = wire.OpRead
	var w wire.RecordWriter
	w.Reset(make([]byte, 1400), 1<<16)
	b := make([]byte, 1400)
	w.Reset(b, 1<<16)
	w.TaggedAtomic(&long.Message)
	h := wire.Header{Type: wire.Request, Flags: wire.FlagMessages, PSN: psn, Ack: psn - 1, Ops: 1}
	s.Receive(2, &h, b[:w.Len()], nil)
	if status, _ := answer(t, s, 1, 8000); status != wire.StatusBadCount || in.room != 1 {
		t.Errorf("%v, and the room is %d", status, in.room)
	}
}

// A session without the feature has no such records.
func TestTaggedAtomicWithoutTheFeature(t *testing.T) {
	in := &inflow{room: 1}
	_, s, psn := receiver(t, in)
	s.features = wire.FeatureMessages
	if o := messages(t, s, psn, combines(wire.VerbAtomic, 1)); o.Refused != wire.ReasonReservedVerb || o.Verdict != session.Execute || in.said() != "" {
		t.Errorf("%+v, want it to be refused", o)
	}
}
