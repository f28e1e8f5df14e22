// SPDX-License-Identifier: Apache-2.0

package xdpfab

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/internal/wire"
)

// crowd returns a room with the driver of a real domain, and the given number of peers.
func crowd(t *testing.T, size int32, peers int) (*Domain, *room, []*berth) {
	dom, _ := openDead(t, 1, DomainAttr{Progress: ProgressManual})
	t.Cleanup(func() { _ = dom.CloseAll() })
	r := &room{stepper: dom.node.Steppers[0], size: size}
	var berths []*berth
	for range peers {
		r.join()
		berths = append(berths, &berth{room: r})
	}
	return dom, r, berths
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
		r.join()
		b := &berth{room: r}
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
		if err := live.enter(context.Background()); err != nil { // not held up by the queue
			t.Fatal(err)
		}
		live.leave()
		dead.leave()
	}
	if r.waiting.Load() != 0 || len(r.line) != 0 {
		t.Errorf("%d are waiting, in %d queues", r.waiting.Load(), len(r.line))
	}
}

// A caller in line leaves with its context, with an entry of its own given back; the
// next one gets it. The domain's end releases all.
func TestRoomLeaving(t *testing.T) {
	dom, r, peers := crowd(t, 64, 1)
	b := peers[0]
	for b.try() {
	}
	ctx, cancel := context.WithCancel(context.Background())
	errs := make(chan error)
	for range 5 {
		go func() { errs <- b.enter(ctx) }()
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
	b.leave() // granted at the moment at which it leaves
	next := b.enqueue()
	if !b.dequeue(late) {
		t.Fatal("not granted")
	}
	if b.cancel(); !next.Ready() {
		t.Error("the entry that came too late was lost")
	}
	for range 5 {
		go func() { errs <- b.enter(context.Background()) }()
	}
	for r.waiting.Load() < 5 {
		runtime.Gosched()
	}
	_ = dom.CloseAll()
	for range 5 {
		if err := <-errs; !errors.Is(err, ErrClosed) {
			t.Errorf("%v, want ErrClosed", err)
		}
	}
}

// No caller waits for ever, and no entry gets lost, whatever happens at the same time.
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
				if b.enter(ctx) == nil {
					if u := r.used.Load() - 24; u >= r.size { // attempts under way count for a moment
						t.Errorf("%d granted of %d", u, r.size)
					}
					runtime.Gosched()
					b.cancel()
				}
				cancel()
			}
		})
	}
	within(t, "callers", wg.Wait)
	if r.used.Load() != 0 || r.waiting.Load() != 0 || len(r.line) != 0 {
		t.Errorf("%d granted, %d waiting, %d queues at the end", r.used.Load(), r.waiting.Load(), len(r.line))
	}
	for _, b := range peers {
		if b.used.Load() != 0 || b.waiting.Load() != 0 {
			t.Errorf("a peer has %d, and %d waiting", b.used.Load(), b.waiting.Load())
		}
	}
}

// With thousands of calls waiting for a peer that does not answer, calls to another
// go through, and the callers beyond the share wait without using the processor.
func TestDeadPeerLeavesRoom(t *testing.T) {
	for name, m := range map[string]ProgressMode{"auto": ProgressAuto, "manual": ProgressManual} {
		t.Run(name, func(t *testing.T) {
			attr := DomainAttr{Progress: m, GiveUp: time.Hour, IdleRetire: 3 * time.Hour}
			a, b, _ := pipe(t, attr, DomainAttr{})
			defer b.CloseAll()
			defer a.CloseAll()
			live, err := a.Dial(context.Background(), b.Name(0))
			if err != nil {
				t.Fatal(err)
			}
			word, err := Word[uint64](context.Background(), live, "r", 0)
			if err != nil {
				t.Fatal(err)
			}
			dead := nobody(t, a)
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			var calls sync.WaitGroup
			const n = 4200
			for range n {
				calls.Go(func() {
					if _, err := WordAt[uint64](dead, RemoteRegion{Key: 1}, 0).Load(ctx); !errors.Is(err, context.Canceled) {
						t.Errorf("%v, want the context's error", err)
					}
				})
			}
			share := int32(live.ep.attr.Size) / 3
			for dead.use.berth.used.Load() != share || dead.use.berth.waiting.Load() != n-share {
				time.Sleep(time.Millisecond)
			}
			within(t, "calls to the live peer", func() {
				for i := range uint64(1000) {
					if v, err := word.Add(context.Background(), 1); err != nil || v != i+1 {
						t.Errorf("%d, %v, want %d", v, err, i+1)
						return
					}
				}
			})
			cancel()
			within(t, "calls to the dead peer", calls.Wait)
			within(t, "close", func() { _ = dead.Close() })
			if used, line := live.ep.room.used.Load(), len(live.ep.room.line); used != 0 || line != 0 {
				t.Errorf("%d entries granted and %d queues at the end", used, line)
			}
		})
	}
}

// nobody returns a peer at whose address no node answers.
func nobody(t *testing.T, d *Domain) *Peer {
	t.Helper()
	ep, err := d.dialEndpoint()
	if err != nil {
		t.Fatal(err)
	}
	addr := wire.Addr{MAC: wire.MAC{2, 0, 0, 0, 0, 0x77}}
	link, err := d.node.Dev.Link(context.Background(), addr)
	if err != nil {
		t.Fatal(err)
	}
	use, err := ep.dial(addr, link)
	if err != nil {
		t.Fatal(err)
	}
	return newPeer(ep, use, addr.String())
}
