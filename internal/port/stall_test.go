// SPDX-License-Identifier: Apache-2.0

//go:build linux

package port

import (
	"testing"

	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// More packets arrive than the receiver has buffers for, while nobody takes them. Those
// that are not dropped arrive once and whole, and so does all that comes later. A driver
// that finds too few buffers for its own ring may deliver old ones again (igb).
func TestStalledReceiver(t *testing.T) {
	a, b := openPair(t, testnet.Options{}, Options{})
	s, qa, qb := newStream(t, a, b, wire.Ethernet, 0), a.Queues()[0], b.Queues()[0]
	const rounds, each, window = 3, 3000, 32
	seen := make([]bool, rounds*each+window)
	take := func() (n int) {
		for _, psn := range s.receive(t, qb) {
			if int(psn) >= len(seen) || seen[psn] {
				t.Fatalf("frame %d came, want each of %d once", psn, len(seen))
			}
			seen[psn] = true
			n++
		}
		return n
	}
	next := uint32(0)
	send := func(count int) {
		for ; count > 0; qa.Receive(nil) { // moves on what is stalled
			n := s.send(t, qa, next, min(count, window))
			next, count = next+uint32(n), count-n
		}
	}
	for range rounds {
		send(each)
		testnet.Eventually(t, "all is sent", func() bool {
			if err := qa.Flush(); err != nil {
				t.Fatal(err)
			}
			return qa.pool.InFlight() == 0
		})
		got := 0
		testnet.Eventually(t, "what waits in RX has come", func() bool {
			n := take()
			got += n
			return got >= qb.rx.Size()/2 && n == 0
		})
	}
	mark, before := next, qa.tally.lost.Load()
	send(window)
	testnet.Eventually(t, "what is sent afterwards has come", func() bool {
		take()
		arrived := 0
		for _, came := range seen[mark:] {
			if came {
				arrived++
			}
		}
		return arrived+int(qa.tally.lost.Load()-before) == window
	})
	if n := qb.tally.repeated.Load(); n != 0 {
		t.Errorf("%d buffers were delivered again while they were in use", n)
	}
}
