// SPDX-License-Identifier: Apache-2.0

package mr

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

// TestCloseWaitsForReaders: memory found inside a burst stays valid until Exit, although
// the key is gone at once.
func TestCloseWaitsForReaders(t *testing.T) {
	mem, err := Alloc(4096, AllocOptions{})
	if err != nil {
		t.Fatal(err)
	}
	tab := NewTable()
	r, err := tab.Register(mem, Options{Access: RemoteRead})
	if err != nil {
		t.Fatal(err)
	}
	rd, idle, later := tab.NewReader(), tab.NewReader(), tab.NewReader()
	defer idle.Close() // a reader outside never delays anything
	defer later.Close()
	rd.Enter()
	found := rd.Lookup(r.Key())
	data, fault := found.Resolve(0, 8, 8, 8, RemoteRead)
	if found != r || fault != FaultNone {
		t.Fatalf("found %v, %v", found, fault)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := r.CloseContext(ctx); !errors.Is(err, context.Canceled) {
		t.Fatalf("closed under a reader: %v", err)
	}
	if rd.Lookup(r.Key()) != nil || r.Bytes() != nil || tab.count() != 0 {
		t.Error("the region is still to be found")
	}
	if err := mem.Close(); !errors.Is(err, ErrInUse) {
		t.Fatalf("unmapped under a reader: %v", err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := errors.Join(r.Close(), mem.Close()); err != nil {
			t.Error(err)
		}
	}()
	later.Enter() // a burst that began after the key was gone does not matter
	for range 1000 {
		data[0]++ // a fault here would kill the process
	}
	select {
	case <-done:
		t.Error("closed under a reader")
	default:
	}
	rd.Exit()
	<-done
	later.Exit()
	if mem.Bytes() != nil {
		t.Error("the memory is still there")
	}
	rd.Close()
}

// TestClosedReader: a reader that is closed inside a burst does not hold regions for
// ever.
func TestClosedReader(t *testing.T) {
	tab := NewTable()
	r := register(t, tab, adopt(t, 64), Options{})
	rd := tab.NewReader()
	rd.Enter()
	rd.Close()
	rd.Close()
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if len(tab.readers) != 0 {
		t.Errorf("%d readers are left", len(tab.readers))
	}
}

// TestChurn registers, deregisters and unmaps while readers look up and write. Memory
// unmapped too early shows as a fault, the wrong memory as a mismatch; the race
// detector watches the rest.
func TestChurn(t *testing.T) {
	const (
		writers = 2
		readers = 2
		keys    = 32 // for each writer
		rounds  = 300
	)
	tab := NewTable()
	var stop atomic.Bool
	var reading, writing sync.WaitGroup
	for i := range readers {
		reading.Go(func() {
			rd := tab.NewReader()
			defer rd.Close()
			rng := rand.New(rand.NewPCG(uint64(i), 1))
			for !stop.Load() {
				rd.Enter()
				for range 16 {
					key := rng.Uint64N(writers * keys)
					r := rd.Lookup(key)
					if r == nil {
						continue
					}
					b, fault := r.Resolve(0, 8, 4096, 8, RemoteRead|RemoteWrite)
					if fault != FaultNone || r.Key() != key || b[7] != byte(key) {
						t.Errorf("key %d: %v, %v, % x", key, r, fault, b)
					}
				}
				rd.Exit()
				runtime.Gosched() // the writers need the processors too
			}
		})
	}
	for w := range writers {
		writing.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(w), 2))
			var live [keys]*Region
			flip := func(i int) error {
				if r := live[i]; r != nil {
					live[i] = nil
					return errors.Join(r.Close(), r.Memory().Close())
				}
				mem, err := Alloc(4096, AllocOptions{})
				if err != nil {
					return err
				}
				key := uint64(w*keys + i)
				mem.Bytes()[7] = byte(key)
				live[i], err = tab.Register(mem, Options{Key: &key, Access: allAccess, Name: fmt.Sprint(key)})
				return err
			}
			for range rounds {
				if err := flip(rng.IntN(keys)); err != nil {
					t.Error(err)
				}
			}
			for i := range live {
				if live[i] != nil {
					if err := flip(i); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	writing.Wait()
	stop.Store(true)
	reading.Wait()
	if tab.count() != 0 || tab.Named() != 0 || len(tab.readers) != 0 {
		t.Errorf("left: %d regions, %d names, %d readers", tab.count(), tab.Named(), len(tab.readers))
	}
}

// TestConcurrentClose: many goroutines may close one region.
func TestConcurrentClose(t *testing.T) {
	tab, mem := NewTable(), adopt(t, 64)
	r := register(t, tab, mem, Options{Name: "x"})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if err := mem.Close(); err != nil {
		t.Error(err)
	}
}

func TestHotPathAllocs(t *testing.T) {
	tab := NewTable()
	r := register(t, tab, adopt(t, 64), Options{})
	rd := tab.NewReader()
	defer rd.Close()
	if n := testing.AllocsPerRun(100, func() {
		rd.Enter()
		if _, fault := rd.Lookup(r.Key()).Resolve(8, 8, 8, 8, 0); fault != FaultNone {
			t.Error(fault)
		}
		rd.Exit()
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkLookup(b *testing.B) {
	for _, n := range []int{1, 1000, 100_000} {
		tab, mem := NewTable(), adopt(b, 64)
		rng := rand.New(rand.NewPCG(1, 2))
		keys := make([]uint64, n)
		for i := range keys {
			keys[i] = register(b, tab, mem, Options{}).Key()
		}
		order := make([]uint64, 1<<14) // random access, without drawing numbers in the loop
		for i := range order {
			order[i] = keys[rng.IntN(n)]
		}
		rd := tab.NewReader()
		for name, mask := range map[string]int{"random": len(order) - 1, "hot": 0} {
			b.Run(fmt.Sprintf("%d/%s", n, name), func(b *testing.B) {
				b.ReportAllocs()
				i := 0
				for b.Loop() {
					if rd.Lookup(order[i&mask]) == nil {
						b.Fatal("not found")
					}
					i++
				}
			})
		}
		rd.Close()
	}
}

func BenchmarkEnterExit(b *testing.B) {
	rd := NewTable().NewReader()
	b.ReportAllocs()
	for b.Loop() {
		rd.Enter()
		rd.Exit()
	}
}

func BenchmarkResolve(b *testing.B) {
	r := Region{data: make([]byte, 4096), access: allAccess}
	b.ReportAllocs()
	for b.Loop() {
		if _, fault := r.Resolve(64, 8, 8, 8, RemoteRead|RemoteWrite); fault != FaultNone {
			b.Fatal(fault)
		}
	}
}
