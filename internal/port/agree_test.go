// SPDX-License-Identifier: Apache-2.0

//go:build linux

package port

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"github.com/cilium/ebpf"

	"github.com/xdpfab/xdpfab/bpf"
	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// judge is the XDP program, loaded but not attached. It has no sockets, so a frame
// that it would hand over is counted as DropNoSocket.
type judge struct {
	cfg     bpf.Config
	program *bpf.Program
	run     *ebpf.Program
}

func newJudge(t testing.TB) *judge {
	t.Helper()
	j := &judge{cfg: bpf.Config{
		MAC: [6]byte{2, 0, 0, 0, 0, 0x0b}, MTU: bpf.DefaultMTU, VLAN: bpf.VLANAny, UDP: true,
		Addrs: []netip.Addr{netip.MustParseAddr("10.0.0.2"), netip.MustParseAddr("fd00::2")},
	}}
	testnet.Require(t)
	var err error
	if j.program, err = bpf.Load(j.cfg, 1); err == nil {
		t.Cleanup(func() { j.program.Close() })
		j.run, err = ebpf.NewProgramFromID(ebpf.ProgramID(j.program.ID()))
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.run.Close() })
	return j
}

// says returns the program's reason for a packet (BPF_PROG_TEST_RUN).
func (j *judge) says(t testing.TB, packet []byte) bpf.Reason {
	t.Helper()
	before, err := j.program.Counters()
	if err != nil {
		t.Fatal(err)
	}
	if _, err = j.run.Run(&ebpf.RunOptions{Data: packet}); err != nil {
		t.Fatalf("test run of %d bytes: %v", len(packet), err)
	}
	after, err := j.program.Counters()
	if err != nil {
		t.Fatal(err)
	}
	for r := range bpf.NumReasons {
		if after[r] != before[r] {
			return r
		}
	}
	t.Fatal("no counter moved")
	return 0
}

// allowed reports whether the program may give a reason for a packet, given the
// codec's verdict. One reason is allowed, unless the codec finds wrong lengths or
// odd headers: it checks in another order then, and the program may give any
// reason for not accepting the packet. So
//
//   - the program accepts a packet exactly if the codec finds a frame in it that is
//     for this node, of valid length, version and type;
//   - a packet that is not ours to the codec goes to the kernel, as do
//     fragments, and packets for another MAC or IP address;
//   - a packet that is ours is dropped exactly for the codec's reason.
//
// Checksum, flags, lanes, records and payload are the codec's alone.
func (j *judge) allowed(packet []byte) []bpf.Reason {
	view, src, reason := wire.Decap(packet)
	switch reason {
	case wire.ReasonOK, wire.ReasonBadSource:
	case wire.ReasonNotOurs: // another protocol or port, or a group as the addressee
		return []bpf.Reason{bpf.PassOther, bpf.PassMAC, bpf.PassAddr}
	case wire.ReasonFragment:
		return []bpf.Reason{bpf.PassFragment}
	default: // truncated, or bad encapsulation
		return []bpf.Reason{bpf.PassOther, bpf.PassOptions, bpf.PassMAC, bpf.PassAddr, bpf.DropUDPLength, bpf.DropShort, bpf.DropSource}
	}
	switch {
	case src.Local != wire.MAC(j.cfg.MAC):
		return []bpf.Reason{bpf.PassMAC}
	case src.Kind != wire.Ethernet && !slices.Contains(j.cfg.Addrs, src.LocalIP):
		return []bpf.Reason{bpf.PassAddr}
	case reason == wire.ReasonBadSource:
		return []bpf.Reason{bpf.DropSource}
	case len(view) < wire.MinFrame:
		return []bpf.Reason{bpf.DropShort}
	case len(view) > j.cfg.MTU-src.Kind.Overhead():
		return []bpf.Reason{bpf.DropLong}
	}
	// The checksum is made right, so that Parse looks at the rest.
	frame := slices.Clone(view)
	wire.Seal(frame, len(frame))
	switch _, _, reason := wire.Parse(frame); reason {
	case wire.ReasonBadVersion:
		return []bpf.Reason{bpf.DropVersion}
	case wire.ReasonBadType:
		return []bpf.Reason{bpf.DropType}
	}
	return []bpf.Reason{bpf.DropNoSocket}
}

// The kernel takes test packets from an Ethernet header up to what fits a page
// with head and tail room.
const minTestRun, maxTestRun = 14, 3300

