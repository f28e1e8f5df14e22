// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"errors"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/examples/internal/try"
	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/xdpfab"
)

func TestMain(m *testing.M) { os.Exit(testnet.Run(m)) }

func open(ctx context.Context, t *testing.T, peer *xdpfab.Peer, lease time.Duration) *lock {
	t.Helper()
	l, err := newLock(ctx, peer, lease)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// resource is what a lock protects: it refuses old numbers.
type resource struct {
	mu     sync.Mutex
	newest uint64
	value  int
}

// add adds one in two steps, which go wrong if two holders do it at the same time. It
// reports whether it did.
func (r *resource) add(number uint64) bool {
	do := func(f func()) bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		if number < r.newest {
			return false
		}
		r.newest = number
		f()
		return true
	}
	read := 0
	return do(func() { read = r.value }) && do(func() { r.value = read + 1 })
}

// Holders that take turns in a bad network change what the lock protects one at a time.
func TestLock(t *testing.T) {
	n, ctx := try.New(t, "locks", 4096), try.Context(t)
	peer := n.Peer(ctx)
	n.Faults(try.Bad)
	var r resource
	var mu sync.Mutex
	var all sync.WaitGroup
	added, numbers := 0, map[uint64]bool{}
	for range 3 {
		l := open(ctx, t, peer, 400*time.Millisecond)
		all.Go(func() {
			for range 8 {
				h, err := l.acquire(ctx)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				if numbers[h.number] {
					t.Errorf("two holders have number %d", h.number)
				}
				numbers[h.number] = true
				mu.Unlock()
				if r.add(h.number) {
					mu.Lock()
					added++
					mu.Unlock()
				}
				h.release()
			}
		})
	}
	all.Wait()
	if r.value != added || added == 0 {
		t.Errorf("%d additions made %d", added, r.value)
	}
}

// A holder that is cut off loses the lock before another one gets it, and hears of it.
func TestDeadHolder(t *testing.T) {
	n, ctx := try.New(t, "locks", 4096), try.Context(t)
	l := open(ctx, t, n.Peer(ctx), 300*time.Millisecond)
	a, err := l.acquire(ctx)
	if err != nil {
		t.Fatal(err)
	}
	n.Faults(xdpfab.Faults{Loss: 1})
	<-a.Done()
	if a.left() > 0 || !errors.Is(context.Cause(a), errLost) {
		t.Errorf("the holder hears %v, with %v left", context.Cause(a), a.left())
	}
	n.Faults(xdpfab.Faults{})
	b, err := l.acquire(ctx)
	if err != nil || b.number <= a.number {
		t.Fatalf("number %d after %d, %v", b.number, a.number, err)
	}
	b.release()
	c, err := l.acquire(ctx)
	if err != nil || c.number <= b.number {
		t.Fatalf("number %d after %d, %v", c.number, b.number, err)
	}
	c.release()
	if !errors.Is(context.Cause(c), errReleased) {
		t.Errorf("a holder that released the lock hears %v", context.Cause(c))
	}
}

// When the memory is lost, no other holder is made before the lease of the first is over,
// whether it asked before or afterwards.
func TestMemoryLost(t *testing.T) {
	n, ctx := try.New(t, "locks", 4096), try.Context(t)
	peer := n.Peer(ctx)
	const lease = 500 * time.Millisecond
	first, waiter := open(ctx, t, peer, lease), open(ctx, t, peer, lease)
	a, err := first.acquire(ctx)
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan *holder2, 2)
	take := func(l *lock) {
		h, err := l.acquire(ctx)
		got <- &holder2{h, a.left(), err}
	}
	go take(waiter)
	n.Restart()
	go take(open(ctx, t, peer, lease))
	for range 2 {
		b := <-got
		if b.err != nil {
			t.Fatal(b.err)
		}
		if b.left > 0 || b.number <= a.number {
			t.Errorf("another holder, number %d after %d, while the lease has %v left", b.number, a.number, b.left)
		}
		b.release()
	}
	if !errors.Is(context.Cause(a), errLost) {
		t.Errorf("the first holder hears %v", context.Cause(a))
	}
}

// holder2 is a second holder, and what the lease of the first had left.
type holder2 struct {
	*holder
	left time.Duration
	err  error
}

func TestRun(t *testing.T) {
	*times, *lease = 3, 100*time.Millisecond
	n := try.New(t, "locks", 4096)
	if err := run(try.Context(t), n.Client, n.Addr); err != nil {
		t.Error(err)
	}
}
