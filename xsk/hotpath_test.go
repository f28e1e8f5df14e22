// SPDX-License-Identifier: Apache-2.0

//go:build linux

package xsk

import (
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

// BenchmarkEcho bounces one frame (or a burst) between two sockets over veth, the
// other side on a thread of its own. ns/op is the round trip of one burst.
func BenchmarkEcho(b *testing.B) {
	for _, burst := range []int{1, 32} {
		b.Run(map[int]string{1: "burst=1", 32: "burst=32"}[burst], func(b *testing.B) { echo(b, burst) })
	}
}

func echo(b *testing.B, burst int) {
	p := testnet.NewPair(b, testnet.Options{})
	near, far := station(b, p.A, redirect(b, p.A), Config{}), station(b, p.B, redirect(b, p.B), Config{})
	var stop atomic.Bool
	var wg sync.WaitGroup
	wg.Go(func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		for !stop.Load() {
			if n := far.RX().Peek(64); n > 0 {
				bounce(far, n)
			}
		}
	})
	ignore := func([]byte) {}
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		sent := near.send(0, 1, burst)
		near.flush(b)
		for got := 0; got < sent; {
			got += near.receive(ignore)
		}
	}
	b.StopTimer()
	stop.Store(true)
	wg.Wait()
	b.ReportMetric(float64(burst*b.N)/b.Elapsed().Seconds(), "frames/s")
}

// bounce sends n received frames back from the chunks they came in, and refills
// with the chunks of frames whose sending is done.
func bounce(n *node, count int) {
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