func (j *judge) check(t testing.TB, packet []byte) bpf.Reason {
	t.Helper()
	got, want := j.says(t, packet), j.allowed(packet)
	if !slices.Contains(want, got) {
		_, src, reason := wire.Decap(packet)
		t.Errorf("program says %v, codec %v from %+v, which allows %v; packet %x", got, reason, src, want, packet)
	}
	return got
}

// seeds are packets as our own encoder makes them, in every encapsulation, with
// and without a tag.
func (j *judge) seeds(t testing.TB, frameLen int) (packets [][]byte) {
	t.Helper()
	for _, k := range kinds {
		for _, vlan := range []uint16{0, 100} {
			l := wire.Link{Kind: k, VLAN: vlan, Local: wire.MAC{2, 0, 0, 0, 0, 0x0a}, Remote: wire.MAC(j.cfg.MAC)}
			if k == wire.UDP4 {
				l.LocalIP, l.RemoteIP = netip.MustParseAddr("10.0.0.1"), j.cfg.Addrs[0]
			} else if k == wire.UDP6 {
				l.LocalIP, l.RemoteIP = netip.MustParseAddr("fd00::1"), j.cfg.Addrs[1]
			}
			tpl, err := wire.NewTemplate(l)
			if err != nil {
				t.Fatal(err)
			}
			b := make([]byte, tpl.Len()+max(frameLen, wire.MinFrame))
			h := wire.Header{Type: wire.Request, Session: wire.HelloSession(5), Ops: 1}
			h.Put(b[tpl.Len():])
			n := tpl.Put(b, wire.Seal(b[tpl.Len():], max(frameLen, wire.HeaderLen)))
			packets = append(packets, b[:n])
		}
	}
	return packets
}

func TestParsersAgree(t *testing.T) {
	j := newJudge(t)
	var seen [bpf.NumReasons]int
	for _, n := range []int{46, 100, 1500 - 48, 1500 - 47, 1500 - 28, 1500 - 27, 1500, 1501} {
		for _, p := range j.seeds(t, n) {
			seen[j.check(t, p)]++
		}
	}
	if seen[bpf.DropNoSocket] == 0 || seen[bpf.DropLong] == 0 {
		t.Errorf("packets of our own encoder, by reason: %v", seen)
	}
	values := []byte{0, 1, 4, 5, 6, 8, 0x10, 0x11, 0x13, 0x18, 0x19, 0x20, 0x2c, 0x45, 0x46, 0x60, 0x81, 0x86, 0x88, 0xb5, 0xff}
	rng := rand.New(rand.NewPCG(5, 6))
	base := j.seeds(t, 46)
	rounds := 20000
	if testing.Short() {
		rounds /= 10
	}
	for range rounds {
		p := slices.Clone(base[rng.IntN(len(base))])
		for range 1 + rng.IntN(3) {
			at := rng.IntN(min(len(p), 80))
			switch rng.IntN(4) {
			case 0:
				p[at] = values[rng.IntN(len(values))]
			case 1:
				p[at] ^= 1 << rng.IntN(8)
			case 2:
				p[at] += byte(rng.IntN(3)) - 1
			case 3:
				p = slices.Insert(p, at, values[rng.IntN(len(values))])
			}
		}
		switch rng.IntN(8) {
		case 0:
			p = p[:minTestRun+rng.IntN(len(p)-minTestRun+1)]
		case 1:
			p = append(p, make([]byte, rng.IntN(30))...)
		}
		seen[j.check(t, p)]++
		if t.Failed() {
			return
		}
	}
	for r, n := range seen {
		if r := bpf.Reason(r); n == 0 && r != bpf.Redirect && r != bpf.PassVLAN && r != bpf.Executed { // neither can happen here
			t.Errorf("no packet met %v: this test lost its reach", r)
		}
	}
	t.Logf("packets by reason: %v", seen)
}

// FuzzParsersAgree gives arbitrary bytes to program and codec; see allowed.
func FuzzParsersAgree(f *testing.F) {
	j := newJudge(f)
	for _, n := range []int{46, 100, 1500} {
		for _, p := range j.seeds(f, n) {
			f.Add(p)
			f.Add(p[:len(p)-1])
		}
	}
	f.Fuzz(func(t *testing.T, packet []byte) {
		if len(packet) >= minTestRun && len(packet) <= maxTestRun {
			j.check(t, packet)
		}
	})
}
