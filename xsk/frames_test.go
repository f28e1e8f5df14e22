// SPDX-License-Identifier: Apache-2.0

package xsk

import (
	"errors"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

func newPool(t testing.TB, count int) *FramePool {
	t.Helper()
	p, err := NewFramePool(8192, count, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestFramePoolStates(t *testing.T) {
	p := newPool(t, 2)
	a, _ := p.Get()
	b, ok := p.Get()
	if a != 8192 || b != 8192+2048 || !ok {
		t.Fatalf("chunks %d and %d", a, b)
	}
	if _, ok := p.Get(); ok {
		t.Error("a third chunk of two")
	}
	for _, step := range []struct {
		name string
		got  bool
		want bool
	}{
		{"complete a held frame", p.Complete(a), false},
		{"put, by an address within", p.Put(a + 300), true},
		{"put again", p.Put(a), false},
		{"send a free frame", p.Sent(a), false},
		{"send", p.Sent(b + 2047), true},
		{"send again", p.Sent(b), false},
		{"put a frame in flight", p.Put(b), false},
		{"complete below the pool", p.Complete(8191), false},
		{"complete beyond the pool", p.Complete(8192 + 2*2048), false},
	} {
		if step.got != step.want {
			t.Errorf("%s: %v, want %v", step.name, step.got, step.want)
		}
	}
	if p.Bogus() != 3 {
		t.Errorf("%d bogus completions counted, want 3", p.Bogus())
	}
	if p.Free() != 2 || p.InFlight() != 0 || p.Held() != 0 || p.Rescued() != 1 {
		// The one frame owed a completion came back under a wrong address.
		t.Errorf("free %d, in flight %d, held %d, rescued %d", p.Free(), p.InFlight(), p.Held(), p.Rescued())
	}
}

func TestFramePoolBadArguments(t *testing.T) {
	for _, c := range []struct {
		base        uint64
		count, size int
	}{{0, 0, 2048}, {0, -1, 2048}, {0, 1, 0}, {0, 1, -2048}, {0, 1, 3000}, {100, 1, 2048}} {
		if _, err := NewFramePool(c.base, c.count, c.size); !errors.Is(err, ErrConfig) {
			t.Errorf("%+v: %v, want ErrConfig", c, err)
		}
	}
}

func TestReclaim(t *testing.T) {
	p := newPool(t, 4)
	for range 3 {
		a, _ := p.Get()
		p.Sent(a)
	}
	if n := p.Reclaim(); n != 3 || p.Free() != 4 || p.InFlight() != 0 {
		t.Errorf("reclaimed %d, free %d, in flight %d", n, p.Free(), p.InFlight())
	}
}

// TestNoFrameIsLost imitates a kernel that publishes wrong addresses, as old ones
// do: the number of completions is right, but some name another frame, one that
// is in flight, was completed already, or never belonged to this pool.
func TestNoFrameIsLost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		count := rapid.IntRange(1, 20).Draw(t, "frames")
		p, err := NewFramePool(0, count, 4096)
		if err != nil {
			t.Fatal(err)
		}
		rnd := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		for range 20 {
			var flight []uint64
			for range rnd.IntN(count + 1) {
				a, ok := p.Get()
				if !ok || !p.Sent(a) {
					t.Fatal("a frame is missing")
				}
				flight = append(flight, a)
			}
			mem := fakeRing[uint64](32, 0)
			kernel := newProducer(mem)
			kernel.Reserve(len(flight))
			for i, a := range flight {
				if rnd.IntN(4) == 0 {
					a = uint64(rnd.IntN(2*count)) * 4096
				}
				kernel.Set(i, a)
			}
			kernel.Submit(len(flight))
			if freed := p.Reap(newConsumer(mem), 32); freed != len(flight) {
				t.Fatalf("%d of %d frames came back", freed, len(flight))
			}
			if p.Free() != count || p.InFlight() != 0 || p.Held() != 0 {
				t.Fatalf("free %d of %d, in flight %d, held %d", p.Free(), count, p.InFlight(), p.Held())
			}
		}
		seen := map[uint64]bool{}
		for range count {
			a, ok := p.Get()
			if !ok || seen[a] {
				t.Fatalf("frame %d handed out twice", a)
			}
			seen[a] = true
		}
	})
}

func BenchmarkFramePool(b *testing.B) {
	p := newPool(b, 64)
	mem := fakeRing[uint64](64, 0)
	kernel, c := newProducer(mem), newConsumer(mem)
	b.ReportAllocs()
	for i := 0; i < b.N; i += 32 {
		kernel.Reserve(32)
		for k := range 32 {
			a, _ := p.Get()
			p.Sent(a)
			kernel.Set(k, a)
		}
		kernel.Submit(32)
		p.Reap(c, 32)
	}
}

// A slab comes free when each chunk of its packet has completed, once, in any order; what
// completes twice, or was not sent, frees nothing.
func TestSlabs(t *testing.T) {
	p, err := NewSlabPool(2048, 3, 4, 2048) // at an address that is no multiple of a slab
	if err != nil {
		t.Fatal(err)
	}
	a, _ := p.Get()
	b, _ := p.Get()
	if a != 2048 || b != 2048+4*2048 {
		t.Fatalf("slabs at %d and %d", a, b)
	}
	for _, step := range []struct {
		name string
		got  bool
		want bool
	}{
		{"three chunks", p.SentSlab(a, 3), true},
		{"again", p.SentSlab(a, 1), false},
		{"one chunk", p.SentSlab(b, 1), true},
		{"its second", p.Complete(b + 2048), false},
		{"the last", p.Complete(a + 2*2048), true},
		{"the last again", p.Complete(a + 2*2048), false},
	} {
		if step.got != step.want {
			t.Errorf("%s: %v, want %v", step.name, step.got, step.want)
		}
	}
	if p.Free() != 1 || p.InFlight() != 2 || p.Bogus() != 2 {
		t.Errorf("free %d, in flight %d, bogus %d", p.Free(), p.InFlight(), p.Bogus())
	}
	// The fourth of four completions that are owed: the rest is taken back.
	if p.Complete(a); p.Free() != 3 || p.InFlight() != 0 || p.Rescued() != 2 {
		t.Errorf("free %d, in flight %d, rescued %d", p.Free(), p.InFlight(), p.Rescued())
	}
	for range 3 {
		p.Get()
	}
	if !p.SentSlab(a, 4) || !p.Complete(a+2048) || !p.Complete(a) || !p.Complete(a+3*2048) || p.Free() != 0 ||
		!p.Complete(a+2*2048) || p.Free() != 1 || p.Rescued() != 2 {
		t.Errorf("four chunks in any order: free %d, rescued %d", p.Free(), p.Rescued())
	}
	for _, chunks := range []int{0, 3, 64} {
		if _, err := NewSlabPool(0, 1, chunks, 2048); !errors.Is(err, ErrConfig) {
			t.Errorf("slabs of %d chunks: %v", chunks, err)
		}
	}
}
