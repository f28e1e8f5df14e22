// SPDX-License-Identifier: Apache-2.0

//go:build linux

package share

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/xdpfab/xdpfab/mr"
)

// Tallies are memory in which hosts count what peers do to regions and endpoints of a
// guest. The guest makes it, and gives it to one host after the other: they only add. A
// host adds before the peer can know that its operation has been applied, and the guest
// looks whenever a counter is read, so that it finds all that any peer knows of.
type Tallies struct {
	mem   *mr.Memory
	h     *tallyHeader
	sums  []tallySums
	list  atomic.Pointer[[]*Tally] // those in use; stored under mu
	mu    sync.Mutex               // held by the guest while it looks
	ended bool
	free  []int  // places of sums
	saw   uint64 // h.touched, when the guest last looked
}

// tallyHeader begins the memory.
type tallyHeader struct {
	touched atomic.Uint64 // changes with every sum
	_       [56]byte
}

// tallySums are the operations of peers on one thing, and their bytes.
type tallySums struct{ reads, writes, bytesRead, bytesWritten atomic.Uint64 }

// tallied is what tallySums were at a time.
type tallied struct{ reads, writes, bytesRead, bytesWritten uint64 }

func (s *tallySums) now() tallied {
	return tallied{s.reads.Load(), s.writes.Load(), s.bytesRead.Load(), s.bytesWritten.Load()}
}

// MostTallies is how many regions and endpoints can be counted at a time.
const MostTallies = 4092

const (
	tallyHeaderLen = 64
	tallySumsLen   = 32
	talliesLen     = tallyHeaderLen + tallySumsLen*MostTallies
)

// Tally is the place of one thing that peers touch. It belongs to the guest.
type Tally struct {
	all   *Tallies
	place int
	to    Counted
	told  tallied
}

// NewTallies makes the memory, whose FD is for the host.
func NewTallies() (*Tallies, error) {
	m, err := mr.Memfd("xdpfab tallies", talliesLen)
	if err != nil {
		return nil, err
	}
	t := talliesOf(m)
	for i := range MostTallies {
		t.free = append(t.free, MostTallies-1-i)
	}
	return t, nil
}

// FD is the memfd, which stays the tallies'.
func (t *Tallies) FD() int { return t.mem.FD() }

// Close unmaps the memory.
func (t *Tallies) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended = true
	return t.mem.Close()
}

// Use takes a place for something that peers touch.
func (t *Tallies) Use(to Counted) (*Tally, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.free) == 0 {
		return nil,
			fmt.Errorf("%d regions and endpoints have counters of what peers do: want at most so many at a time",
				MostTallies)
	}
	x := &Tally{all: t, place: t.free[len(t.free)-1], to: to}
	t.free = t.free[:len(t.free)-1]
	x.told = t.sums[x.place].now()
	t.publish(append(t.inUse(), x))
	return x, nil
}

// Number names the place to the host; it is not 0.
func (x *Tally) Number() int { return x.place + 1 }

// Free gives the place back, after the host has ceased to count in it.
func (x *Tally) Free() {
	t := x.all
	t.mu.Lock()
	defer t.mu.Unlock()
	var rest []*Tally
	for _, y := range t.inUse() {
		if y != x {
			rest = append(rest, y)
		}
	}
	t.publish(rest)
	t.free = append(t.free, x.place)
}

// inUse are the tallies in use. publish replaces them: the old list is not changed.
func (t *Tallies) inUse() []*Tally {
	if all := t.list.Load(); all != nil {
		return append([]*Tally(nil), *all...)
	}
	return nil
}

func (t *Tallies) publish(all []*Tally) { t.list.Store(&all) }

// Pending reports whether there may be something to look at. Engine's thread.
func (t *Tallies) Pending() bool {
	if t == nil {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.h.touched.Load() != t.saw
}

// Look counts what has been added since the last call. Any goroutine of the guest; it
// finds all that was added before the call, whatever other readers do.
func (t *Tallies) Look() {
	if t == nil {
		return
	}
	if all := t.list.Load(); all == nil || len(*all) == 0 {
		return
	}
	var some [8]Counted
	for _, c := range t.count(some[:0]) {
		c.Tell()
	}
}

// count is Look without telling: it returns whom to tell.
func (t *Tallies) count(whom []Counted) []Counted {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended || t.h.touched.Load() == t.saw {
		return whom
	}
	t.saw = t.h.touched.Load()
	for _, x := range *t.list.Load() {
		if now := t.sums[x.place].now(); now != x.told {
			x.to.Count(now.reads-x.told.reads, now.writes-x.told.writes, now.bytesRead-x.told.bytesRead,
				now.bytesWritten-x.told.bytesWritten)
			x.told = now
			whom = append(whom, x.to)
		}
	}
	return whom
}

// Observers is the host's view of a guest's tallies. It wakes the guest by its doorbell.
type Observers struct {
	*Tallies
	segment  *Segment
	doorbell *Doorbell
}

// TalliesLen is the most memory that tallies take, bytes.
const TalliesLen = talliesLen + page

// MapTallies maps the tallies of a guest, whose segment and doorbell stay the caller's.
func MapTallies(fd int, a *Segment, doorbell *Doorbell) (*Observers, error) {
	m, err := mr.Shared(fd, TalliesLen)
	if err != nil {
		return nil, err
	}
	if len(m.Bytes()) < talliesLen {
		n := len(m.Bytes())
		return nil, fmt.Errorf("tallies of %d bytes: want %d (%w)", n, talliesLen, m.Close())
	}
	return &Observers{talliesOf(m), a, doorbell}, nil
}

// Observer counts in one place of the tallies. It implements mr.Observer, and that of
// executors.
type Observer struct {
	in   *Observers
	sums *tallySums
}

// Observer returns the observer that counts in the place of a number.
func (o *Observers) Observer(number int) (*Observer, error) {
	if o == nil || number < 1 || number > MostTallies {
		return nil, fmt.Errorf("tally %d: want 1..%d, and memory for tallies", number, MostTallies)
	}
	return &Observer{o, &o.sums[number-1]}, nil
}

// Touched implements mr.Observer. Any thread.
func (o *Observer) Touched(reads, writes, bytesRead, bytesWritten int) {
	o.sums.reads.Add(uint64(reads))
	o.sums.writes.Add(uint64(writes))
	o.sums.bytesRead.Add(uint64(bytesRead))
	o.sums.bytesWritten.Add(uint64(bytesWritten))
	o.in.h.touched.Add(1)
	if h := o.in.segment.h; h.guestSleeps.Load() != 0 && h.guestSleeps.Swap(0) != 0 {
		o.in.doorbell.Ring()
	}
}

// Closed implements mr.Observer.
func (o *Observer) Closed() {}
