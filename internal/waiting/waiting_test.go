// SPDX-License-Identifier: Apache-2.0

package waiting_test

import (
	"encoding/binary"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	ops "github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/waiting"
	"github.com/xdpfab/xdpfab/mr"
)

// owner has one note. What it has to do soon is done by settle.
type owner struct {
	silent atomic.Bool
	woke   chan struct{}
	woken  atomic.Int32
	mu     sync.Mutex
	later  []func()
}

func (o *owner) Wake()         { o.woken.Add(1); close(o.woke) }
func (o *owner) Silent() bool  { return o.silent.Load() }
func (o *owner) Soon(f func()) { o.mu.Lock(); o.later = append(o.later, f); o.mu.Unlock() }

// hall is a region with a word.
type hall struct {
	t      *testing.T
	region *mr.Region
	word   *atomic.Uint64
}

func newHall(t *testing.T) *hall {
	t.Helper()
	m, err := mr.Alloc(4096, mr.AllocOptions{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := mr.NewTable().Register(m, mr.Options{Access: mr.RemoteRead | mr.RemoteWrite})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	word, err := r.Uint64(0)
	if err != nil {
		t.Fatal(err)
	}
	return &hall{t, r, word}
}

// note is an operation on the word.
func (h *hall) note(op ops.Op, operand, comparand uint64) (*waiting.Note, *owner) {
	o := &owner{woke: make(chan struct{})}
	n := &waiting.Note{Op: op, Datatype: ops.Uint64, Kernel: ops.KernelOf(ops.Compare, op, ops.Uint64),
		Target: h.region.Bytes()[:8], Owner: o}
	binary.LittleEndian.PutUint64(n.Operand[:], operand)
	binary.LittleEndian.PutUint64(n.Compare[:], comparand)
	return n, o
}

// enter has a note enter, and checks its state then.
func (h *hall) enter(op ops.Op, operand, comparand uint64, want waiting.State) (*waiting.Note, *owner) {
	h.t.Helper()
	n, o := h.note(op, operand, comparand)
	if got := waiting.Of(h.region).Enter(n, true); got != want {
		h.t.Fatalf("a note that enters is in state %d, want %d", got, want)
	}
	return n, o
}

// set changes the word as its owner does.
func (h *hall) set(v uint64) { h.word.Store(v); h.region.Changed() }

func (h *hall) is(want uint64) {
	h.t.Helper()
	if v := h.word.Load(); v != want {
		h.t.Errorf("the word is %d, want %d", v, want)
	}
}

func states(all ...*waiting.Note) (s []waiting.State) {
	for _, n := range all {
		s = append(s, n.State())
	}
	return s
}

func (h *hall) are(all []*waiting.Note, want ...waiting.State) {
	h.t.Helper()
	if got := states(all...); !slices.Equal(got, want) {
		h.t.Errorf("states %d, want %d", got, want)
	}
}

// A lock goes to those who wait for it in their order, and each runs once.
func TestNotesRunInOrder(t *testing.T) {
	h := newHall(t)
	first, _ := h.enter(ops.Cswap, 1, 0, waiting.Ran)
	second, woken := h.enter(ops.Cswap, 2, 0, waiting.Parked)
	third, _ := h.enter(ops.Cswap, 3, 0, waiting.Parked)
	h.is(1)
	before := h.region.Tally()
	h.set(0)
	h.is(2)
	h.are([]*waiting.Note{first, second, third}, waiting.Ran, waiting.Ran, waiting.Parked)
	if woken.woken.Load() != 1 || second.Value() != 0 || h.region.Tally().Fetching != before.Fetching+1 {
		t.Errorf("woken %d times, value %d, %+v", woken.woken.Load(), second.Value(), h.region.Tally())
	}
	h.set(0)
	h.is(3)
	h.set(0)
	h.is(0)
	if n := waiting.Of(h.region).Len(); n != 0 {
		t.Errorf("%d still wait", n)
	}
}

// One whose condition holds does not pass by those who wait in its queue; one of another
// queue does.
func TestNotesDoNotPassBy(t *testing.T) {
	h := newHall(t)
	h.set(3)
	large, _ := h.enter(ops.DiffAtLeast, 5, 0, waiting.Parked)
	small, _ := h.enter(ops.DiffAtLeast, 1, 0, waiting.Parked)
	h.enter(ops.DiffAtLeast, 1, 1, waiting.Ran) // has another comparand
	h.set(7)
	h.are([]*waiting.Note{large, small}, waiting.Ran, waiting.Ran)
	h.is(1)
}

// What is cancelled never runs, and does not stand in the way of those behind it.
func TestNotesEnd(t *testing.T) {
	h := newHall(t)
	h.set(3)
	large, _ := h.enter(ops.DiffAtLeast, 5, 0, waiting.Parked)
	middle, _ := h.enter(ops.DiffAtLeast, 4, 0, waiting.Parked)
	small, _ := h.enter(ops.DiffAtLeast, 1, 0, waiting.Parked)
	if got := middle.End(waiting.Late); got != waiting.Late {
		t.Errorf("state %d", got)
	}
	h.are([]*waiting.Note{large, small}, waiting.Parked, waiting.Parked)
	large.End(waiting.Cancelled)
	h.are([]*waiting.Note{large, middle, small}, waiting.Cancelled, waiting.Late, waiting.Ran)
	if got := small.End(waiting.Cancelled); got != waiting.Ran {
		t.Errorf("one that has run is in state %d", got)
	}
	h.set(100)
	h.is(100)
}

// Where there is no room nobody waits, but one that can run at once does.
func TestNotesWithoutRoom(t *testing.T) {
	h := newHall(t)
	w := waiting.Of(h.region)
	n, _ := h.note(ops.Cswap, 1, 0)
	if got := w.Enter(n, false); got != waiting.Ran {
		t.Errorf("state %d", got)
	}
	n, _ = h.note(ops.Cswap, 2, 0)
	if got := w.Enter(n, false); got != waiting.New {
		t.Errorf("state %d", got)
	}
	h.enter(ops.Cswap, 3, 0, waiting.Parked)
	if h.word.Store(0); w.Enter(n, false) != waiting.New {
		t.Error("it passed by one that waits")
	}
}

// Who may be dead is passed by until it is heard again, and has its place then.
func TestNotesOfTheSilent(t *testing.T) {
	h := newHall(t)
	h.set(9)
	dead, o := h.enter(ops.Cswap, 1, 0, waiting.Parked)
	next, _ := h.enter(ops.Cswap, 2, 0, waiting.Parked)
	last, _ := h.enter(ops.Cswap, 3, 0, waiting.Parked)
	o.silent.Store(true)
	h.set(0)
	h.are([]*waiting.Note{dead, next, last}, waiting.Parked, waiting.Ran, waiting.Parked)
	o.silent.Store(false)
	dead.Look()
	h.are([]*waiting.Note{dead, last}, waiting.Parked, waiting.Parked)
	h.set(0)
	h.are([]*waiting.Note{dead, last}, waiting.Ran, waiting.Parked)
	h.is(1)
}

// A look runs no more than so many notes, and has the others looked at soon.
func TestLooksHaveABound(t *testing.T) {
	h := newHall(t)
	const n = 2*waiting.AtOnce + 5
	var owners []*owner
	for range n {
		_, o := h.enter(ops.Cswap, 7, 7, waiting.Parked)
		owners = append(owners, o)
	}
	h.set(7)
	for left, rounds := n, 0; left > 0; rounds++ {
		at := waiting.Of(h.region).Len()
		if at != max(left-waiting.AtOnce, 0) || rounds > 3 {
			t.Fatalf("after round %d %d wait, before there were %d", rounds, at, left)
		}
		left = at
		var later []func()
		for _, o := range owners {
			later, o.later = append(later, o.later...), nil
		}
		for _, f := range later {
			f()
		}
	}
}

// With the region ends what waits for its words, and nothing waits from then on.
func TestNotesOfAClosedRegion(t *testing.T) {
	h := newHall(t)
	h.set(9)
	n, o := h.enter(ops.Cswap, 1, 0, waiting.Parked)
	late, _ := h.note(ops.Cswap, 1, 0)
	w := waiting.Of(h.region)
	if err := h.region.Close(); err != nil {
		t.Fatal(err)
	}
	if n.State() != waiting.Closed || o.woken.Load() != 1 || w.Enter(late, true) != waiting.Closed ||
		waiting.Of(h.region) != nil || n.End(waiting.Late) != waiting.Closed {
		t.Errorf("state %d, woken %d times, another one %d", n.State(), o.woken.Load(), late.State())
	}
}

// Those who wait for a lock get it one after another, on many threads, while the holder
// frees it as pollers do, and others give up.
func TestNotesOfManyThreads(t *testing.T) {
	h := newHall(t)
	w := waiting.Of(h.region)
	const threads, rounds = 8, 100
	var inside atomic.Int32
	var done sync.WaitGroup
	for id := range uint64(threads) {
		done.Go(func() {
			for round := range rounds {
				n, o := h.note(ops.Cswap, id+1, 0)
				got := w.Enter(n, true)
				if round%7 == 0 {
					got = n.End(waiting.Cancelled)
				}
				for got == waiting.Parked {
					<-o.woke
					got = n.State()
				}
				if got != waiting.Ran {
					continue
				}
				if inside.Add(1) != 1 || h.word.Load() != id+1 {
					t.Errorf("%d is in with others, and the word is %d", id+1, h.word.Load())
				}
				inside.Add(-1)
				h.word.Store(0)
				h.region.AddTally(mr.Tally{NonFetching: 1, NonFetchingBytes: 8})
			}
		})
	}
	done.Wait()
	if w.Len() != 0 || h.word.Load() != 0 {
		t.Errorf("%d still wait, and the word is %d", w.Len(), h.word.Load())
	}
}

func TestWaits(t *testing.T) {
	for _, tt := range []struct {
		op   ops.Op
		dt   ops.Datatype
		want bool
	}{{ops.Cswap, ops.Uint64, true}, {ops.CswapGT, ops.Double, true}, {ops.SumAtMost, ops.Uint8, true},
		{ops.SumAtMost, ops.Float, false}, {ops.Mswap, ops.Uint64, false}, {ops.Sum, ops.Uint64, false},
		{ops.Cswap, ops.Uint128, false}, {ops.Cswap, ops.NumDatatypes, false}} {
		if got := waiting.Waits(tt.op, tt.dt); got != tt.want {
			t.Errorf("%v on %v: %t", tt.op, tt.dt, got)
		}
	}
}
