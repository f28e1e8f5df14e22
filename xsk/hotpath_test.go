// SPDX-License-Identifier: Apache-2.0

//go:build linux

package xsk

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/xdpfab/xdpfab/internal/testnet"
)

func TestBurstPathDoesNotAllocate(t *testing.T) {
	p := testnet.NewPair(t, testnet.Options{})
	a := station(t, p.A, redirect(t, p.A), Config{})
	b := station(t, p.B, redirect(t, p.B), Config{})
	seen := 0
	count := func(f []byte) { seen += len(f) }
	allocs := testing.AllocsPerRun(200, func() {
		sent := a.send(0, 1, 32)
		a.flush(t)
		for got := 0; got < sent; {
			n := b.receive(count)
			if got += n; n == 0 {
				b.Poll(0, nil)
			}
		}
		b.Statistics()
	})
	if allocs != 0 || seen == 0 {
		t.Errorf("%v allocations for each burst, %d bytes seen", allocs, seen)
	}
}

// BenchmarkEcho bounces one frame (or a burst) between two sockets over veth.
// ns/op is the round trip of one burst. With one thread driving both ends it is
// the cost of the work; with two, the far end spins on a core of its own, and the
// hand-over between cores (on a loaded machine: the wait for them) comes on top.
func BenchmarkEcho(b *testing.B) {
	for _, threads := range []int{1, 2} {
		for _, burst := range []int{1, 32} {
			b.Run(fmt.Sprintf("threads=%d/burst=%d", threads, burst), func(b *testing.B) { echo(b, threads, burst) })
		}
	}
}

func echo(b *testing.B, threads, burst int) {
	p := testnet.NewPair(b, testnet.Options{})
	near, far := station(b, p.A, redirect(b, p.A), Config{}), station(b, p.B, redirect(b, p.B), Config{})
	// Frames are small and prepared once: the benchmark measures the way, not the
	// contents.
	near.size = 60
	for i := range near.UMEM().Chunks() {
		frame(near.UMEM().Chunk(near.UMEM().Addr(i)), 0, 0)
	}
	var stop atomic.Bool
	var wg sync.WaitGroup
	if threads == 2 {
		wg.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			for !stop.Load() {
				bounce(far)
			}
		})
	}
	ignore := func([]byte) {}
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		sent := near.send(0, 1, burst)
		near.flush(b)
		for got := 0; got < sent; {
			if threads == 1 {
				bounce(far)
			}
			got += near.receive(ignore)
		}
	}
	b.StopTimer()
	stop.Store(true)
	wg.Wait()
	b.ReportMetric(float64(burst*b.N)/b.Elapsed().Seconds(), "frames/s")
}

// bounce sends received frames back from the chunks they came in, and refills
// with the chunks of frames whose sending is done.
func bounce(n *node) {
	count := n.RX().Peek(64)
	if count == 0 {
		return
	}
	count = n.TX().Reserve(count)
	for i := range count {
		n.TX().Set(i, n.RX().Get(i))
	}
	n.RX().Release(count)
	n.TX().Submit(count)
	for n.TX().Free() < n.TX().Size() {
		n.Kick()
	}
	done := n.Fill().Reserve(n.Completion().Peek(256))
	for i := range done {
		n.Fill().Set(i, n.Completion().Get(i))
	}
	n.Completion().Release(done)
	n.Fill().Submit(done)
}
