// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/xdpfab/xdpfab/internal/wire"
)

func TestTransferAims(t *testing.T) {
	const frames = 400_000 // a second
	full := frames * float64(writePart(standardMTU)) / float64(bigAccess)
	large := frames * float64(writePart(largeMTU)) / float64(bigAccess)
	for _, c := range []struct {
		trip, messages, largeMessages, writes, largeWrites float64
		met                                                [5]bool
	}{
		{5900, 151_000, 251_000, 0.79, 0.96, [5]bool{true, true, true, true, true}},
		{6100, 151_000, 251_000, 0.79, 0.96, [5]bool{false, true, true, true, true}},
		{5900, 149_000, 251_000, 0.79, 0.96, [5]bool{true, false, true, true, true}},
		{5900, 151_000, 249_000, 0.79, 0.96, [5]bool{true, true, false, true, true}},
		{5900, 151_000, 251_000, 0.77, 0.96, [5]bool{true, true, true, false, true}},
		{5900, 151_000, 251_000, 0.79, 0.94, [5]bool{true, true, true, true, false}},
	} {
		// Samples have whole operations: they are scaled, so that rounding does not show.
		const scale = 1000
		r := made(transferPlan(sampleTime), map[string]float64{"floor_stream": 2 * scale * frames, "floor_stream_copied": scale * frames, "write": scale * c.writes * full, "ucx_msg4k": 100_000, "msg4k": c.messages,
			"floor_stream_copied_large": scale * frames, "write_large": scale * c.largeWrites * large, "ucx_msg4k_large": 100_000, "msg4k_large": c.largeMessages},
			map[string]float64{"ucx_msg_trip": 10_000, "msg_trip": c.trip}, nil)
		aims := checked(transferAims(r))
		for i, a := range aims {
			if a.Met != c.met[i] {
				t.Errorf("%+v: %+v", c, a)
			}
		}
		q := quickResult(r)
		if len(aims) != 5 || q.MsgRTTVsUCX != aims[0].Value || q.Msg4KVsUCX != aims[1].Value || q.WriteVsCopy != aims[3].Value || math.Abs(2*q.WriteVsFloor-q.WriteVsCopy) > 1e-9 {
			t.Errorf("%d aims: the last line has %+v", len(aims), q)
		}
	}
}

// An aim whose other side failed is not met.
func TestTransferAimsWithoutPeer(t *testing.T) {
	r := made(transferPlan(sampleTime), nil, nil, nil)
	for _, id := range []string{"ucx_msg_trip", "ucx_msg4k", "ucx_msg4k_large", "floor_stream_copied", "floor_stream_copied_large"} {
		r.samples[id] = []sample{{Failed: "crashed"}}
	}
	aims := checked(transferAims(r))
	if len(aims) != 5 || slices.ContainsFunc(aims, func(a aim) bool { return a.Met || a.Note != "not measured" }) {
		t.Errorf("%+v", aims)
	}
}

// The table shows each group by its own figure, and frames that were lost.
func TestTransferTable(t *testing.T) {
	r := made(transferPlan(sampleTime), map[string]float64{"floor_stream": 500_000, "ucx_write": 1000, "ucx_msg4k": 75_000},
		map[string]float64{"ucx_msg_trip": 14_400}, nil)
	r.samples["floor_stream_copied"][1].Lost = 3
	var out bytes.Buffer
	r.print(&out)
	rows := map[string]string{}
	for line := range strings.Lines(out.String()) {
		for _, e := range r.plan {
			if name, rest, ok := strings.Cut(line, e.name+"  "); ok && strings.TrimSpace(name) == "" {
				rows[e.id] = strings.Join(strings.Fields(rest), " ")
			}
		}
	}
	for id, want := range map[string]string{"ucx_msg_trip": "14.4 14.4–14.4", "ucx_msg4k": "0.0750 ", "floor_stream": "0.720 ", "floor_stream_copied": "3 lost"} {
		if !strings.Contains(rows[id], want) {
			t.Errorf("%s: %q does not have %q", id, rows[id], want)
		}
	}
	for _, head := range []string{"p50 µs", "M/s", "GB/s"} {
		if strings.Count(out.String(), head) != 1 {
			t.Errorf("%q is not the head of one group:\n%s", head, out.String())
		}
	}
}

// The floor's frames carry what the largest part of a write does.
func TestWritePart(t *testing.T) {
	long := wire.Record{Verb: wire.VerbWrite, Op: wire.OpWrite, Datatype: wire.Byte, Count: bigAccess, Total: bigAccess}
	for _, mtu := range []int{standardMTU, largeMTU, jumboMTU} {
		var w wire.RecordWriter
		w.Reset(make([]byte, mtu-wire.HeaderLen), mtu)
		if most := w.Fit(&long); uint64(most) != writePart(mtu) {
			t.Errorf("MTU %d: a part of a write has up to %d bytes, the floor's frames have %d", mtu, most, writePart(mtu))
		}
	}
}

// Clients and servers are told the same test and size.
func TestTransferArguments(t *testing.T) {
	x := transfer{test: "stream", size: 4096, flight: 64, seconds: sampleTime}
	if got, want := x.server()+", "+x.client(), "server stream 4096, client stream 4096 64 0.125 0.05"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
