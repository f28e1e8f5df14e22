// SPDX-License-Identifier: Apache-2.0

package xsk

import (
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"
)

// fakeRing is a ring on ordinary memory whose indices start anywhere.
func fakeRing[T any](size int, start uint32) shared[T] {
	w := &[3]uint32{start, start}
	return shared[T]{producer: &w[0], consumer: &w[1], flags: &w[2], entries: make([]T, size)}
}

// starts are where laps and the 2^32 wrap matter.
var starts = []uint32{0, 1, 7, math.MaxInt32, math.MaxUint32 - 3, math.MaxUint32}

func TestProducerAndConsumerAgree(t *testing.T) {
	for _, start := range starts {
		for _, size := range []int{1, 2, 8, 64} {
			mem := fakeRing[Desc](size, start)
			p, c := newProducer(mem), newConsumer(mem)
			var in, out uint64
			for step := range 500 {
				n := p.Reserve(step % (size + 2))
				for i := range n {
					p.Set(i, Desc{Addr: in + uint64(i), Len: uint32(i)})
				}
				if c.Available() != int(in-out) {
					t.Fatal("entries seen before Submit")
				}
				p.Submit(n)
				in += uint64(n)
				if p.Free() != size-int(in-out) {
					t.Fatalf("start %d size %d: %d free, want %d", start, size, p.Free(), size-int(in-out))
				}
				n = c.Peek(step % 5)
				for i := range n {
					if d := c.Get(i); d.Addr != out+uint64(i) {
						t.Fatalf("start %d size %d: entry %d, want %d", start, size, d.Addr, out+uint64(i))
					}
				}
				c.Release(n)
				out += uint64(n)
			}
			if out < uint64(8*size) {
				t.Errorf("start %d size %d: only %d entries moved", start, size, out)
			}
		}
	}
}

// TestRingAgainstModel runs both ends against a queue that is obviously right,
// with partial submits and releases and reservations given up.
func TestRingAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := 1 << rapid.IntRange(0, 6).Draw(t, "log size")
		start := rapid.OneOf(rapid.Uint32(), rapid.SampledFrom(starts)).Draw(t, "start")
		mem := fakeRing[uint64](size, start)
		p, c := newProducer(mem), newConsumer(mem)
		var model []uint64
		var next uint64
		t.Repeat(map[string]func(*rapid.T){
			"produce": func(t *rapid.T) {
				want := rapid.IntRange(-1, 2*size).Draw(t, "reserve")
				n := p.Reserve(want)
				if n != max(0, min(want, size-len(model))) {
					t.Fatalf("reserved %d of %d with %d of %d in use", n, want, len(model), size)
				}
				submit := rapid.IntRange(0, n).Draw(t, "submit")
				for i := range n {
					p.Set(i, next+uint64(i))
				}
				p.Submit(submit)
				for i := range submit {
					model = append(model, next+uint64(i))
				}
				next += uint64(submit)
				// Entries left over keep their places, and are renumbered from
				// 0.
				if rest := n - submit; rest > 0 && rapid.Bool().Draw(t, "go on") {
					p.Submit(rest)
					for range rest {
						model = append(model, next)
						next++
					}
				}
			},
			"consume": func(t *rapid.T) {
				limit := rapid.IntRange(-1, 2*size).Draw(t, "peek")
				n := c.Peek(limit)
				if n != max(0, min(limit, len(model))) {
					t.Fatalf("peeked %d of %d with %d in the ring", n, limit, len(model))
				}
				for i := range n {
					if c.Get(i) != model[i] {
						t.Fatalf("entry %d is %d, want %d", i, c.Get(i), model[i])
					}
				}
				release := rapid.IntRange(0, n).Draw(t, "release")
				c.Release(release)
				model = model[release:]
			},
			"": func(t *rapid.T) {
				if *mem.producer-*mem.consumer != uint32(len(model)) {
					t.Fatalf("indices say %d entries, want %d", *mem.producer-*mem.consumer, len(model))
				}
			},
		})
	})
}

