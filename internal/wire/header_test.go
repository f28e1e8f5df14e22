// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"testing"
)

// goodHeader is a header in which no two bytes of the fields are equal.
func goodHeader(t Type) Header {
	h := Header{Type: t, Flags: FlagRetx, Session: 0x04030201, Epoch: 0x14131211, PSN: 0x24232221, Ack: 0x34333231,
		Sack: 0x4847464544434241, Credit: 0x5251, Lane: 0x3f}
	switch t {
	case Request, Response:
		h.Ops = 0x61
	case Tickets:
		h.Flags = 0
	}
	return h
}

// payloadFor returns a payload that Parse accepts for the type.
func payloadFor(t Type, n int) []byte {
	switch t {
	case Hello, HelloAck:
		return make([]byte, HelloLen)
	case Reset:
		return make([]byte, ResetLen)
	case Tickets:
		return tickets(Ticket{PSN: 7, Kind: TicketAsk, Index: 3})
	case Request, Response:
		p := make([]byte, n)
		for i := range p {
			p[i] = byte(i*7 + 1)
		}
		return p
	}
	return nil
}

// seal builds a frame; it has no capacity to spare.
func seal(h Header, payload []byte) []byte {
	b := make([]byte, max(MinFrame, HeaderLen+len(payload)))
	for i := range b {
		b[i] = 0xee // Put and Seal must not rely on zeros
	}
	h.Put(b)
	n := Seal(b, HeaderLen+copy(b[HeaderLen:], payload))
	return b[:n]
}

func TestHeaderLayout(t *testing.T) {
	h := goodHeader(Request)
	got := seal(h, nil)[:crcOff]
	want := []byte{0x13, 0x02, 0x01, 0x02, 0x03, 0x04, 0x11, 0x12, 0x13, 0x14, 0x21, 0x22, 0x23, 0x24,
		0x31, 0x32, 0x33, 0x34, 0x41, 0x42, 0x43, 0x44, 0x45, 0x46, 0x47, 0x48, 0x51, 0x52, 0x61, 0x3f}
	if !bytes.Equal(got, want) {
		t.Fatalf("header\n% x, want\n% x", got, want)
	}
}

func TestFrameRoundTrip(t *testing.T) {
	for typ := Hello; typ <= Probe; typ++ {
		for _, n := range []int{8, 11, 12, 13, 64, 1400} {
			h, payload := goodHeader(typ), payloadFor(typ, n)
			frame := seal(h, payload)
			before := bytes.Clone(frame)
			got, p, r := Parse(frame)
			if r != ReasonOK {
				t.Fatalf("%v, payload of %d: %v", typ, len(payload), r)
			}
			if got != h {
				t.Fatalf("%v: %+v, want %+v", typ, got, h)
			}
			if !bytes.HasPrefix(p, payload) || checkZero(p[len(payload):]) != ReasonOK {
				t.Fatalf("%v: payload % x, want % x", typ, p, payload)
			}
			if !bytes.Equal(frame, before) {
				t.Fatal("Parse wrote to the frame")
			}
		}
	}
}

// TestHelloRemainder: a hello or a hello-ack may have a remainder of at most HelloRoom
// bytes.
func TestHelloRemainder(t *testing.T) {
	for _, typ := range []Type{Hello, HelloAck} {
		for _, n := range []int{1, HelloRoom} {
			payload := pattern(HelloLen + n)
			if _, p, r := Parse(seal(goodHeader(typ), payload)); r != ReasonOK || !bytes.Equal(p, payload) {
				t.Errorf("%v with %d bytes more: %v with a payload of %d, want %d", typ, n, r, len(p), len(payload))
			}
		}
	}
}

