// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"encoding/hex"
	"os/exec"
	"path/filepath"
	"testing"
)

// goldenCalls are calls, and the responses to them.
func goldenCalls(t *testing.T) []golden {
	return []golden{
		call(t, "request-call", "request: a call of 11 bytes, padded, with room for a reply of 300 bytes", 11, 300),
		call(t, "request-call-empty", "request: a call of no bytes, without room for a reply", 0, 0),
		reply("response-call", "response to a call: 5 bytes of a reply of 9, padded", Reply{ReplyOK, 9, pattern(5)}, 5),
		reply("response-call-failed", "response to a call: the function returned an error", Reply{ReplyFailed, 9, []byte("too large")}, 300),
		reply("response-call-panic", "response to a call: the function panicked, and there is no room for the text", Reply{ReplyPanic, 4, nil}, 0),
		response(t, "response-call-refused", "response to a call: the target holds as many requests as it may", result{status: StatusNoRoom}),
	}
}

func call(t *testing.T, name, about string, n int, most uint32) golden {
	var w RecordWriter
	payload := make([]byte, 1024)
	w.Reset(payload, len(payload))
	want := Call{Request: pattern(n), Most: most, Source: 4711}
	place, ok := w.Call(&want, n)
	if !ok {
		t.Fatalf("%s does not fit", name)
	}
	copy(place, want.Request)
	h := head(Request)
	h.Ops = 1
	return golden{name, about, seal(h, payload[:w.Len()]), func(t *testing.T, b []byte) {
		var got Call
		if r := got.ParseCall(opened(t, b, h), 1); r != ReasonOK || !bytes.Equal(got.Request, want.Request) || got.Most != want.Most || got.Source != want.Source {
			t.Errorf("%+v, %v; want %+v", got, r, want)
		}
	}}
}

func reply(name, about string, want Reply, most int) golden {
	payload := make([]byte, 1024)
	h := head(Response)
	h.Ops = 1
	return golden{name, about, seal(h, payload[:want.Put(payload)]), func(t *testing.T, b []byte) {
		var got Reply
		if r := got.ParseReply(opened(t, b, h), most); r != ReasonOK || !bytes.Equal(got.Bytes, want.Bytes) || got.Length != want.Length || got.Kind != want.Kind {
			t.Errorf("%+v, %v; want %+v", got, r, want)
		}
	}}
}

// TestCallFramesOfC: a program in C that follows the document makes the same frames.
func TestCallFramesOfC(t *testing.T) {
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skipf("needs a C compiler: %v", err)
	}
	program := filepath.Join(t.TempDir(), "call")
	if out, err := exec.Command(cc, "-O1", "-Wall", "-Werror", "-o", program, "testdata/call.c").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	said, err := exec.Command(program).Output()
	if err != nil {
		t.Fatal(err)
	}
	want := ""
	for _, g := range goldenCalls(t) {
		want += g.name + ": " + hex.EncodeToString(g.bytes) + "\n"
	}
	if string(said) != want {
		t.Errorf("the program in C says\n%swant\n%s", said, want)
	}
}

