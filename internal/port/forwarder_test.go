// SPDX-License-Identifier: Apache-2.0

//go:build linux

package port

import (
	"sync/atomic"
	"testing"

	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// Frames that arrive on queues that are not in use are handed over, in each of two lives
// of the interface.
func TestStrays(t *testing.T) {
	p := testnet.NewPair(t, testnet.Options{Queues: 3, Straight: true})
	a := open(t, p.A, Options{})
	for range 2 {
		b := open(t, p.B, Options{Queues: 1})
		if len(b.Queues()) != 1 || b.Forwarders() != 2 {
			t.Fatalf("%d queues and %d forwarders: want 1 and 2", len(b.Queues()), b.Forwarders())
		}
		s := newStream(t, a, b, wire.Ethernet, 1)
		var got atomic.Uint32
		b.Mind(func(packet []byte) {
			s.check(t, packet)
			got.Add(1)
		}, func(e Event) { t.Errorf("%+v", e) })
		for n, queue := range []int{1, 2, 1, 2} {
			q := a.Queues()[queue]
			q.Send(s.put(q.Buffer(), uint32(n)))
			if err := q.Flush(); err != nil {
				t.Fatal(err)
			}
			testnet.Eventually(t, "the frame is handed over", func() bool { return got.Load() > uint32(n) })
		}
		if c, err := b.Counters(); err != nil || c["xdp_drop_no_socket"] != 0 {
			t.Errorf("%d frames without a socket, %v", c["xdp_drop_no_socket"], err)
		}
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
