// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// dissected is what tshark's dissector says of a packet: the values of each field.
type dissected map[string][]string

func (d dissected) one(field string) string { return strings.Join(d[field], " ") }

// dissect writes packets into a capture, a microsecond apart, and reads it with tshark,
// which runs where it is installed; make dissector-check installs it.
func dissect(t *testing.T, packets [][]byte) []dissected {
	t.Helper()
	tool, err := exec.LookPath("tshark")
	if err != nil {
		if os.Getenv("XDPFAB_TSHARK") != "" {
			t.Fatal(err)
		}
		t.Skip("tshark is not installed: make dissector-check does that")
	}
	le := binary.LittleEndian
	file := le.AppendUint32(nil, 0xa1b2c3d4)
	for _, x := range []uint32{2 | 4<<16, 0, 0, 1 << 16, 1} { // version 2.4, Ethernet
		file = le.AppendUint32(file, x)
	}
	for i, p := range packets {
		for _, x := range []int{1e9, i, len(p), len(p)} {
			file = le.AppendUint32(file, uint32(x))
		}
		file = append(file, p...)
	}
	path := filepath.Join(t.TempDir(), "x.pcap")
	if err := os.WriteFile(path, file, 0o644); err != nil {
		t.Fatal(err)
	}
	script, err := filepath.Abs("../../tools/wireshark/xdpfab.lua")
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(tool, "-n", "-r", path, "-X", "lua_script:"+script, "-T", "ek", "-J", "xdpfab frame")
	c.Env = append(os.Environ(), "HOME="+t.TempDir(), "LC_ALL=C.UTF-8")
	var said strings.Builder
	c.Stderr = &said
	out, err := c.Output()
	if err != nil || strings.Contains(said.String(), "Lua") {
		t.Fatalf("tshark: %v\n%s", err, said.String())
	}
	var all []dissected
	for line := range strings.Lines(string(out)) {
		var x struct {
			Layers map[string]map[string]any
		}
		if err := json.Unmarshal([]byte(line), &x); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if x.Layers == nil {
			continue // the line of the index
		}
		d := dissected{}
		for name, v := range x.Layers["xdpfab"] {
			name = strings.TrimPrefix(strings.TrimPrefix(name, "xdpfab_"), "xdpfab_")
			if list, is := v.([]any); is {
				for _, v := range list {
					d[name] = append(d[name], fmt.Sprint(v))
				}
			} else {
				d[name] = []string{fmt.Sprint(v)}
			}
		}
		all = append(all, d)
	}
	if len(all) != len(packets) {
		t.Fatalf("%d packets are dissected, want %d", len(all), len(packets))
	}
	return all
}

// The dissector understands every frame that was recorded, in each encapsulation: it
// reads the header as this package does, takes the payload to its last byte, and finds no
// error but those that the frame tells of.
func TestDissectorOnGoldenFrames(t *testing.T) {
	ls := links()
	var packets [][]byte
	var frames []golden
	for _, g := range goldens(t) {
		if strings.HasPrefix(g.name, "packet-") {
			frame, _, reason := Decap(g.bytes)
			if reason != ReasonOK {
				t.Fatal(g.name, reason)
			}
			packets = append(packets, g.bytes)
			g.bytes = frame
		} else {
			packets = append(packets, packet(t, ls[len(packets)%3], 7, g.bytes))
		}
		frames = append(frames, g)
	}
	tells := map[string]string{"hello-ack-unauthorized": "wrong key", "hello-ack-refused": "no such endpoint", "reset-unknown": "unknown session",
		"reset-closed": "closed"}
	for i, d := range dissect(t, packets) {
		g := frames[i]
		h, payload, reason := Parse(g.bytes)
		if reason != ReasonOK {
			t.Fatal(g.name, reason)
		}
		want := fmt.Sprint(uint8(h.Type), " ", h.PSN, " ", h.Ack, " ", h.Ops, " ", h.Credit, " false")
		got := strings.Join([]string{d.one("type"), d.one("psn"), d.one("ack"), d.one("ops"), d.one("credit"), d.one("checksum_bad")}, " ")
		if got != want {
			t.Errorf("%s: header %q, want %q", g.name, got, want)
		}
		if h.Type == Response && h.Flags&FlagStatus != 0 {
			n := int(binary.LittleEndian.Uint16(payload))
			if len(d["status"]) != n || len(d["error"]) != n || d["error"][0] != Status(payload[3]).String() {
				t.Errorf("%s: statuses %v, errors %v", g.name, d["status"], d["error"])
			}
		} else if d.one("error") != tells[g.name] {
			t.Errorf("%s: error %q, want %q", g.name, d.one("error"), tells[g.name])
		}
		if len(d["padding"]) > 0 && len(g.bytes) != MinFrame && h.Flags&FlagPadded == 0 {
			t.Errorf("%s: bytes are left over: %v", g.name, d["padding"])
		}
		if h.Type == Request && h.Flags&FlagMessages == 0 && !IsCall(payload) {
			checkDissectedRecords(t, g.name, d, payload, int(h.Ops))
		}
	}
}

