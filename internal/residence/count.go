// SPDX-License-Identifier: Apache-2.0

//go:build linux

package residence

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/resident"
	"github.com/xdpfab/xdpfab/internal/share"
)

// The XDP program counts what it applies to a resident region in memory that the domain
// reads; what the poller applies to it, the poller counts, as for any region. An
// operation is applied by one of the two.

// counted is what counts the operations on a region.
type counted interface {
	share.Counted
	// Awaited reports whether anything waits for what is counted.
	Awaited() bool
}

// programTally is what the program has applied to a region that has counters.
type programTally struct {
	to   counted
	from *resident.Count
	told resident.Touched
}

// programTallies are those of a domain. The reader of a counter looks at them first, and
// an event of the program has them looked at while no goroutine reads.
type programTallies struct {
	some atomic.Bool // the list is not empty

	mu   sync.Mutex // held while one looks
	list []*programTally
	end  func()        // of events; nil before the first tally
	over chan struct{} // closed with the events

	asked atomic.Bool // the caller's goroutine has yet to look, with ThreadDomain
}

// rest is how long the program need not report further operations if no goroutine waits
// for them. Otherwise it would tell of each, as fast as a goroutine wakes up.
const rest = time.Millisecond

// look counts what the program has applied since the last call. Any goroutine; in a
// domain with ThreadDomain the caller's.
func (p *programTallies) look() {
	if !p.some.Load() {
		return
	}
	var room [8]counted
	whom := p.count(room[:0])
	for i := range whom {
		whom[i].Tell()
	}
}

// count is look without telling: it returns whom to tell, though the region may be closed
// before that.
func (p *programTallies) count(whom []counted) []counted {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, x := range p.list {
		now := x.from.Now()
		if now == x.told {
			continue
		}
		x.to.Count(now.Reads-x.told.Reads, now.Writes-x.told.Writes, now.BytesRead-x.told.BytesRead,
			now.BytesWritten-x.told.BytesWritten)
		x.told = now
		whom = append(whom, x.to)
	}
	return whom
}

// rearm has the program tell of the next operation on each region.
func (p *programTallies) rearm() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, x := range p.list {
		x.from.Arm()
	}
}

// awaited reports whether anything waits for what the program counts.
func (p *programTallies) awaited() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, x := range p.list {
		if x.to.Awaited() {
			return true
		}
	}
	return false
}

// ObserveProgram has the program count what it applies to a region, for its tally. What
// was applied before does not concern a counter that is bound now.
func (h *Residence) ObserveProgram(key uint64, t counted) error {
	p := &h.Counted
	p.look()
	h.Mu.Lock()
	defer h.Mu.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	if slices.ContainsFunc(p.list, func(x *programTally) bool { return x.to == t }) {
		return nil
	}
	if h.Executor == nil {
		return fmt.Errorf("xdpfab: region %#x: %w", key, errno.Closed)
	}
	from, err := h.Executor.Count(key)
	if err != nil {
		return fmt.Errorf("xdpfab: %w", err)
	}
	if p.end == nil {
		p.over = make(chan struct{})
		if p.end, err = h.Executor.OnTouch(h.touchedByProgram); err != nil {
			return fmt.Errorf("xdpfab: %w", err)
		}
	}
	p.list = append(p.list, &programTally{t, from, from.Now()})
	p.some.Store(true)
	from.Arm()
	return nil
}

// touchedByProgram is called after the program has applied operations to a region with
// counters. What it applies from the second look on makes another event.
func (h *Residence) touchedByProgram() {
	p := &h.Counted
	h.haveLook()
	if !p.awaited() {
		select {
		case <-p.over:
			return
		case <-time.After(rest):
		}
	}
	p.rearm()
	h.haveLook()
}

// haveLook has the program's counts looked at by a goroutine that may.
func (h *Residence) haveLook() {
	p := &h.Counted
	if !h.n.Config.Alone {
		p.look()
	} else if !p.asked.Swap(true) {
		h.n.Turns[0].Interrupt(func() {
			p.asked.Store(false)
			p.look()
		})
	}
}

// Drop counts for the last time what the program has applied to a region.
func (p *programTallies) Drop(t counted) {
	p.look()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.list = slices.DeleteFunc(p.list, func(x *programTally) bool { return x.to == t })
	p.some.Store(len(p.list) > 0)
}

// close ends the events.
func (p *programTallies) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.end != nil {
		p.end()
		close(p.over)
		p.end = nil
	}
}