// TestRingAcrossThreads has a fake kernel echo TX into Completion concurrently;
// the race detector sees whether an entry is touched before it is published.
func TestRingAcrossThreads(t *testing.T) {
	const size, total = 16, 50000
	tx, comp := fakeRing[uint64](size, math.MaxUint32-100), fakeRing[uint64](size, math.MaxUint32-50)
	var wg sync.WaitGroup
	wg.Go(func() {
		in, out := newConsumer(tx), newProducer(comp)
		for done := 0; done < total; {
			n := out.Reserve(in.Peek(5))
			for i := range n {
				out.Set(i, in.Get(i))
			}
			in.Release(n)
			out.Submit(n)
			done += n
			runtime.Gosched() // on a machine with one core
		}
	})
	p, c := newProducer(tx), newConsumer(comp)
	for sent, got := 0, 0; got < total; {
		n := p.Reserve(min(7, total-sent))
		for i := range n {
			p.Set(i, uint64(sent+i))
		}
		p.Submit(n)
		sent += n
		n = c.Peek(9)
		for i := range n {
			if c.Get(i) != uint64(got+i) {
				t.Fatalf("got %d, want %d", c.Get(i), got+i)
			}
		}
		c.Release(n)
		got += n
		runtime.Gosched()
	}
	wg.Wait()
}

func TestRingMisusePanics(t *testing.T) {
	mem := fakeRing[uint64](4, 0)
	p, c := newProducer(mem), newConsumer(mem)
	p.Reserve(4)
	p.Submit(3)
	p.Reserve(4)
	c.Peek(2)
	for name, f := range map[string]func(){
		"Set beyond":       func() { p.Set(1, 0) },
		"Set negative":     func() { p.Set(-1, 0) },
		"Submit beyond":    func() { p.Submit(2) },
		"Submit negative":  func() { p.Submit(-1) },
		"Get beyond":       func() { c.Get(2) },
		"Get negative":     func() { c.Get(-1) },
		"Release beyond":   func() { c.Release(3) },
		"Release negative": func() { c.Release(-1) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			f()
		})
	}
}

func TestDetachedRing(t *testing.T) {
	p, c := newProducer(detached[Desc]()), newConsumer(detached[uint64]())
	if p.Reserve(5) != 0 || p.Free() != 0 || p.Size() != 0 || p.NeedWakeup() {
		t.Error("a detached producer has room")
	}
	if c.Peek(5) != 0 || c.Available() != 0 || c.Size() != 0 {
		t.Error("a detached consumer has entries")
	}
	p.Submit(0)
	c.Release(0)
}

func TestNeedWakeupReadsTheFlag(t *testing.T) {
	mem := fakeRing[uint64](4, 0)
	p := newProducer(mem)
	for _, v := range []uint32{0, 1, 2, 3} {
		atomic.StoreUint32(mem.flags, v)
		if p.NeedWakeup() != (v&1 != 0) {
			t.Errorf("flags %d: need-wakeup %v", v, p.NeedWakeup())
		}
	}
}

// BenchmarkRing moves descriptors through one ring, both ends on one thread.
func BenchmarkRing(b *testing.B) {
	for _, burst := range []int{1, 16, 64} {
		b.Run(map[int]string{1: "burst=1", 16: "burst=16", 64: "burst=64"}[burst], func(b *testing.B) {
			mem := fakeRing[Desc](2048, 0)
			p, c := newProducer(mem), newConsumer(mem)
			var sum uint64
			b.ReportAllocs()
			for i := 0; i < b.N; i += burst {
				n := p.Reserve(burst)
				for k := range n {
					p.Set(k, Desc{Addr: uint64(k)})
				}
				p.Submit(n)
				n = c.Peek(burst)
				for k := range n {
					sum += c.Get(k).Addr
				}
				c.Release(n)
			}
			if burst > 1 && sum == 0 {
				b.Fatal("nothing moved")
			}
		})
	}
}
