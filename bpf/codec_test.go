// SPDX-License-Identifier: Apache-2.0

//go:build linux

package bpf

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/xdpfab/xdpfab/internal/wire"
)

// agree checks that program and codec agree on a packet, as far as both look:
// the codec finds a frame in every packet that the program hands over, and the
// program hands over every packet that the codec would accept.
func agree(t *testing.T, p *Program, cfg *Config, packet []byte) {
	t.Helper()
	got := run(t, p, packet, nil)
	taken := got == Redirect || got == DropNoSocket
	view, from, reason := wire.Decap(packet)
	if reason != wire.ReasonOK || from.Local != wire.MAC(ourMAC) ||
		from.Kind != wire.Ethernet && !slices.Contains(cfg.Addrs, from.LocalIP) {
		if taken {
			t.Errorf("program says %v, codec %v from %+v; packet %x", got, reason, from, packet)
		}
		return
	}
	// Sealing gives the frame a valid checksum, so that Parse goes on to the
	// rest; a frame too short for that is left alone.
	frame, want := slices.Clone(view), Redirect
	if len(frame) >= wire.MinFrame {
		wire.Seal(frame, len(frame))
	}
	h, _, parsed := wire.Parse(frame)
	switch {
	case parsed == wire.ReasonTruncated && len(frame) < wire.MinFrame:
		want = DropShort
	case len(frame)+from.Kind.Overhead() > DefaultMTU:
		want = DropLong
	case parsed == wire.ReasonBadVersion:
		want = DropVersion
	case parsed == wire.ReasonBadType:
		want = DropType
	case wire.SessionID(h.Session).Lane() != testLane:
		want = DropNoSocket
	}
	if got != want {
		t.Errorf("program says %v, codec %v, which makes %v; packet %x", got, parsed, want, packet)
	}
}

func TestAgreesWithCodec(t *testing.T) {
	cfg := testConfig()
	p := mustLoad(t, cfg, 1)
	setSocket(t, p, 0, testLane)
	for _, c := range steerCases {
		agree(t, p, &cfg, c.edit(slices.Clone(c.from)))
	}
	rng := rand.New(rand.NewPCG(3, 4))
	for range 5000 {
		packet := kinds[rng.IntN(len(kinds))].wrap(fab(byte(rng.IntN(10)), 44+rng.IntN(40)))
		for range rng.IntN(4) {
			packet[rng.IntN(min(len(packet), 76))] ^= 1 << rng.IntN(8)
		}
		agree(t, p, &cfg, packet[:minTestRun+rng.IntN(len(packet)-minTestRun+1)])
	}
}

// FuzzCodec gives arbitrary bytes to program and codec.
func FuzzCodec(f *testing.F) {
	for _, c := range steerCases {
		f.Add(c.edit(slices.Clone(c.from)))
	}
	cfg := testConfig()
	p := mustLoad(f, cfg, 1)
	setSocket(f, p, 0, testLane)
	f.Fuzz(func(t *testing.T, packet []byte) {
		if len(packet) >= minTestRun && len(packet) <= maxTestRun {
			agree(t, p, &cfg, packet)
		}
	})
}
