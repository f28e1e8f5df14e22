// SPDX-License-Identifier: Apache-2.0

package calls

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/node"
	"github.com/xdpfab/xdpfab/internal/testnet"
)

// Open opens a domain with manual progress, and returns its stepper and what closes it.
// The tests of package calls_test set it, which may import the packages above.
var Open func(*testing.T) (*node.Stepper, func())

// crowd returns a room with the driver of a real domain, which end closes, and the given
// number of peers.
func crowd(t *testing.T, size, peers int) (end func(), r *Room, all []*Allotment) {
	st, end := Open(t)
	t.Cleanup(end)
	r = NewRoom(st, size)
	for range peers {
		all = append(all, r.Join())
	}
	return end, r, all
}

// Peers that take all they get leave an entry for every other.
func TestRoomForEveryPeer(t *testing.T) {
	const size = 256
	for _, n := range []int{1, 2, 3, 31, 100, size - 2} {
		_, r, peers := crowd(t, size, n)
		for i, b := range peers {
			had := int32(0)
			for b.try() {
				had++
			}
			if had == 0 || i == 0 && had != size/int32(n+1) {
				t.Errorf("%d entries for peer %d of %d", had, i, n)
			}
		}
		if u := r.used.Load(); u >= size {
			t.Errorf("%d entries are granted of %d, want one left", u, size)
		}
	}
}

// So they do for those that are dialled only then.
func TestRoomForNewPeers(t *testing.T) {
	const size = 256
	_, r, _ := crowd(t, size, 0)
	for n := range size / 8 {
		b := r.Join()
		if !b.try() {
			t.Fatalf("nothing for peer %d", n)
		}
		for b.try() {
		}
	}
}

// Entries that one peer gives back go to those in line, first come first served.
func TestRoomInTurn(t *testing.T) {
	_, r, peers := crowd(t, 64, 2)
	dead, live := peers[0], peers[1]
	for dead.try() {
	}
	var queue []*roomWait
	for range 10 {
		queue = append(queue, dead.enqueue())
	}
	for i := range queue {
		for j, w := range queue {
			if w.Ready() != (j < i) {
				t.Fatalf("after %d were given back, number %d in line has one: %v", i, j, w.Ready())
			}
		}
		if err := live.Enter(context.Background()); err != nil { // not held up by the queue
			t.Fatal(err)
		}
		live.Leave()
		dead.Leave()
	}
	if r.waiting.Load() != 0 || len(r.line) != 0 {
		t.Errorf("%d are waiting, in %d queues", r.waiting.Load(), len(r.line))
	}
}

// A caller in line leaves with its context, with an entry of its own given back; the next
// one gets it. The domain's end releases all.
func TestRoomLeaving(t *testing.T) {
	end, r, peers := crowd(t, 64, 1)
	b := peers[0]
	for b.try() {
	}
	ctx, cancel := context.WithCancel(context.Background())
	errs := make(chan error)
	for range 5 {
		go func() { errs <- b.Enter(ctx) }()
	}
	for r.waiting.Load() < 5 {
		runtime.Gosched()
	}
	cancel()
	for range 5 {
		if err := <-errs; !errors.Is(err, context.Canceled) {
			t.Errorf("%v, want the context's error", err)
		}
	}
	if r.waiting.Load() != 0 || len(r.line) != 0 {
		t.Errorf("%d are waiting, in %d queues", r.waiting.Load(), len(r.line))
	}
	late := b.enqueue()
	b.Leave() // granted at the moment at which it leaves
	next := b.enqueue()
	if !b.dequeue(late) {
		t.Fatal("not granted")
	}
	if b.Cancel(); !next.Ready() {
		t.Error("the entry that came too late was lost")
	}
	for range 5 {
		go func() { errs <- b.Enter(context.Background()) }()
	}
	for r.waiting.Load() < 5 {
		runtime.Gosched()
	}
	end()
	for range 5 {
		if err := <-errs; !errors.Is(err, errno.Closed) {
			t.Errorf("%v, want that of a closed domain", err)
		}
	}
}

// No caller waits forever, and no entry gets lost, whatever happens at the same time.
func TestRoomUnderContention(t *testing.T) {
	_, r, peers := crowd(t, 16, 3)
	var wg sync.WaitGroup
	for g := range 24 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(1, uint64(g)))
			b := peers[g%len(peers)]
			for range 500 {
				ctx, cancel := context.WithCancel(context.Background())
				if rng.IntN(4) == 0 {
					time.AfterFunc(time.Duration(rng.IntN(200))*time.Microsecond, cancel)
				}
				if b.Enter(ctx) == nil {
					if u := r.used.Load() - 24; u >= r.size { // attempts under way count for a moment
						t.Errorf("%d granted of %d", u, r.size)
					}
					runtime.Gosched()
					b.Cancel()
				}
				cancel()
			}
		})
	}
	testnet.Within(t, "callers", wg.Wait)
	if r.used.Load() != 0 || r.waiting.Load() != 0 || len(r.line) != 0 {
		t.Errorf("%d granted, %d waiting, %d queues at the end", r.used.Load(), r.waiting.Load(), len(r.line))
	}
	for _, b := range peers {
		if b.used.Load() != 0 || b.waiting.Load() != 0 {
			t.Errorf("a peer has %d, and %d waiting", b.used.Load(), b.waiting.Load())
		}
	}
}
