// SPDX-License-Identifier: Apache-2.0

package calls

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/xdpfab/xdpfab/internal/node"
	"github.com/xdpfab/xdpfab/internal/progress"
)

// Room divides the submission ring that dialled peers share among them, so that the
// callers of a silent peer cannot keep the callers of other peers waiting.
//
// A peer gets entries up to its fair share, but all except its first only as long as more
// are free than there are peers, and than an eighth of the ring. So, whatever the others
// hold, there is an entry for every peer that has none, and one each for peers that are
// dialled later, up to an eighth of the ring.
//
// A caller that gets no entry joins the queue of its peer and is granted one when others
// give theirs back. No wake-up gets lost: a caller counts itself in waiting before all
// callers in line try once more; a goroutine that gives an entry back looks at waiting
// afterwards; and a caller whose failed attempt may have made another's fail joins its
// queue, so that all in line try once more.
type Room struct {
	stepper *node.Stepper
	size    int32        // entries of the ring
	peers   atomic.Int32 // dialled
	used    atomic.Int32 // entries granted, and attempts under way
	waiting atomic.Int32 // callers in queues; written under mu

	mu   sync.Mutex
	line []*Allotment // those with a queue
	turn int          // index in line of the one to be served next
}

// Allotment is one peer's part of the room.
type Allotment struct {
	room    *Room
	used    atomic.Int32 // as Room.used
	waiting atomic.Int32 // len(queue); written under Room.mu
	queue   []*roomWait  // under Room.mu; the first comes first
}

// roomWait is a caller in a queue.
type roomWait struct {
	progress.Signal
	granted bool // under Room.mu
}

// NewRoom returns the room in a ring of that many entries, which the stepper's engine
// collects.
func NewRoom(st *node.Stepper, size int) *Room { return &Room{stepper: st, size: int32(size)} }

// Join counts a peer in, and returns its part.
func (r *Room) Join() *Allotment {
	r.peers.Add(1)
	return &Allotment{room: r}
}

// Part counts a peer out: the shares of the others grow.
func (r *Room) Part() {
	r.peers.Add(-1)
	r.settle()
}

// settle serves the peers in line. Callers' threads: a caller that is served may be
// asleep in the port, so it is woken. The engine's thread serves without that, since a
// caller cannot be in the port at the same time.
func (r *Room) settle() {
	if r.waiting.Load() == 0 {
		return
	}
	r.mu.Lock()
	served := r.serve()
	r.mu.Unlock()
	if served {
		r.stepper.Eng.Wake()
	}
}

// fits reports whether a peer may have mine entries when all peers have all. Shares leave
// room for one more peer. One entry is never granted, since an operation gives its entry
// back here a moment before it gives it back to the ring.
func (r *Room) fits(mine, all int32) bool {
	peers := r.peers.Load()
	if mine == 1 {
		return all < r.size
	}
	return mine <= r.size/(peers+1) && all < r.size-max(r.size/8, peers)
}

// Calls returns how many calls to the peer have an entry, and how many wait for one.
func (b *Allotment) Calls() (granted, waiting int32) { return b.used.Load(), b.waiting.Load() }

// Calls returns how many entries are granted, and how many queues of callers there are.
func (r *Room) Calls() (granted int32, queues int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.used.Load(), len(r.line)
}

// try takes an entry if the peer may have one more.
func (b *Allotment) try() bool {
	if b.room.fits(b.used.Add(1), b.room.used.Add(1)) {
		return true
	}
	b.giveBack()
	return false
}

func (b *Allotment) giveBack() {
	b.used.Add(-1)
	b.room.used.Add(-1)
}

// Enter takes an entry, and waits for it if need be. It fails when the context ends,
// or the domain.
func (b *Allotment) Enter(ctx context.Context) error {
	if b.waiting.Load() == 0 && b.try() {
		return nil
	}
	r, w := b.room, b.enqueue()
	err := r.stepper.Wait(ctx, &w.Signal)
	if err == nil {
		return nil
	}
	if b.dequeue(w) { // the entry came too late
		b.Cancel()
	}
	return err
}

// enqueue puts a caller into the queue and serves those in line, perhaps this one.
func (b *Allotment) enqueue() *roomWait {
	r, w := b.room, &roomWait{Signal: progress.NewSignal()}
	r.mu.Lock()
	if b.queue = append(b.queue, w); len(b.queue) == 1 {
		r.line = append(r.line, b)
	}
	b.waiting.Add(1)
	r.waiting.Add(1)
	r.mu.Unlock()
	r.settle()
	return w
}

// dequeue takes a caller that leaves out of the queue, unless it has been granted an
// entry.
func (b *Allotment) dequeue(w *roomWait) (granted bool) {
	r := b.room
	r.mu.Lock()
	defer r.mu.Unlock()
	if w.granted {
		return true
	}
	r.remove(b, slices.Index(b.queue, w))
	return false
}

// remove takes the caller at index i out of a queue, and an empty queue out of the
// line. r.mu is held.
func (r *Room) remove(b *Allotment, i int) {
	b.queue = slices.Delete(b.queue, i, i+1)
	b.waiting.Add(-1)
	r.waiting.Add(-1)
	if len(b.queue) > 0 {
		return
	}
	at := slices.Index(r.line, b)
	if r.line = slices.Delete(r.line, at, at+1); at < r.turn {
		r.turn--
	}
}

// Leave gives back the entry of an operation that has completed. Engine's thread.
func (b *Allotment) Leave() {
	b.giveBack()
	if r := b.room; r.waiting.Load() > 0 {
		r.mu.Lock()
		r.serve()
		r.mu.Unlock()
	}
}

// Cancel gives back an entry that was not used. Callers' threads.
func (b *Allotment) Cancel() {
	b.giveBack()
	b.room.settle()
}

// serve grants entries to the peers in line, one peer after the other, until none may
// have more. r.mu is held.
func (r *Room) serve() (served bool) {
	for misses := 0; misses < len(r.line); {
		if r.turn >= len(r.line) {
			r.turn = 0
		}
		b := r.line[r.turn]
		r.turn++
		if !r.fits(b.used.Load()+1, r.used.Load()+1) || !b.try() {
			misses++
			continue
		}
		w := b.queue[0]
		r.remove(b, 0)
		w.granted = true
		w.Raise()
		served, misses = true, 0
	}
	return served
}
