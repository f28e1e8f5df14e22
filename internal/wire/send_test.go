// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"
)

// randomMessage draws the head of a message, or of a further part.
func randomMessage(rng *rand.Rand) (m Message, left uint64) {
	left = uint64(rng.IntN(3000) >> rng.IntN(12))
	switch rng.IntN(9) {
	case 0:
		return Message{Offset: 1 + rng.Uint64()>>1>>rng.IntN(62), Drop: true}, 0
	case 1, 2, 3:
		return Message{Offset: 1 + rng.Uint64()>>1>>rng.IntN(62)}, left + 1
	}
	m = Message{Begins: true, Tagged: rng.IntN(2) == 0, HasData: rng.IntN(2) == 0, Match: rng.IntN(4) == 0, Source: uint16(rng.Uint32()), Length: left}
	if m.Tagged {
		m.Tag = rng.Uint64()
	}
	if m.HasData {
		m.Data = rng.Uint64()
	}
	return m, left
}

// What is written is read again; no frame is longer than it may be, and a message is cut
// only where the frame is full.
func TestMessageRoundTrip(t *testing.T) {
	for seed := range uint64(2000) {
		rng := rand.New(rand.NewPCG(seed, 2))
		buf := make([]byte, 64+rng.IntN(1400))
		var w RecordWriter
		w.Reset(buf, 1400)
		var sent []Message
		for range 1 + rng.IntN(8) {
			m, left := randomMessage(rng)
			before, ops := w.Len(), w.Ops()
			part, ok := w.Message(&m, left)
			_, head := m.verb()
			room := (len(buf) - before - head) &^ 3
			switch {
			case !ok && (w.Len() != before || w.Ops() != ops):
				t.Fatalf("seed %d: a message that is not taken leaves %d bytes and %d records", seed, w.Len()-before, w.Ops()-ops)
			case !ok && room >= leastPart && ops < MaxOps && w.room >= statusEntry:
				t.Fatalf("seed %d: there are %d bytes of room, but the message is not taken", seed, room)
			case !ok:
				continue
			case uint64(len(part)) != left && (len(part) < room || len(part)&3 != 0):
				t.Fatalf("seed %d: a part of %d of %d bytes, and %d of room", seed, len(part), left, room)
			}
			for i := range part {
				part[i] = byte(rng.Uint32())
			}
			m.Part = part
			sent = append(sent, m)
		}
		var r MessageReader
		var got Message
		for r.Reset(buf[:w.Len()], w.Ops()); r.Next(&got); sent = sent[1:] {
			if want := &sent[0]; !sameHead(&got, want) || !bytes.Equal(got.Part, want.Part) {
				t.Fatalf("seed %d: %+v, want %+v", seed, got, *want)
			}
		}
		if w.Ops() > 0 && (r.Reason() != ReasonOK || len(sent) > 0) {
			t.Fatalf("seed %d: %v, and %d messages are missing", seed, r.Reason(), len(sent))
		}
	}
}

// sameHead compares everything but the part.
func sameHead(a, b *Message) bool {
	x, y := *a, *b
	x.Part, y.Part = nil, nil
	return x.Length == y.Length && x.Offset == y.Offset && x.Tag == y.Tag && x.Data == y.Data && x.Source == y.Source &&
		x.Begins == y.Begins && x.Tagged == y.Tagged && x.HasData == y.HasData && x.Match == y.Match && x.Drop == y.Drop
}

// sends encodes one message, whole.
func sends(m Message, part []byte) []byte {
	var w RecordWriter
	w.Reset(make([]byte, 256), 256)
	to, ok := w.Message(&m, uint64(len(part)))
	if !ok || copy(to, part) != len(part) {
		panic("no room")
	}
	return w.buf[:w.Len()]
}

