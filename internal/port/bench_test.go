// SPDX-License-Identifier: Apache-2.0

//go:build linux

package port

import (
	"testing"

	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// exchange sends a burst of n equal packets and receives those that have
// arrived.
func exchange(from, to *Queue, packet []byte, n int, burst [][]byte) (received int) {
	for range n {
		b := from.Buffer()
		if b == nil {
			break
		}
		from.Send(copy(b, packet))
	}
	_ = from.Flush()
	received = to.Receive(burst)
	to.Release()
	return received
}

// cable is a pair with a packet to send over it.
func cable(t testing.TB, frameLen int) (from, to *Queue, packet []byte) {
	t.Helper()
	a, b := openPair(t, testnet.Options{}, Options{})
	s := newStream(t, a, b, wire.Ethernet, 0)
	packet = make([]byte, 2048)
	h := wire.Header{Type: wire.Request, Session: s.session, Ops: 1}
	h.Put(packet[s.tpl.Len():])
	n := s.tpl.Put(packet, wire.Seal(packet[s.tpl.Len():], frameLen))
	return a.Queues()[0], b.Queues()[0], packet[:n]
}

func TestDataPathDoesNotAllocate(t *testing.T) {
	from, to, packet := cable(t, wire.MinFrame)
	burst, got := make([][]byte, 64), 0
	if n := testing.AllocsPerRun(500, func() { got += exchange(from, to, packet, 16, burst) }); n != 0 {
		t.Errorf("%v allocations for each burst", n)
	}
	if got == 0 {
		t.Error("nothing arrived")
	}
	if n := testing.AllocsPerRun(100, func() { to.Wake(); to.Wake(); to.Wait(long) }); n != 0 {
		t.Errorf("%v allocations for each wake-up", n)
	}
}

// BenchmarkBurst is one direction over veth: the kernel's work for both ends runs
// within Flush.
func BenchmarkBurst(b *testing.B) {
	for _, c := range []struct {
		name  string
		frame int
		burst int
	}{{"1x46B", 46, 1}, {"32x46B", 46, 32}, {"32x1500B", 1500, 32}} {
		b.Run(c.name, func(b *testing.B) {
			from, to, packet := cable(b, c.frame)
			burst, got := make([][]byte, 64), 0
			b.ReportAllocs()
			for b.Loop() {
				got += exchange(from, to, packet, c.burst, burst)
			}
			b.ReportMetric(float64(got)/b.Elapsed().Seconds(), "packets/s")
			b.ReportMetric(float64(got)/float64(b.N*c.burst), "delivered")
		})
	}
}

// BenchmarkIdle is an empty step of the engine.
func BenchmarkIdle(b *testing.B) {
	from, _, _ := cable(b, wire.MinFrame)
	burst := make([][]byte, 64)
	b.ReportAllocs()
	for b.Loop() {
		from.Receive(burst)
		_ = from.Flush()
	}
}

// BenchmarkWakePending is the cost to a poster while the wake-up is under way.
func BenchmarkWakePending(b *testing.B) {
	from, _, _ := cable(b, wire.MinFrame)
	b.ReportAllocs()
	for b.Loop() {
		from.Wake()
	}
}