func TestParseRefuses(t *testing.T) {
	header := func(f func(*Header)) []byte {
		h := goodHeader(Request)
		f(&h)
		return seal(h, payloadFor(h.Type, 12))
	}
	raw := func(f func(b []byte) []byte) []byte {
		b := f(seal(goodHeader(Ack), nil))
		if len(b) >= MinFrame {
			binary.LittleEndian.PutUint32(b[crcOff:], Checksum(b))
		}
		return b
	}
	tests := []struct {
		name  string
		frame []byte
		want  Reason
	}{
		{"empty", nil, ReasonTruncated},
		{"short", make([]byte, MinFrame-1), ReasonTruncated},
		{"huge", make([]byte, MaxFrame+1), ReasonOversized},
		{"zeros", make([]byte, MinFrame), ReasonBadVersion},
		{"version", raw(func(b []byte) []byte { b[0] = b[0]&15 | 2<<4; return b }), ReasonBadVersion},
		{"type 0", raw(func(b []byte) []byte { b[0] = 1 << 4; return b }), ReasonBadType},
		{"type 10", raw(func(b []byte) []byte { b[0] = 1<<4 | 10; return b }), ReasonReservedType},
		{"type 15", raw(func(b []byte) []byte { b[0] = 1<<4 | 15; return b }), ReasonReservedType},
		{"flags", raw(func(b []byte) []byte { b[1] = 4; return b }), ReasonBadFlags},
		{"status in ack", raw(func(b []byte) []byte { b[1] = FlagStatus; return b }), ReasonBadFlags},
		{"lane", header(func(h *Header) { h.Lane = MaxLanes }), ReasonBadLane},
		{"no ops", header(func(h *Header) { h.Ops = 0 }), ReasonBadOps},
		{"ops in probe", header(func(h *Header) { h.Type = Probe }), ReasonBadOps},
		{"padding", raw(func(b []byte) []byte { b[MinFrame-1] = 1; return b }), ReasonBadPadding},
		{"trailing zero", raw(func(b []byte) []byte { return append(b, 0) }), ReasonTrailing},
		{"short hello", raw(func(b []byte) []byte { b[0] = 1<<4 | byte(Hello); return b }), ReasonBadPayload},
		{"long hello", seal(goodHeader(Hello), make([]byte, HelloLen+HelloRoom+1)), ReasonTrailing},
		{"long reset", seal(goodHeader(Reset), make([]byte, ResetLen+1)), ReasonTrailing},
	}
	for _, tt := range tests {
		if _, p, r := Parse(tt.frame); r != tt.want || p != nil {
			t.Errorf("%s: %v with payload % x, want %v", tt.name, r, p, tt.want)
		}
	}
}

func TestEveryBitFlipIsDetected(t *testing.T) {
	for _, n := range []int{12, 13, 40, 700} {
		frame := seal(goodHeader(Request), payloadFor(Request, n))
		for bit := range len(frame) * 8 {
			frame[bit/8] ^= 1 << (bit % 8)
			if _, _, r := Parse(frame); r == ReasonOK {
				t.Fatalf("payload of %d: flip of bit %d passes", n, bit)
			}
			frame[bit/8] ^= 1 << (bit % 8)
		}
	}
}

func TestEveryTruncationIsDetected(t *testing.T) {
	frame := seal(goodHeader(Request), payloadFor(Request, 200))
	for n := range len(frame) {
		if _, _, r := Parse(frame[:n]); r == ReasonOK {
			t.Fatalf("the first %d of %d bytes pass", n, len(frame))
		}
	}
}

// TestChecksum compares the table-driven sum with the definition.
func TestChecksum(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for n := MinFrame; n < 300; n++ {
		frame := make([]byte, n)
		for i := range frame {
			frame[i] = byte(rng.Uint32())
		}
		zeroed := bytes.Clone(frame)
		clear(zeroed[crcOff:HeaderLen])
		want := crc32.Checksum(zeroed, crc32.MakeTable(crc32.Castagnoli))
		if got := Checksum(frame); got != want {
			t.Fatalf("%d bytes: %#x, want %#x", n, got, want)
		}
	}
}