func TestMessageRefused(t *testing.T) {
	three := sends(Message{Begins: true, Length: 3}, []byte{1, 2, 3})
	tagged := sends(Message{Begins: true, Tagged: true, HasData: true, Match: true, Length: 9, Tag: v64, Data: v64, Source: v16}, pattern(8))
	empty := sends(Message{Begins: true}, nil)
	part, drop := sends(Message{Offset: 8}, pattern(8)), sends(Message{Offset: 8, Drop: true}, nil)
	with := func(b []byte, at int, v byte) []byte { c := slices.Clone(b); c[at] = v; return c }
	for name, c := range map[string]struct {
		payload []byte
		ops     int
		want    Reason
	}{
		"three bytes":                   {three, 1, ReasonOK},
		"tagged, the first of two":      {tagged, 1, ReasonOK},
		"empty":                         {append(slices.Clone(empty), empty...), 2, ReasonOK},
		"a further part":                {part, 1, ReasonOK},
		"unknown flag":                  {with(three, 1, 4), 1, ReasonBadFlags},
		"a message dropped":             {drop, 1, ReasonOK},
		"a flag of a further part":      {with(part, 1, 2), 1, ReasonBadFlags},
		"bytes of a message dropped":    {with(part, 1, 1), 1, ReasonBadCount},
		"no bytes of a further part":    {with(drop, 1, 0), 1, ReasonBadCount},
		"source of a further part":      {with(part, 3, 1), 1, ReasonBadPadding},
		"padding":                       {with(three, len(three)-1, 1), 1, ReasonBadPadding},
		"cut":                           {tagged[:len(tagged)-4], 1, ReasonTruncated},
		"cut in the head":               {three[:12], 1, ReasonTruncated},
		"a part beyond the length":      {with(three, 8, 2), 1, ReasonBadCount},
		"nothing of a message":          {with(empty, 8, 2), 1, ReasonBadCount},
		"a further part at the start":   {with(part, 8, 0), 1, ReasonBadCount},
		"a further part beyond the end": {with(with(with(part, 8, 0xf9), 15, 0xff), 9, 0xff), 1, ReasonOK},
		"a length beyond the frame":     {with(three, 7, 0xff), 1, ReasonTruncated},
		"reserved verb":                 {with(three, 0, 0x23), 1, ReasonBadVerb},
		"an operation on memory":        {with(three, 0, 1), 1, ReasonBadVerb},
		"no more than a verb":           {three[:4], 1, ReasonTruncated},
	} {
		if got := validateMessages(c.payload, c.ops); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	over := slices.Clone(part)
	copy(over[8:16], bytes.Repeat([]byte{0xff}, 8))
	if got := validateMessages(over, 1); got != ReasonBadCount {
		t.Errorf("an end beyond all numbers: %v", got)
	}
}

// sent is a request frame of messages.
func sent(t *testing.T, name, about string, messages ...Message) golden {
	t.Helper()
	var w RecordWriter
	w.Reset(make([]byte, 256), 256)
	for i := range messages {
		m := &messages[i]
		if !write(&w, m) {
			t.Fatalf("%s: message %d does not fit", name, i)
		}
	}
	h := head(Request)
	h.Ops, h.Flags = uint8(w.Ops()), FlagMessages
	return golden{name, about, seal(h, w.buf[:w.Len()]), func(t *testing.T, b []byte) {
		var r MessageReader
		var got Message
		r.Reset(opened(t, b, h), int(h.Ops))
		for _, want := range messages {
			if !r.Next(&got) {
				t.Fatalf("refused: %v", r.Reason())
			}
			if !sameHead(&got, &want) || !bytes.Equal(got.Part, want.Part) || !sameAtomic(&got, &want) {
				t.Errorf("%+v, want %+v", got, want)
			}
		}
		if r.Next(&got) || r.Reason() != ReasonOK {
			t.Errorf("at the end: %v", r.Reason())
		}
	}}
}

func goldenMessages(t *testing.T) []golden {
	waits := head(Nak)
	waits.PSN, waits.Ack, waits.Flags = 11, 10, FlagBusy
	return []golden{
		sent(t, "request-send", "request: a message of eight bytes, and an empty one",
			Message{Begins: true, Length: 8, Source: 258, Part: pattern(8)}, Message{Begins: true, Source: 258}),
		sent(t, "request-tagged", "request: a tagged message of three bytes, with data, which waits for its receive",
			Message{Begins: true, Tagged: true, HasData: true, Match: true, Length: 3, Tag: 0x1122334455667788, Data: 0x99, Source: 258, Part: pattern(3)}),
		sent(t, "request-parts", "request: the last part of a message, and the first one of the next",
			Message{Offset: 1 << 33, Part: pattern(5)}, Message{Begins: true, Length: 1 << 34, Part: pattern(8)}),
		sent(t, "request-drop", "request: the initiator has let go of a message, and sends another", Message{Offset: 1440, Drop: true}, Message{Begins: true}),
		bare("nak-busy", "nak: psn 11 is here, but there is no room for its messages", waits),
	}
}

// Whatever a payload holds, each record of a message that is read is the one that the
// writer makes of it.
func FuzzMessages(f *testing.F) {
	f.Add(sends(Message{Begins: true, Length: 3}, []byte{1, 2, 3}), uint8(1))
	f.Add(sends(Message{Begins: true, Tagged: true, HasData: true, Match: true, Length: 9, Tag: v64, Data: v64, Source: v16}, pattern(8)), uint8(1))
	f.Add(sends(Message{Offset: 8, Drop: true}, nil), uint8(1))
	f.Add(slices.Concat(sends(Message{Offset: 8}, pattern(5)), sends(Message{Begins: true}, nil)), uint8(2))
	for _, m := range taggedAtomics() {
		f.Add(atomics(m), uint8(1))
	}
	f.Fuzz(func(t *testing.T, payload []byte, ops uint8) {
		var r MessageReader
		var m Message
		r.Reset(payload, int(ops))
		for from := 0; r.Next(&m); from = r.pos {
			var w RecordWriter
			w.Reset(make([]byte, len(payload)), 1<<20)
			if !write(&w, &m) || !bytes.Equal(w.buf[:w.Len()], payload[from:r.pos]) {
				t.Fatalf("%+v becomes\n% x, was\n% x", m, w.buf[:w.Len()], payload[from:r.pos])
			}
		}
		if got := validateMessages(payload, int(ops)); got != r.Reason() {
			t.Fatalf("validateMessages says %v, the reader %v", got, r.Reason())
		}
	})
}

// TestDocOfMessage compares the tables of the two records of messages with the code.
func TestDocOfMessage(t *testing.T) {
	encode := func(v uint64, m Message) setter {
		return setter{value: v, encode: func() []byte {
			verb, head := m.verb()
			b := make([]byte, head)
			m.put(b, verb, 0)
			return b
		}}
	}
	long := func(m Message) setter {
		s := encode(v16, m)
		s.encode = func() []byte { verb, head := m.verb(); b := make([]byte, head); m.put(b, verb, v16); return b }
		return s
	}
	full := func(m Message) Message { m.Begins, m.Tagged, m.HasData = true, true, true; return m }
	with := func(v uint64, m Message) setter { return encode(v, full(m)) }
	zero := with(0, Message{}).encode()
	layout(t, table(t, "Send and tagged send"), 2, zero, map[string]setter{
		"verb": with(uint64(VerbTagged), Message{}), "flags": with(3, Message{Match: true}), "source": with(v16, Message{Source: v16}),
		"part": long(full(Message{})), "length": with(v64, Message{Length: v64}), "tag": with(v64, Message{Tag: v64}), "data": with(v64, Message{Data: v64}),
	})
	layout(t, table(t, "Part: the bytes"), 2, encode(0, Message{}).encode(), map[string]setter{
		"verb": encode(uint64(VerbPart), Message{}), "flags": encode(1, Message{Drop: true}), "part": long(Message{}), "offset": encode(v64, Message{Offset: v64}),
	})
}

// validateMessages reports whether payload holds exactly so many well-formed records of
// messages.
func validateMessages(payload []byte, records int) Reason {
	var r MessageReader
	var m Message
	for r.Reset(payload, records); r.Next(&m); {
	}
	return r.Reason()
}
