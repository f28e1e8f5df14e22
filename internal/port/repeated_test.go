// SPDX-License-Identifier: Apache-2.0

//go:build linux

package port

import (
	"testing"

	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// A driver that delivers a chunk twice while the caller has it: the second packet is
// dropped and counted, and the chunk is given back once.
func TestRepeatedBuffer(t *testing.T) {
	a, b := openPair(t, testnet.Options{}, Options{RingSize: 32})
	s, qa, qb := newStream(t, a, b, wire.Ethernet, 0), a.Queues()[0], b.Queues()[0]
	const held = 16
	next := uint32(0)
	arrive := func(packets, want int) {
		t.Helper()
		var burst [64][]byte
		next += uint32(s.send(t, qa, next, packets))
		had := len(qb.lent)
		repeated := qb.tally.repeated.Load()
		testnet.Eventually(t, "every packet arrives or is dropped", func() bool {
			qb.Receive(burst[:])
			return len(qb.lent)-had+int(qb.tally.repeated.Load()-repeated) >= packets
		})
		if got := len(qb.lent) - had; got != want {
			t.Fatalf("of %d packets %d were received, want %d", packets, got, want)
		}
	}
	arrive(held, held)
	// The last of these chunks goes back twice, and is delivered twice.
	twice := qb.lent[held-1]
	qb.lent = qb.lent[:held-1]
	qb.ours[twice/uint64(qb.umem.ChunkSize())] = false
	if qb.fill.Reserve(2) != 2 {
		t.Fatal("the fill ring has no room")
	}
	qb.fill.Set(0, twice)
	qb.fill.Set(1, twice)
	qb.fill.Submit(2)
	qb.Release()
	chunks := len(qb.ours)
	arrive(chunks-held+2, chunks-held+1)
	if n := qb.tally.repeated.Load(); n != 1 {
		t.Errorf("%d packets counted as repeated, want 1", n)
	}
	qb.Release()
	arrive(chunks, chunks) // each chunk is there, once
	seen := map[uint64]bool{}
	for _, addr := range qb.lent {
		seen[addr/uint64(qb.umem.ChunkSize())] = true
	}
	if len(seen) != chunks || qb.tally.repeated.Load() != 1 {
		t.Errorf("%d chunks in use, %d repeated; want %d and still 1", len(seen), qb.tally.repeated.Load(), chunks)
	}
	if n := b.counters(t)["repeated_buffers"]; n != 1 {
		t.Errorf("repeated_buffers is %d, want 1", n)
	}
	qb.Release()
}
