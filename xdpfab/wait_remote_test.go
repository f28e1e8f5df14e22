// SPDX-License-Identifier: Apache-2.0

package xdpfab_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	goatomic "sync/atomic"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/internal/waiting"
	"github.com/xdpfab/xdpfab/mr"
	"github.com/xdpfab/xdpfab/xdpfab"
)

// hall is a server with a region, and clients that wait for its words.
type hall struct {
	t      *testing.T
	net    *xdpfab.Network
	region *mr.Region
	owner  *goatomic.Uint64        // the first word
	words  []xdpfab.Remote[uint64] // the same, of each client
}

func newHall(t *testing.T, clients int) *hall {
	t.Helper()
	net, err := xdpfab.NewNetwork(clients + 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = net.Close() })
	h := &hall{t: t, net: net}
	s, err := net.Node(0).Serve("hall", 4096)
	if err != nil {
		t.Fatal(err)
	}
	h.region = s.Region
	if h.owner, err = s.Region.Uint64(0); err != nil {
		t.Fatal(err)
	}
	for i := range clients {
		h.words = append(h.words, h.word(i+1, 0))
	}
	return h
}

// word is a word of the server, as a node has it.
func (h *hall) word(node int, index uint64) xdpfab.Remote[uint64] {
	h.t.Helper()
	p, err := h.net.Node(node).Dial(h.t.Context(), h.net.Node(0).Name(0))
	if err != nil {
		h.t.Fatal(err)
	}
	w, err := xdpfab.Word[uint64](h.t.Context(), p, "hall", index)
	if err != nil {
		h.t.Fatal(err)
	}
	return w
}

// waits returns once so many operations wait.
func (h *hall) waits(n int) {
	h.t.Helper()
	testnet.Eventually(h.t, "operations wait", func() bool {
		q, is := h.region.Queues().(*waiting.Queues)
		return is && q.Len() == n
	})
}

// Sixteen clients get a lock in the order in which they came, each once, and each hands
// it over by a plain swap.
func TestRemoteWaitInOrder(t *testing.T) {
	const clients = 16
	h := newHall(t, clients)
	h.owner.Store(99)
	got := make(chan int, clients)
	var all sync.WaitGroup // the last one still hands over, by the context of the test
	for i, w := range h.words {
		all.Go(func() {
			if err := w.WaitCompareAndSwap(t.Context(), 0, uint64(i+1)); err != nil {
				t.Errorf("client %d: %v", i, err)
			}
			got <- i
			if ok, err := w.CompareAndSwap(t.Context(), uint64(i+1), 0); !ok || err != nil {
				t.Errorf("client %d has not had the lock: %v", i, err)
			}
		})
		h.waits(i + 1)
	}
	h.owner.Store(0)
	h.region.Changed()
	for i := range clients {
		if x := <-got; x != i {
			t.Errorf("client %d came as number %d", x, i)
		}
	}
	all.Wait()
	h.waits(0)
}

