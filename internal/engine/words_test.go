// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"math/rand/v2"
	"testing"

	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// No frame divides a word, whatever the alignment of the transfer and its pieces, and
// every frame but the last is full.
func TestTransfersKeepWords(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	for range 20 {
		c := newCable(t, session.Config{Features: wire.FeatureMemory})
		p := c.peer(ethernet())
		c.write(p, 0, 1)
		offset, n, longest := rng.Uint64N(100), 5000+rng.IntN(5000), 1+rng.IntN(5000)
		data := make([]byte, n)
		for i := range data {
			data[i] = byte(rng.Uint32())
		}
		var list [][]byte
		for rest := data; len(rest) > 0; {
			k := min(len(rest), rng.IntN(longest)+1)
			list, rest = append(list, rest[:k]), rest[k:]
		}
		c.seen[1] = nil
		r := c.submit(p, false, func(s *Submission) {
			s.Transfer(wire.VerbWrite, uint32(n))
			s.Offset, s.Flags = offset, 0
			s.SetPieces(&Pieces{Buf: list}, nil, nil)
		})
		if res := c.done(r); res.Outcome != Success {
			t.Fatalf("%+v", res)
		}
		if got := string(c.nodes[1].bytes[offset:][:n]); got != string(data) {
			t.Fatal("memory does not have what was written")
		}
		at := offset
		for _, packet := range c.seen[1] {
			h, ok := headerOf(packet)
			if !ok || h.Type != wire.Request {
				continue
			}
			frame, _, _ := wire.Decap(packet)
			_, payload, _ := wire.Parse(frame)
			var records wire.RecordReader
			var rec wire.Record
			for records.Reset(payload, int(h.Ops)); records.Next(&rec); {
				if rec.Offset != at {
					t.Fatalf("a record of the bytes from %d on, want %d", rec.Offset, at)
				}
				at += uint64(rec.Count)
				if last := at == offset+uint64(n); !last && (at%8 != 0 || rec.Count < 1400) {
					t.Errorf("a record of the bytes from %d to %d: want a full frame that ends at a word", rec.Offset, at)
				}
			}
		}
		if at != offset+uint64(n) {
			t.Errorf("%d bytes were sent, want %d", at-offset, n)
		}
	}
}