func TestNames(t *testing.T) {
	tests := map[string]fmt.Stringer{
		"hello-ack": HelloAck, "probe": Probe, "type(0)": Type(0), "type(10)": Type(10), "tickets": Tickets, "ok": ReasonOK,
		"trailing bytes": ReasonTrailing, "reason(200)": Reason(200), "not executed": StatusNotExecuted,
		"status(11)": Status(11), "cookie challenge": HelloChallenge, "out of window": ResetOutOfWindow,
		"reset reason(0)": ResetReason(0), "udp6": UDP6,
	}
	for want, v := range tests {
		if got := v.String(); got != want {
			t.Errorf("%#v: %q, want %q", v, got, want)
		}
	}
	for r := range NumReasons {
		if reasonNames[r] == "" {
			t.Errorf("reason %d has no name", r)
		}
	}
}

func TestPSN(t *testing.T) {
	const top = ^uint32(0)
	for _, c := range []struct {
		a, b uint32
		want int32
	}{{7, 7, 0}, {2, top, 3}, {top, 2, -3}, {top, 0, -1}, {5, top - 5, 11}} {
		if got := Diff(c.a, c.b); got != c.want {
			t.Errorf("%d is %d ahead of %d, want %d", c.a, got, c.b, c.want)
		}
	}
}

func TestSessionID(t *testing.T) {
	id := NewSessionID(63, 41, 12345, 21)
	if id.Lane() != 63 || id.Queue() != 41 || id.Index() != 12345 || id.Tag() != 21 {
		t.Errorf("%#x: lane %d queue %d index %d tag %d", id, id.Lane(), id.Queue(), id.Index(), id.Tag())
	}
	if id := NewSessionID(1, MaxQueues+1, MaxSessions+2, MaxTags+3); id != NewSessionID(1, 1, 2, 3) {
		t.Errorf("fields run into one another: %#x", id)
	}
	if HelloSession(5) != uint32(NewSessionID(5, 0, 0, 0)) {
		t.Error("the session of a hello is not its lane")
	}
}

func TestFrameAllocs(t *testing.T) {
	buf := make([]byte, 1500)
	h := goodHeader(Request)
	if n := testing.AllocsPerRun(100, func() {
		h.Put(buf)
		n := Seal(buf, 1400)
		_, _, _ = Parse(buf[:n])
		n = Seal(buf, HeaderLen)
		_, _, _ = Parse(buf[:n])
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzFrame(f *testing.F) {
	for typ := Hello; typ <= Tickets; typ++ {
		f.Add(seal(goodHeader(typ), payloadFor(typ, 30)), true)
	}
	f.Add([]byte{}, false)
	f.Fuzz(func(t *testing.T, frame []byte, reseal bool) {
		if reseal && len(frame) >= MinFrame {
			binary.LittleEndian.PutUint32(frame[crcOff:], Checksum(frame)) // correct, so that the rules behind it are tested
		}
		h, payload, r := Parse(frame)
		if r != ReasonOK {
			return
		}
		if h.Type == Request && h.Flags&FlagPadded != 0 { // the payload ends before the padding
			if !bytes.HasPrefix(frame[HeaderLen:], payload) {
				t.Fatalf("% x has the payload % x", frame, payload)
			}
			return
		}
		if again := seal(h, payload); !bytes.Equal(again, frame) {
			t.Fatalf("% x encodes again as % x", frame, again)
		}
	})
}

func BenchmarkSeal(b *testing.B) {
	for _, n := range []int{MinFrame, 1400} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			buf := make([]byte, 2048)[14:]
			h := goodHeader(Request)
			b.ReportAllocs()
			b.SetBytes(int64(n))
			for b.Loop() {
				h.PSN++
				h.Put(buf)
				Seal(buf, n)
			}
		})
	}
}

func BenchmarkParse(b *testing.B) {
	for _, n := range []int{MinFrame, 1400} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			frame := append(make([]byte, 14), seal(goodHeader(Request), payloadFor(Request, n-HeaderLen))...)[14:]
			b.ReportAllocs()
			b.SetBytes(int64(n))
			for b.Loop() {
				if _, _, r := Parse(frame); r != ReasonOK {
					b.Fatal(r)
				}
			}
		})
	}
}