// A call is alone in its frame, and as long as it says. Whatever else there is, or is
// missing, is refused.
func TestCallIsAlone(t *testing.T) {
	var w RecordWriter
	payload := make([]byte, 200)
	w.Reset(payload, len(payload))
	if _, ok := w.Call(&Call{}, len(payload)-CallHead+1); ok || w.Ops() > 0 {
		t.Error("a call that is longer than the frame has been appended")
	}
	if n := w.MostReply(); n != len(payload)-ReplyHead-statusHead {
		t.Errorf("there is room for a reply of %d bytes", n)
	}
	if !w.Append(&Record{Verb: VerbList}) {
		t.Fatal("no room for a record")
	}
	if _, ok := w.Call(&Call{}, 1); ok {
		t.Error("a call has been appended to another record")
	}
	w.Reset(payload, len(payload))
	place, ok := w.Call(&Call{Most: 7}, 50)
	if !ok || len(place) != 50 || !w.Full() || w.Append(&Record{Verb: VerbList}) {
		t.Fatalf("%d bytes, %t; full: %t", len(place), ok, w.Full())
	}
	whole := payload[:w.Len()]
	for name, at := range map[string]struct {
		payload []byte
		ops     int
		want    Reason
	}{
		"whole":     {whole, 1, ReasonOK},
		"two":       {whole, 2, ReasonBadOps},
		"cut":       {whole[:len(whole)-4], 1, ReasonTruncated},
		"no head":   {whole[:8], 1, ReasonTruncated},
		"trailing":  {append(bytes.Clone(whole), 0, 0, 0, 0), 1, ReasonTrailing},
		"flag":      {changed(whole, 1), 1, ReasonBadFlags},
		"padding":   {changed(whole, len(whole)-1), 1, ReasonBadPadding},
		"too long":  {changed(whole, 7), 1, ReasonTruncated},
		"any verb":  {changed(whole, 0), 1, ReasonOK}, // which IsCall tells
		"any reply": {changed(whole, 11), 1, ReasonOK},
	} {
		var c Call
		if got := c.ParseCall(at.payload, at.ops); got != at.want {
			t.Errorf("%s: %v, want %v", name, got, at.want)
		}
	}
	if !IsCall(whole) || IsCall(nil) || IsCall(changed(whole, 0)) {
		t.Error("a call is not told from others")
	}
	if Validate(whole, 1) != ReasonReservedVerb {
		t.Error("the reader of other records takes a call")
	}
}

func changed(b []byte, at int) []byte {
	b = bytes.Clone(b)
	b[at] ^= 0x10
	return b
}

// A reply says what it says, cut to what there is room for at both ends.
func TestReplies(t *testing.T) {
	for _, n := range []int{0, 1, 4, 50, 51, 52, 53, 1000} {
		for _, room := range []int{ReplyHead, ReplyHead + 1, ReplyHead + 4, 60, 61, 2000} {
			b := bytes.Repeat([]byte{0xee}, room)
			sent := Reply{Kind: ReplyOK, Length: uint32(n), Bytes: pattern(n)}
			most := (room - ReplyHead) &^ 3
			payload := b[:sent.Put(b)]
			var got Reply
			if r := got.ParseReply(payload, most); r != ReasonOK || got.Length != uint32(n) || !bytes.Equal(got.Bytes, pattern(n)[:min(n, most)]) {
				t.Fatalf("%d bytes in %d: %v, %+v", n, room, r, got)
			}
			if n > 0 && most > 0 && got.ParseReply(payload[:len(payload)-4], most) != ReasonTruncated {
				t.Errorf("%d bytes in %d: accepted without its end", n, room)
			}
			if got.ParseReply(append(bytes.Clone(payload), 0, 0, 0, 0), most) == ReasonOK && len(payload)+4 != minPayload {
				t.Errorf("%d bytes in %d: accepted with more", n, room)
			}
		}
	}
	var got Reply
	for name, b := range map[string][]byte{"kind": {0, 0, 0, 0, 3, 0, 0, 0}, "reserved": {0, 0, 0, 0, 0, 0, 1, 0}, "head": {0, 0, 0, 0}} {
		if got.ParseReply(b, 10) == ReasonOK {
			t.Errorf("%s: accepted", name)
		}
	}
}

// FuzzCall: what is decoded is encoded alike, and nothing panics.
func FuzzCall(f *testing.F) {
	for _, g := range goldenCalls(&testing.T{}) {
		_, payload, _ := Parse(g.bytes)
		f.Add(payload, 300)
	}
	f.Fuzz(func(t *testing.T, payload []byte, most int) {
		var c Call
		if IsCall(payload) && c.ParseCall(payload, 1) == ReasonOK {
			var w RecordWriter
			b := make([]byte, len(payload)+64)
			w.Reset(b, len(b))
			place, ok := w.Call(&c, len(c.Request))
			if copy(place, c.Request); !ok || !bytes.Equal(b[:w.Len()], payload[:w.Len()]) {
				t.Fatalf("% x, want % x", b[:w.Len()], payload)
			}
		}
		var r Reply
		if r.ParseReply(payload, most) == ReasonOK {
			b := make([]byte, len(payload)+64)
			if n := r.Put(b); !bytes.Equal(b[:n], payload[:n]) {
				t.Fatalf("% x, want % x", b[:n], payload)
			}
		}
	})
}