// checkDissectedRecords compares the records with those that this package reads.
func checkDissectedRecords(t *testing.T, name string, d dissected, payload []byte, ops int) {
	t.Helper()
	var r RecordReader
	var rec Record
	var verbs, datatypes, keys, signals []string
	r.Reset(payload, ops)
	for r.Next(&rec) {
		verbs = append(verbs, fmt.Sprint(uint8(rec.Verb)))
		if rec.Verb.Array() || rec.Verb == VerbWait {
			datatypes = append(datatypes, fmt.Sprint(rec.Datatype))
			if rec.Flags&RecordKey != 0 || rec.Verb == VerbWait {
				keys = append(keys, fmt.Sprintf("0x%016x", rec.Key))
			}
		}
		if rec.Verb == VerbSignal {
			s := SignalAt(rec.Compare)
			signals = append(signals, fmt.Sprint(s.Key, s.Offset, s.Operand, s.Incarnation, s.Op, s.Datatype))
		}
	}
	if fmt.Sprint(decimal(d["verb"])) != fmt.Sprint(verbs) || fmt.Sprint(d["datatype"]) != fmt.Sprint(datatypes) {
		t.Errorf("%s: verbs %v, datatypes %v; want %v, %v", name, d["verb"], d["datatype"], verbs, datatypes)
	}
	var shown []string
	for i := range d["signal"] {
		var words []string
		for _, field := range []string{"key", "offset", "operand", "incarnation", "op", "datatype"} {
			words = append(words, decimal(d["signal_"+field])[i])
		}
		shown = append(shown, strings.Join(words, " "))
	}
	if fmt.Sprint(shown) != fmt.Sprint(signals) {
		t.Errorf("%s: signals %v, want %v", name, shown, signals)
	}
	if len(d["key"]) != len(keys) {
		t.Fatalf("%s: keys %v, want %v", name, d["key"], keys)
	}
	for i, key := range d["key"] {
		var n uint64
		if _, err := fmt.Sscan(key, &n); err != nil || fmt.Sprintf("0x%016x", n) != keys[i] {
			t.Errorf("%s: key %s, want %s", name, key, keys[i])
		}
	}
}

// decimal turns numbers into decimal ones.
func decimal(list []string) (all []string) {
	for _, x := range list {
		var n uint64
		_, _ = fmt.Sscan(x, &n)
		all = append(all, fmt.Sprint(n))
	}
	return all
}

// The frames of a session have its number, answers lead to their requests, and what is
// wrong has its reason.
func TestDissectorFollowsSessions(t *testing.T) {
	l := links()[0]
	back := l
	back.Local, back.Remote = l.Remote, l.Local
	const epoch, psn = 0xe0e1e2e3, 100
	initiator, target := NewSessionID(1, 0, 5, 3), NewSessionID(2, 1, 6, 4)
	hello := HelloMsg{Nonce: 99, Session: uint32(initiator), Endpoint: 3, MaxFrame: 1472, Window: 64, Origin: 8, Serial: 1}
	put := func(m interface{ Put([]byte) int }) []byte {
		b := make([]byte, 256)
		return b[:m.Put(b)]
	}
	challenge := HelloAckMsg{Nonce: 99, Status: HelloChallenge, Life: 7}
	ack := HelloAckMsg{Nonce: 99, Session: uint32(target), MaxFrame: 1472, Window: 64, Life: 7}
	var w RecordWriter
	records := make([]byte, 1400)
	w.Reset(records, len(records))
	w.Append(&Record{Verb: VerbFetch, Op: 2, Datatype: 7, Key: 77, Count: 1, Offset: 1 << 40, Operand: make([]byte, 8)})
	request := Header{Type: Request, Session: uint32(target), Epoch: epoch, PSN: psn, Ops: 1}
	repeated, next := request, request
	repeated.Flags, next.PSN = FlagRetx, psn+1
	out := seal(request, records[:w.Len()])
	damaged := append([]byte{}, out...)
	damaged[40] ^= 1
	var rw ResponseWriter
	answer := make([]byte, 100)
	rw.Reset(answer, 1)
	rw.AppendStatus(0, StatusOutOfBounds)
	n, flags := rw.Finish()
	other := request
	other.Epoch = epoch + 1
	frames := []struct {
		forth                bool
		frame                []byte
		stream, of, err, exp string
	}{
		{true, seal(Header{Type: Hello, Session: HelloSession(0)}, put(&hello)), "0", "", "", ""},
		{false, seal(Header{Type: HelloAck, Session: uint32(initiator)}, put(&challenge)), "0", "", "", ""},
		{true, seal(Header{Type: Hello, Session: HelloSession(0)}, put(&hello)), "0", "", "", ""},
		{false, seal(Header{Type: HelloAck, Session: uint32(initiator), Epoch: epoch}, put(&ack)), "0", "", "", ""},
		{true, out, "0", "", "", ""},
		{true, damaged, "", "", "bad checksum", ""},
		{true, seal(repeated, records[:w.Len()]), "0", "", "", "5"},
		{true, seal(next, records[:w.Len()]), "0", "", "", ""},
		{false, seal(Header{Type: Response, Session: uint32(initiator), Epoch: epoch, PSN: psn, Ops: 1, Flags: flags}, answer[:n]), "0", "5", "out of bounds", ""},
		{false, seal(Header{Type: Ack, Session: uint32(initiator), Epoch: epoch, PSN: psn + 1, Ack: psn + 1}, nil), "0", "8", "", ""},
		{true, seal(other, records[:w.Len()]), "1", "", "", ""},
		{true, seal(other, records[:w.Len()-4]), "1", "", "truncated: no room for operand", "11"},
		{true, seal(other, []byte{0x60, 0, 0, 0, 0, 0, 0, 0}), "1", "", "bad or reserved verb 0x60", "11"},
	}
	var packets [][]byte
	for _, x := range frames {
		way := back
		if x.forth {
			way = l
		}
		packets = append(packets, packet(t, way, 7, x.frame))
	}
	for i, d := range dissect(t, packets) {
		x := frames[i]
		if d.one("stream") != x.stream || d.one("request_in") != x.of || d.one("error") != x.err || d.one("again") != x.exp {
			t.Errorf("frame %d: stream %q, request in %q, error %q, sent before in %q; want %q, %q, %q, %q", i+1, d.one("stream"),
				d.one("request_in"), d.one("error"), d.one("again"), x.stream, x.of, x.err, x.exp)
		}
	}
}
