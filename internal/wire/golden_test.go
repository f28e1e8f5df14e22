// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Version 1 is frozen, so the frames in testdata/golden never change: the flag is for new
// ones. Any change to those already there breaks every node that speaks version 1.
var update = flag.Bool("update", false, "write the frames in testdata/golden anew")

// golden is a frame or a packet that was recorded once.
type golden struct {
	name, about string
	bytes       []byte                           // as the encoder makes it
	check       func(t *testing.T, bytes []byte) // checks that decoding gives what was encoded
}

const goldenDir = "testdata/golden"

func (g *golden) path() string { return filepath.Join(goldenDir, g.name+".hex") }

// TestGoldenFrames compares the output of the encoder with the recorded frames, and
// decodes those.
func TestGoldenFrames(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(goldenDir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, g := range goldens(t) {
		t.Run(g.name, func(t *testing.T) {
			if known[g.path()] {
				t.Fatal("there are two of the name")
			}
			known[g.path()] = true
			text := "# " + g.about + "\n" + hexLines(g.bytes)
			if *update {
				if err := os.WriteFile(g.path(), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			file, err := os.ReadFile(g.path())
			if err != nil {
				t.Fatalf("%v: a new frame is written with go test ./internal/wire -run Golden -update", err)
			}
			if string(file) != text {
				t.Errorf("encoded as\n%swant\n%s", text, file)
			}
			_, lines, _ := strings.Cut(string(file), "\n")
			b, err := hex.DecodeString(strings.Join(strings.Fields(lines), ""))
			if err != nil {
				t.Fatal(err)
			}
			g.check(t, b)
		})
	}
	for _, f := range files {
		if !known[f] {
			t.Errorf("%s belongs to no test: frames of version 1 do not go away", f)
		}
	}
}

// hexLines is b in lines of 16 bytes.
func hexLines(b []byte) string {
	var s strings.Builder
	for len(b) > 0 {
		n := min(16, len(b))
		fmt.Fprintf(&s, "% x\n", b[:n])
		b = b[n:]
	}
	return s.String()
}

// head is the header that the frames have, but for what their type needs.
func head(t Type) Header {
	return Header{Type: t, Session: uint32(NewSessionID(2, 5, 1000, 33)), Epoch: 0xa1a2a3a4, PSN: 0xfffffffe, Ack: 0xfffffffd, Credit: 64, Lane: 3}
}

// opened checks that a frame has the header, and returns the payload.
func opened(t *testing.T, frame []byte, want Header) []byte {
	t.Helper()
	h, payload, reason := Parse(frame)
	if reason != ReasonOK || h != want {
		t.Fatalf("parsed as %+v, %v; want %+v", h, reason, want)
	}
	return payload
}

// bare is a frame without payload.
func bare(name, about string, h Header) golden {
	return golden{name, about, seal(h, nil), func(t *testing.T, b []byte) { opened(t, b, h) }}
}

// carrying is a frame with one message, or with a hello and a remainder in place of its
// own that a receiver skips.
func carrying[M any, P interface {
	*M
	message
}](name, about string, h Header, m M, more ...byte) golden {
	payload := make([]byte, EntryLen)
	n := P(&m).Put(payload)
	if len(more) > 0 {
		n = HelloLen
	}
	payload = append(payload[:n], more...)
	return golden{name, about, seal(h, payload), func(t *testing.T, b []byte) {
		var got M
		if r := P(&got).Parse(opened(t, b, h)); r != ReasonOK || any(got) != any(m) {
			t.Errorf("parsed as %+v, %v; want %+v", got, r, m)
		}
	}}
}

// request is a frame of records.
func request(t *testing.T, name, about string, records ...Record) golden {
	var w RecordWriter
	payload := make([]byte, 1024)
	w.Reset(payload, len(payload))
	for i := range records {
		if rec := &records[i]; rec.Verb.Atomic() {
			rec.Count, rec.Total = max(rec.Count, 1), max(rec.Total, rec.Count, 1)
		}
		if !w.Append(&records[i]) {
			t.Fatalf("%s: record %d does not fit", name, i)
		}
	}
	h := head(Request)
	h.Ops = uint8(w.Ops())
	return golden{name, about, seal(h, payload[:w.Len()]), func(t *testing.T, b []byte) {
		payload := opened(t, b, h)
		if r := Validate(payload, int(h.Ops)); r != ReasonOK {
			t.Fatalf("refused: %v", r)
		}
		for i, got := range decode(t, payload, int(h.Ops)) {
			if !sameRecord(&got, &records[i]) {
				t.Errorf("record %d is %+v, want %+v", i, got, records[i])
			}
		}
	}}
}

// response is a frame of results.
func response(t *testing.T, name, about string, results ...result) golden {
	payload, flags := putResults(t, results, 1024)
	h := head(Response)
	h.Flags, h.Ops = flags, uint8(len(results))
	return golden{name, about, seal(h, payload), func(t *testing.T, b []byte) {
		checkResults(t, opened(t, b, h), flags, results)
	}}
}

// wrapped is a packet.
func wrapped(t *testing.T, name, about string, l Link) golden {
	h := head(Probe)
	frame := seal(h, nil)
	return golden{name, about, packet(t, l, h.Session, frame), func(t *testing.T, b []byte) {
		got, from, reason := Decap(b)
		want := Source{Kind: l.Kind, VLAN: l.VLAN, Remote: l.Local, Local: l.Remote, RemoteIP: l.LocalIP, LocalIP: l.RemoteIP}
		if reason != ReasonOK || from != want || !bytes.Equal(got, frame) {
			t.Errorf("from %+v, %v, frame\n%swant %+v\n%s", from, reason, hexLines(got), want, hexLines(frame))
		}
	}}
}
