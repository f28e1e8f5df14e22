// SPDX-License-Identifier: Apache-2.0

package atomic

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
)

// Bytes are copied in either direction, from any alignment to any, and the bytes around
// them stay as they are.
func TestBytesAreCopied(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	mem := aligned(256)
	for at := range 17 {
		for n := range 200 {
			from := aligned(n + at%3)[at%3:]
			for i := range from {
				from[i] = byte(rng.Uint32())
			}
			for i := range mem {
				mem[i] = byte(rng.Uint32())
			}
			want := bytes.Clone(mem)
			copy(want[at:], from)
			WriteBytes(mem[at:at+n], from)
			if !bytes.Equal(mem, want) {
				t.Fatalf("%d bytes written at %d:\n% x, want\n% x", n, at, mem, want)
			}
			to := bytes.Repeat([]byte{0xee}, n+2)
			ReadBytes(to[1:n+1], mem[at:at+n])
			if !bytes.Equal(to[1:n+1], want[at:at+n]) || to[0] != 0xee || to[n+1] != 0xee {
				t.Fatalf("%d bytes read at %d: % x, want % x between ee", n, at, to, want[at:at+n])
			}
		}
	}
}

func TestBytesDoNotAllocate(t *testing.T) {
	mem, from := aligned(1403), make([]byte, 1400)
	if n := testing.AllocsPerRun(100, func() { WriteBytes(mem[3:], from); ReadBytes(from, mem[3:]) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestWordsAreNotTorn writes words whose bytes are all alike. Readers, by ReadBytes and
// by sync/atomic, see no other word. The first word and the last one are no pair's.
func TestWordsAreNotTorn(t *testing.T) {
	mem := aligned(280)[8:]
	view := words[uint64](mem)
	whole := func(v uint64) bool { return v == v&0xff*0x0101010101010101 }
	together(
		func(worker int) {
			for i := range raceRounds {
				WriteBytes(mem, bytes.Repeat([]byte{byte(worker + i)}, len(mem)))
			}
		},
		func(int) {
			to := make([]byte, len(mem)+1)[1:]
			for range raceRounds {
				ReadBytes(to, mem)
				for i := range view {
					if v := get[uint64](to, 8*i); !whole(v) {
						t.Errorf("word %d read as %#x", i, v)
						return
					}
				}
			}
		},
		func(int) {
			for i := range raceRounds {
				if v := atomic.LoadUint64(&view[i%len(view)]); !whole(v) {
					t.Errorf("word %d loaded as %#x", i%len(view), v)
					return
				}
			}
		})
}

// TestPartsLoseNoUpdate writes single bytes of words, beside which kernels and
// sync/atomic add: no addition is lost, and no byte of another goes astray.
func TestPartsLoseNoUpdate(t *testing.T) {
	mem := aligned(16)
	half := &words[uint32](mem)[0]
	together(
		func(worker int) {
			one, back := []byte{byte(worker + 1)}, make([]byte, 1)
			for range raceRounds {
				own := mem[4+worker : 5+worker] // nobody else writes it
				WriteBytes(own, one)
				if ReadBytes(back, own); back[0] != one[0] {
					t.Errorf("byte %d is %d, want %d", worker, back[0], one[0])
					return
				}
			}
		},
		func(int) { repeat(Fetch, Sum, Uint8, mem[8:9]) },
		func(int) {
			for range raceRounds {
				atomic.AddUint32(half, 1)
			}
		})
	if want := uint32(raceWorkers * raceRounds); *half != want || mem[8] != byte(want) {
		t.Errorf("%d and %d; want %d and %d", *half, mem[8], want, byte(want))
	}
}

// BenchmarkBytes measures copies of what a frame carries, beside those that are not
// atomic.
func BenchmarkBytes(b *testing.B) {
	mem, buf := aligned(9216), make([]byte, 9216)
	for _, c := range []struct {
		at, n int
	}{{0, 8}, {0, 1400}, {3, 1400}, {0, 8936}} {
		part, other := mem[c.at:c.at+c.n], buf[2:2+c.n]
		for name, f := range map[string]func(){
			"write": func() { WriteBytes(part, other) },
			"read":  func() { ReadBytes(other, part) },
			"copy":  func() { copy(part, other) },
		} {
			b.Run(fmt.Sprintf("%s/%d/at%d", name, c.n, c.at), func(b *testing.B) {
				b.ReportAllocs()
				b.SetBytes(int64(c.n))
				for b.Loop() {
					f()
				}
			})
		}
	}
}