// The end of the context ends the wait, for certain: nothing runs afterwards.
func TestRemoteWaitEnds(t *testing.T) {
	h := newHall(t, 2)
	h.owner.Store(1)
	for name, begin := range map[string]func() (context.Context, context.CancelFunc){
		"deadline": func() (context.Context, context.CancelFunc) {
			return context.WithTimeout(t.Context(), 20*time.Millisecond)
		},
		"cancelled": func() (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(t.Context())
			go func() { h.waits(1); cancel() }()
			return ctx, cancel
		},
	} {
		ctx, cancel := begin()
		err := h.words[0].WaitCompareAndSwap(ctx, 0, 7)
		if !errors.Is(err, xdpfab.ErrNotExecuted) || !errors.Is(err, ctx.Err()) || ctx.Err() == nil ||
			!strings.Contains(err.Error(), " for the word to be 0: have a program change it, or give the context more time: ") {
			t.Errorf("%s: %v", name, err)
		}
		cancel()
		h.waits(0)
	}
	for op, want := range map[atomic.Op]string{atomic.CswapLT: "more than 5", atomic.SumAtMost: "at most 5 with 9 added",
		atomic.DiffAtLeast: "at least 5 with 9 taken off"} {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		if _, err := h.words[0].WaitCompare(ctx, op, 5, 9); err == nil || !strings.Contains(err.Error(), " to be "+want+": ") {
			t.Errorf("%v: %v, want %s", op, err, want)
		}
		cancel()
	}
	if err := h.words[1].Store(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if v := h.owner.Load(); v != 0 {
		t.Errorf("%d: what had ended has run", v)
	}
}

// An operation that adds nothing, takes off nothing, or swaps a value for itself only
// waits.
func TestRemoteWaitLeavesWord(t *testing.T) {
	h := newHall(t, 1)
	h.owner.Store(7)
	for _, c := range []struct {
		op                atomic.Op
		comparand, v, now uint64
		want              string
	}{
		{atomic.DiffAtLeast, 8, 0, 9, "be at least 8: "},
		{atomic.SumAtMost, 5, 0, 4, "be at most 5: "},
		{atomic.Cswap, 8, 8, 8, "be 8: "},
	} {
		short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		_, err := h.words[0].WaitCompare(short, c.op, c.comparand, c.v)
		cancel()
		if err == nil || !strings.Contains(err.Error(), " for the word to "+c.want) {
			t.Errorf("%v: %v, want %s", c.op, err, c.want)
		}
		go func() {
			h.waits(1)
			h.owner.Store(c.now)
			h.region.Changed()
		}()
		if was, err := h.words[0].WaitCompare(t.Context(), c.op, c.comparand, c.v); was != c.now || err != nil || h.owner.Load() != was {
			t.Errorf("%v: %d, %v, and the word is %d; want %d", c.op, was, err, h.owner.Load(), c.now)
		}
	}
}

// Those that wait for different amounts of a semaphore are served in order; what goes
// beyond the room, cannot wait, or is about a closed region is refused.
func TestRemoteWaitRefused(t *testing.T) {
	h := newHall(t, 1)
	w := h.words[0]
	if _, err := w.WaitCompare(t.Context(), atomic.Mswap, 0, 1); !errors.Is(err, xdpfab.ErrOpNotSupported) {
		t.Errorf("%v", err)
	}
	p, err := h.net.Node(1).Dial(t.Context(), h.net.Node(0).Name(0))
	if err != nil {
		t.Fatal(err)
	}
	f, err := xdpfab.Word[float64](t.Context(), p, "hall", 1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WaitCompare(t.Context(), atomic.SumAtMost, 0, 1); !errors.Is(err, xdpfab.ErrOpNotSupported) ||
		!strings.Contains(err.Error(), " by sum_at_most on float64: ") {
		t.Errorf("%v", err)
	}
	const room = 64
	ends := make(chan error, room)
	for range room {
		go func() {
			_, err := w.WaitCompare(t.Context(), atomic.DiffAtLeast, 0, 5)
			ends <- err
		}()
	}
	h.waits(room)
	if _, err := w.WaitCompare(t.Context(), atomic.DiffAtLeast, 0, 5); !errors.Is(err, xdpfab.ErrNotExecuted) ||
		!errors.Is(err, xdpfab.ErrBusy) || !strings.Contains(err.Error(), "64 of an endpoint, 512 of an address and 4096 at a queue") {
		t.Errorf("%v", err)
	}
	if old, err := w.Add(t.Context(), 12); old != 12 || err != nil {
		t.Errorf("%d, %v", old, err)
	}
	for range 2 {
		if err := <-ends; err != nil {
			t.Error(err)
		}
	}
	h.waits(room - 2)
	if v := h.owner.Load(); v != 2 {
		t.Errorf("%d is left of 12 after two took 5", v)
	}
	if err := h.region.Close(); err != nil {
		t.Fatal(err)
	}
	for range room - 2 {
		if err := <-ends; !errors.Is(err, xdpfab.ErrNotExecuted) {
			t.Error(err)
		}
	}
}

// A target that restarts runs nothing of what waited; a client that dies leaves its place
// to the next one.
func TestRemoteWaitCrashes(t *testing.T) {
	h := newHall(t, 3)
	h.owner.Store(9)
	first, second := make(chan error, 1), make(chan error, 1)
	go func() { first <- h.words[0].WaitCompareAndSwap(t.Context(), 0, 1) }()
	h.waits(1)
	go func() { second <- h.words[1].WaitCompareAndSwap(t.Context(), 0, 2) }()
	h.waits(2)
	if _, err := h.net.Restart(1); err != nil {
		t.Fatal(err)
	}
	<-first
	testnet.Eventually(t, "the dead one is passed by", func() bool {
		return h.region.Queues().(*waiting.Queues).Silent() == 1
	})
	if err := h.words[2].Store(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if err := <-second; err != nil {
		// the first may have had the lock: its place ends with its session
		t.Errorf("%v", err)
	}
	if v := h.owner.Load(); v != 2 {
		t.Errorf("%d has the lock", v)
	}
	go func() { first <- h.words[2].WaitCompareAndSwap(t.Context(), 0, 3) }()
	h.waits(1)
	d, err := h.net.Restart(0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Serve("hall", 4096); err != nil { // from here on its peers learn of it
		t.Fatal(err)
	}
	if err := <-first; !errors.Is(err, xdpfab.ErrPeerRestarted) {
		t.Errorf("%v: want %v", err, xdpfab.ErrPeerRestarted)
	}
}

// On a wire that loses, repeats and reorders, a lock has one holder at a time, and each
// client gets it as often as it wants.
func TestRemoteWaitLossy(t *testing.T) {
	const clients, rounds = 4, 12
	h := newHall(t, clients)
	for i := range clients {
		f := xdpfab.Faults{Loss: 0.2, Duplicate: 0.1, Reorder: 0.1}
		for _, way := range [][2]int{{0, i + 1}, {i + 1, 0}} {
			if err := h.net.SetFaults(way[0], way[1], f); err != nil {
				t.Fatal(err)
			}
		}
	}
	var inside goatomic.Int32
	ends := make(chan error, clients)
	for i, w := range h.words {
		go func() {
			for range rounds {
				if err := w.WaitCompareAndSwap(t.Context(), 0, uint64(i+1)); err != nil {
					ends <- err
					return
				}
				if n := inside.Add(1); n != 1 || h.owner.Load() != uint64(i+1) {
					t.Errorf("%d hold the lock of %d", n, h.owner.Load())
				}
				inside.Add(-1)
				if err := w.Store(t.Context(), 0); err != nil {
					ends <- err
					return
				}
			}
			ends <- nil
		}()
	}
	for range clients {
		if err := <-ends; err != nil {
			t.Error(err)
		}
	}
	h.waits(0)
}
