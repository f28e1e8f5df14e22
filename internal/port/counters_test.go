// SPDX-License-Identifier: Apache-2.0

//go:build linux

package port

import (
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// Without a carrier the device drops the packets that it is given. They are
// counted, one for each call, and there is no error, for the port is in order.
// No packet stays behind.
func TestDeviceDropsAreCounted(t *testing.T) {
	p := testnet.NewVeth(t, testnet.Options{}) // of which one side takes the other's carrier away
	a, b := open(t, p.A, Options{RingSize: 64}), open(t, p.B, Options{RingSize: 64})
	s, qa := newStream(t, a, b, wire.Ethernet, 0), a.Queues()[0]
	setUp(t, b.side, false)
	if n := s.send(t, qa, 0, 10); n != 10 {
		t.Fatalf("%d buffers, want 10", n)
	}
	for end := time.Now().Add(patience); qa.stalled; qa.Wait(time.Second) {
		if time.Now().After(end) {
			t.Fatal("still stalled")
		}
	}
	if lost := a.counters(t)["tx_lost"]; lost != 10 || qa.pool.InFlight() != 0 {
		t.Errorf("10 packets without a carrier: %d counted as lost, %d in flight", lost, qa.pool.InFlight())
	}
	setUp(t, b.side, true)
	s.run(t, qa, b.Queues()[0], 100, 8)
}
