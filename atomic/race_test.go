// SPDX-License-Identifier: Apache-2.0

package atomic

import (
	"encoding/binary"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

// raceWorkers is the number of goroutines for each actor of a race test.
const raceWorkers = 4

// together runs each function in raceWorkers goroutines, which start at the same
// time, and waits for all.
func together(fs ...func(worker int)) {
	var wg sync.WaitGroup
	start := make(chan struct{})
	for _, f := range fs {
		for w := range raceWorkers {
			wg.Go(func() {
				<-start
				f(w)
			})
		}
	}
	close(start)
	wg.Wait()
}

// oneOf returns the bytes of the value one of dt.
func oneOf(dt Datatype) []byte {
	b, zero := aligned(dt.Size()), aligned(dt.Size())
	b[0] = 0xff // true in every datatype, perhaps NaN
	KernelOf(Base, Lor, dt)(b, zero, nil, nil)
	return b
}

// TestKernelsAgainstSyncAtomic adds to the same words through kernels and
// through sync/atomic; no addition may be lost.
func TestKernelsAgainstSyncAtomic(t *testing.T) {
	t.Run("uint64", func(t *testing.T) {
		b := aligned(8)
		w := &words[uint64](b)[0]
		together(
			func(int) { repeat(Fetch, Sum, Uint64, b) },
			func(int) { repeat(Base, Diff, Int64, b) }, // the general loop
			func(int) {
				for range raceRounds {
					atomic.AddUint64(w, 3)
				}
			})
		if want := uint64(3 * raceWorkers * raceRounds); *w != want {
			t.Errorf("%d; want %d", *w, want)
		}
	})
	t.Run("uint32", func(t *testing.T) {
		b := aligned(4)
		w := &words[uint32](b)[0]
		together(
			func(int) { repeat(Fetch, Sum, Uint32, b) },
			func(int) { repeat(Base, Diff, Int32, b) },
			func(int) {
				for range raceRounds {
					atomic.AddUint32(w, 3)
				}
			})
		if want := uint32(3 * raceWorkers * raceRounds); *w != want {
			t.Errorf("%d; want %d", *w, want)
		}
	})
	t.Run("double", func(t *testing.T) {
		b := aligned(8)
		w := &words[uint64](b)[0]
		together(
			func(int) { repeat(Fetch, Sum, Double, b) },
			func(int) {
				for range raceRounds {
					for {
						old := atomic.LoadUint64(w)
						if atomic.CompareAndSwapUint64(w, old, math.Float64bits(math.Float64frombits(old)+2)) {
							break
						}
					}
				}
			})
		if got := math.Float64frombits(*w); got != 3*raceWorkers*raceRounds {
			t.Errorf("%v; want %d", got, 3*raceWorkers*raceRounds)
		}
	})
}

// repeat applies op with operand one to target, raceRounds times.
func repeat(f Func, op Op, dt Datatype, target []byte) {
	k, one := KernelOf(f, op, dt), oneOf(dt)
	var result []byte
	if f == Fetch {
		result = make([]byte, dt.Size())
	}
	for range raceRounds {
		k(target, one, nil, result)
	}
}

// TestHotLoopsUnderContention: the work of every worker must be visible at the
// end, and each value handed back must have been there exactly once where that
// is implied: a toggled bit comes back as its worker left it.
func TestHotLoopsUnderContention(t *testing.T) {
	for _, dt := range []Datatype{Int32, Uint32, Int64, Uint64} {
		size := dt.Size()
		b := aligned(4 * size)
		cell := func(i int) []byte { return b[i*size:][:size] }
		binary.LittleEndian.PutUint32(cell(3), math.MaxInt32)
		for _, c := range []struct {
			op   Op
			cell int
		}{{Bxor, 0}, {Bor, 1}, {Max, 2}, {Min, 3}} {
			k := KernelOf(Fetch, c.op, dt)
			together(func(worker int) {
				operand, result := make([]byte, 8), make([]byte, 8)
				last := byte(0)
				for i := range raceRounds + 1 {
					switch c.op {
					case Bxor, Bor:
						operand[0] = 1 << worker
					case Max:
						binary.LittleEndian.PutUint32(operand, uint32(i*raceWorkers+worker))
					case Min:
						binary.LittleEndian.PutUint32(operand, math.MaxInt32-uint32(i*raceWorkers+worker))
					}
					k(cell(c.cell), operand, nil, result)
					if got := result[0] >> worker & 1; c.op == Bxor && got != last {
						t.Errorf("%v: worker %d left its bit %d and finds %d", dt, worker, last, got)
						return
					}
					last ^= 1
				}
			})
		}
		word := func(i int) uint32 { return binary.LittleEndian.Uint32(cell(i)) }
		const top = raceRounds*raceWorkers + raceWorkers - 1
		if word(0) != 1<<raceWorkers-1 || word(1) != 1<<raceWorkers-1 || word(2) != top || word(3) != math.MaxInt32-top {
			t.Errorf("%v: xor %#x or %#x max %d min %d; want %#x, the same, %d and %d", dt,
				word(0), word(1), word(2), word(3), 1<<raceWorkers-1, top, math.MaxInt32-top)
		}
	}
}

// TestNeighboursInOneWord: elements of 1 and 2 bytes share a word with each
// other and with sync/atomic users of the whole word, and none disturbs another.
func TestNeighboursInOneWord(t *testing.T) {
	for _, dt := range []Datatype{Uint8, Int16, Float8E5M2, BFloat16} {
		t.Run(dt.String(), func(t *testing.T) {
			b := aligned(8)
			size, own := dt.Size(), Uint8
			if size == 2 {
				own = Uint16
			}
			lanes := 4 / size
			w := &words[uint32](b)[0]
			together(
				func(worker int) { repeat(Fetch, Sum, own, b[worker%lanes*size:][:size]) },
				func(worker int) { repeat(Base, Write, dt, b[4+worker%lanes*size:][:size]) },
				func(worker int) {
					for range raceRounds {
						atomic.AddUint32(w, 1<<(8*size*(lanes-1))) // only the last lane
					}
				})
			perLane := raceRounds * raceWorkers / lanes
			for lane := range lanes {
				want := uint32(perLane)
				if lane == lanes-1 {
					want += raceRounds * raceWorkers
				}
				mask := uint32(1)<<(8*size) - 1
				if got := *w >> (8 * size * lane) & mask; got != want&mask {
					t.Errorf("lane %d: %d; want %d", lane, got, want&mask)
				}
			}
			for lane := range lanes {
				if got, want := string(b[4+lane*size:][:size]), string(oneOf(dt)); got != want {
					t.Errorf("written lane %d: %x; want %x", lane, got, want)
				}
			}
		})
	}
}

// TestWideAgainstEachOther runs 16-byte kernels against each other and, where
// the CPU has the instruction, against sync/atomic on the halves.
func TestWideAgainstEachOther(t *testing.T) {
	forEach16(t, func(t *testing.T) {
		b := aligned(16)
		halves := words[uint64](b)
		actors := []func(int){
			func(int) { repeat(Fetch, Sum, Uint128, b) },
			func(int) { repeat(Base, Sum, Int128, b) },
		}
		high := uint64(0)
		if native16 {
			high = raceWorkers * raceRounds
			actors = append(actors, func(int) {
				for range raceRounds {
					atomic.AddUint64(&halves[1], 1)
				}
			})
		}
		together(actors...)
		if halves[0] != 2*raceWorkers*raceRounds || halves[1] != high {
			t.Errorf("%d %d; want %d %d", halves[0], halves[1], 2*raceWorkers*raceRounds, high)
		}
	})
	for _, dt := range []Datatype{LongDouble, DoubleComplex, LongDoubleComplex, FloatComplex, Float, Uint8} {
		forEach16(t, func(t *testing.T) {
			b, c := aligned(dt.Size()), aligned(dt.Size())
			together(func(int) { repeat(Fetch, Sum, dt, b) })
			one := oneOf(dt)
			for range raceWorkers * raceRounds {
				KernelOf(Base, Sum, dt)(c, one, nil, nil)
			}
			if string(b) != string(c) {
				t.Errorf("%v: %x; want %x", dt, b, c)
			}
		})
	}
}

// forEach16 runs f with each implementation of 16-byte elements.
func forEach16(t *testing.T, f func(t *testing.T)) {
	run := func(name string, native bool) {
		t.Run(name, func(t *testing.T) {
			defer func(n bool) { native16 = n }(native16)
			native16 = native
			f(t)
		})
	}
	if native16 {
		run("native", true)
	}
	run("locked", false)
}

// TestNoTornReads: writers store elements whose 8-byte words are all equal;
// readers must never see two that differ.
func TestNoTornReads(t *testing.T) {
	for _, dt := range []Datatype{Uint128, DoubleComplex, LongDoubleComplex} {
		forEach16(t, func(t *testing.T) {
			b := aligned(dt.Size())
			var torn, done atomic.Int32
			together(
				func(worker int) {
					defer done.Add(1)
					operand := make([]byte, dt.Size())
					k := KernelOf(Base, Write, dt)
					for i := range raceRounds {
						for j := 0; j < len(operand); j += 8 {
							binary.LittleEndian.PutUint64(operand[j:], uint64(i*raceWorkers+worker))
						}
						k(b, operand, nil, nil)
					}
				},
				func(int) {
					result := make([]byte, dt.Size())
					k := KernelOf(Fetch, Read, dt)
					for done.Load() < raceWorkers {
						k(b, nil, nil, result)
						for j := 8; j < len(result); j += 8 {
							if string(result[j:j+8]) != string(result[:8]) {
								torn.Add(1)
							}
						}
						runtime.Gosched()
					}
				})
			if n := torn.Load(); n != 0 {
				t.Errorf("%v: %d torn reads", dt, n)
			}
		})
	}
}

// TestSwapsHandOver: compare-and-swap moves a token from state to state; every
// success must have seen its predecessor, so the wins add up.
func TestSwapsHandOver(t *testing.T) {
	for _, dt := range []Datatype{Uint8, Int16, Uint32, Int64, Uint128, LongDoubleComplex} {
		b := aligned(dt.Size())
		var wins atomic.Int64
		together(func(int) {
			size := dt.Size()
			k, read := KernelOf(Compare, Cswap, dt), KernelOf(Fetch, Read, dt)
			next, seen, result := make([]byte, size), make([]byte, size), make([]byte, size)
			for range raceRounds {
				read(b, nil, nil, seen)
				copy(next, seen)
				next[0] = next[0]&^0x3f | (next[0]+1)&0x3f
				k(b, next, seen, result)
				if string(result) == string(seen) {
					wins.Add(1)
				}
			}
		})
		if got, want := b[0]&0x3f, byte(wins.Load()&0x3f); got != want || wins.Load() == 0 {
			t.Errorf("%v: state %d after %d wins; want %d", dt, got, wins.Load(), want)
		}
	}
}

// TestSwapTellsTheTruth: a result equal to the comparand means that the swap
// took place, even if the value leaves and comes back all the time.
func TestSwapTellsTheTruth(t *testing.T) {
	for _, dt := range []Datatype{Uint32, Uint64, Uint16} {
		b := aligned(8)
		size := dt.Size()
		w := &words[uint32](b)[0]
		var stop atomic.Bool
		var wg sync.WaitGroup
		wg.Go(func() {
			for !stop.Load() {
				atomic.CompareAndSwapUint32(w, 0, 1)
				atomic.CompareAndSwapUint32(w, 1, 0)
			}
		})
		k := KernelOf(Compare, Cswap, dt)
		two, zero, result := []byte{2, 7: 0}, make([]byte, 8), make([]byte, 8)
		for range raceRounds {
			k(b[:size], two, zero, result)
			if result[0] != 0 {
				continue
			}
			if got := atomic.LoadUint32(w); got != 2 {
				t.Errorf("%v: reported a swap, but the value is %d", dt, got)
				break
			}
			atomic.StoreUint32(w, 0)
		}
		stop.Store(true)
		wg.Wait()
	}
}

// TestLockIsSharedByMappings: only the offset in the page selects a lock.
func TestLockIsSharedByMappings(t *testing.T) {
	if lockOf(0x7f001230) != lockOf(0x56ffe230) {
		t.Error("same offset in two pages: two locks")
	}
	if lockOf(0x1000) == lockOf(0x1010) || lockOf(0x1ff0) == lockOf(0x1000) {
		t.Error("neighbouring elements share a lock")
	}
}

// TestLockWaitsForItsHolder: while the lock is held, others yield and wait.
func TestLockWaitsForItsHolder(t *testing.T) {
	var l spinLock
	l.lock()
	var in atomic.Bool
	done := make(chan struct{})
	go func() {
		l.lock()
		in.Store(true)
		l.unlock()
		close(done)
	}()
	for range 10 * spinsBeforeYield {
		runtime.Gosched()
	}
	if in.Load() {
		t.Error("two holders")
	}
	l.unlock()
	<-done
}
