// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"bytes"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/internal/wire"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// injector sends raw packets from a namespace, as any stranger could.
type injector struct{ fd int }

func newInjector(t *testing.T, s *testnet.Side) *injector {
	t.Helper()
	i := &injector{}
	err := s.Do(func() (err error) {
		i.fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW, 0)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(i.fd) })
	if err := unix.Bind(i.fd, &unix.SockaddrLinklayer{Ifindex: s.IfIndex}); err != nil {
		t.Fatal(err)
	}
	return i
}

func (i *injector) send(t *testing.T, packet []byte) {
	t.Helper()
	if _, err := unix.Write(i.fd, packet); err != nil {
		t.Fatal(err)
	}
}

// forge builds a sealed frame in a packet from pair.A to pair.B.
func forge(t *testing.T, pair *testnet.Pair, h wire.Header, payload []byte) []byte {
	t.Helper()
	link, err := wire.NewTemplate(wire.Link{Local: wire.MAC(pair.A.MAC), Remote: wire.MAC(pair.B.MAC)})
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 4096)
	at := link.Len()
	h.Put(b[at:])
	n := wire.Seal(b[at:], wire.HeaderLen+copy(b[at+wire.HeaderLen:], payload))
	return b[:link.Put(b, n)]
}

// addTo returns the payload of a request that would add 1 to the word at 0.
func addTo(t *testing.T, key uint64) []byte {
	t.Helper()
	var w wire.RecordWriter
	b := make([]byte, 256)
	w.Reset(b, 256)
	if !w.Append(&wire.Record{
		Verb: wire.VerbAtomic, Op: uint8(atomic.Sum), Datatype: uint8(atomic.Uint64), Key: key,
		Operand: []byte{1, 0, 0, 0, 0, 0, 0, 0},
	}) {
		t.Fatal("record does not fit")
	}
	return b[:w.Len()]
}

// A frame from the wire that belongs to no session is counted by its reason, and changes
// nothing.
func TestVethForgedFrames(t *testing.T) {
	testnet.Require(t)
	pair := testnet.NewPair(t, testnet.Options{})
	var server *xdpfab.Domain
	err := pair.B.Do(func() (err error) {
		server, err = xdpfab.Open(t.Context(), pair.B.IfName, fi.DomainAttr{})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	defer server.CloseAll()
	region, err := server.NewRegion("r", 4096)
	if err != nil {
		t.Fatal(err)
	}
	ep, err := server.NewEndpoint(fi.EndpointAttr{})
	if err != nil {
		t.Fatal(err)
	}
	if err := ep.Enable(); err != nil {
		t.Fatal(err)
	}
	in := newInjector(t, pair.A)
	// A NIC drops frames to others by itself.
	testnet.IP(t, pair.B, "link set "+pair.B.IfName+" promisc on")

	request := wire.Header{Type: wire.Request, Session: uint32(wire.NewSessionID(0, 0, 0, 1)), Ops: 1, PSN: 1}
	good := func() []byte { return forge(t, pair, request, addTo(t, region.Key())) }
	edit := func(f func(b []byte) []byte) []byte { return f(good()) }
	hello := wire.HelloMsg{Nonce: 1, Session: 64, MaxFrame: 1500, Window: 8}
	var helloBytes [wire.HelloLen]byte
	tiny := hello
	tiny.MaxFrame = 40
	var tinyBytes [wire.HelloLen]byte
	hello.Put(helloBytes[:])
	tiny.Put(tinyBytes[:])
	cases := []struct {
		name    string
		packet  []byte
		counter string
	}{
		{"request of no session", good(), "unknown_session"},
		{"truncated", edit(func(b []byte) []byte { return b[:14+30] }), "xdp_drop_short"},
		{"oversized", edit(func(b []byte) []byte { return append(b, make([]byte, 1514-len(b))...) }), "refused_bad_crc"},
		{"wrong version", edit(func(b []byte) []byte { b[14] = 0x23; return b }), "xdp_drop_version"},
		{"type 0", edit(func(b []byte) []byte { b[14] = 0x10; return b }), "xdp_drop_type"},
		{"type of an extension", forge(t, pair, wire.Header{Type: 15}, nil), "refused_reserved_type"},
		{"bit flipped in the header", edit(func(b []byte) []byte { b[14+11] ^= 4; return b }), "refused_bad_crc"},
		{"bit flipped in an operand", edit(func(b []byte) []byte { b[len(b)-3] ^= 128; return b }), "refused_bad_crc"},
		{"bit flipped in the checksum", edit(func(b []byte) []byte { b[14+31] ^= 1; return b }), "refused_bad_crc"},
		{"flags of another type", forge(t, pair, wire.Header{Type: wire.Ack, Flags: wire.FlagStatus}, nil), "refused_bad_flags"},
		{"request without records", forge(t, pair, wire.Header{Type: wire.Request}, nil), "refused_bad_ops"},
		{"payload of an ack", forge(t, pair, wire.Header{Type: wire.Ack}, make([]byte, 64)), "refused_trailing_bytes"},
		{"padding with content", edit(func([]byte) []byte {
			return forge(t, pair, wire.Header{Type: wire.Ack}, []byte{1, 2, 3})
		}), "refused_bad_padding"},
		{"lane without a socket", forge(t, pair, wire.Header{Type: wire.Request, Session: 9 << 26, Ops: 1}, addTo(t, 1)), "xdp_drop_no_socket"},
		{"another node's address", edit(func(b []byte) []byte { b[5] ^= 1; return b }), "xdp_pass_mac"},
		{"hello without a cookie", forge(t, pair, wire.Header{Type: wire.Hello}, helloBytes[:]), "hellos"},
		{"hello for tiny frames", forge(t, pair, wire.Header{Type: wire.Hello}, tinyBytes[:]), "invalid"},
		{"reset of no session", forge(t, pair, wire.Header{Type: wire.Reset}, make([]byte, 12)), "invalid"},
	}
	for _, c := range cases {
		if c.name == "truncated" && testnet.Borrowed(t) != nil {
			continue // a NIC pads frames to 60 bytes
		}
		before := settled(t, server)
		in.send(t, c.packet)
		waitFor(t, server, c.name, c.counter, before[c.counter])
	}
	after := settled(t, server)
	if after["sessions_accepted"] != 0 || after["ops_executed"] != 0 {
		t.Errorf("a forged frame was served: %v sessions, %v operations", after["sessions_accepted"], after["ops_executed"])
	}
	if !bytes.Equal(region.Bytes(), make([]byte, 4096)) {
		t.Error("a forged frame changed memory")
	}
}

func settled(t *testing.T, d *xdpfab.Domain) map[string]uint64 {
	t.Helper()
	c, err := d.Stats()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// waitFor expects one counter to move by one.
func waitFor(t *testing.T, d *xdpfab.Domain, name, counter string, before uint64) {
	t.Helper()
	if _, known := settled(t, d)[counter]; !known {
		t.Fatalf("%s: there is no counter %q", name, counter)
	}
	for end := time.Now().Add(testnet.Patience); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if now := settled(t, d)[counter]; now == before+1 {
			return
		} else if now > before+1 {
			t.Errorf("%s: %s went from %d to %d", name, counter, before, now)
			return
		}
	}
	t.Errorf("%s: %s did not move; counters: %v", name, counter, settled(t, d))
}
