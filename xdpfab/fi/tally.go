// SPDX-License-Identifier: Apache-2.0

package fi

import (
	"fmt"
	"math"
	"slices"
	"sync/atomic"

	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/residence"
	"github.com/xdpfab/xdpfab/mr"
)

// tally has the counters of what peers do (FI_RMA_EVENT), by direction; nil where there
// is none. A peer's operation is counted when it has been applied, before the peer can
// know; one that fails is not counted.
type tally [directions]*Counter

// Touched implements executor.Observer, and with Closed that of a region. Engines'
// threads.
func (t *tally) Touched(returning, silent, bytesRead, bytesWritten int) {
	if c := t[reads]; c != nil && bytesRead|returning > 0 {
		c.count(c.amount(uint64(returning), uint64(bytesRead)), 0)
	}
	if c := t[writes]; c != nil && bytesWritten|silent > 0 {
		c.count(c.amount(uint64(silent), uint64(bytesWritten)), 0)
	}
}

// amount is what the counter counts of operations of so many bytes in all.
func (c *Counter) amount(ops, bytes uint64) uint64 {
	if c.bytes {
		return bytes
	}
	return ops
}

// regionTally is the tally of a region, which holds its counters until it is closed.
type regionTally struct {
	dom    *Domain
	region *mr.Region
	by     [directions]atomic.Pointer[Counter]
}

// Touched implements mr.Observer.
func (t *regionTally) Touched(returning, silent, bytesRead, bytesWritten int) {
	now := t.now()
	now.Touched(returning, silent, bytesRead, bytesWritten)
}

// now is the tally with the counters that the region has now.
func (t *regionTally) now() tally {
	return tally{reads: t.by[reads].Load(), writes: t.by[writes].Load()}
}

// Closed implements mr.Observer.
func (t *regionTally) Closed() {
	residence.Of(t.dom.node).Counted.Drop(t)
	t.Tell() // of what another goroutine has counted, and can no longer tell
	for i := range t.by {
		if c := t.by[i].Swap(nil); c != nil {
			c.drop()
		}
	}
}

// BindRegion has a counter count what peers do to a region of the domain (fi_mr_bind,
// FI_RMA_EVENT): with BindRemoteRead their fetch and compare operations, with
// BindRemoteWrite their base operations, once they have been applied. An array counts
// once, an operation on extents once for each; a counter of bytes has those that they
// have read or changed. A region has one counter for each of the two, and holds it until
// it is closed.
//
// The region may be resident. What the XDP program executes is counted before the peer
// can know, as is what the poller executes, and a reader of the counter finds it.
// Callers that wait wake up when the program has executed what they wait for; one that
// begins to wait while peers are at work may do so a millisecond later. A counter ends
// with its process, though a resident region may not.
func (d *Domain) BindRegion(r *mr.Region, c *Counter, flags BindFlags) error {
	if err := d.there(); err != nil {
		return err
	}
	defer d.stay()()
	switch {
	case flags == 0 || flags&^remoteFlags != 0:
		return errno.Refuse(ErrBadFlags,
			"xdpfab: region %v: a counter with flags %v: want some of %v", r, flags, remoteFlags)
	case c == nil || c.dom != d || r == nil || !slices.Contains(d.node.Table.All(), r):
		return errno.Refuse(ErrForeign,
			"xdpfab: region or counter is nil, closed, or of another domain: want those of %s",
			d.label())
	}
	t, err := d.observe(r)
	if err != nil {
		return err
	}
	c.owner.CompareAndSwap(nil, d.node.Steppers[0])
	for direction, flag := range [directions]BindFlags{reads: BindRemoteRead, writes: BindRemoteWrite} {
		if flags&flag == 0 {
			continue
		}
		if err := c.hold(); err != nil {
			return err
		}
		if !t.by[direction].CompareAndSwap(nil, c) {
			c.drop()
			return errno.Refuse(ErrBusy, "xdpfab: region %v: a counter with %v is bound already: want only one", r,
				flag)
		}
	}
	if r.Observer() != t { // closed meanwhile, maybe before it had the counter
		t.Closed()
		return d.regionClosed(r)
	}
	return nil
}

// observe returns the tally of an open region of the domain, which learns what peers do
// from now on, whoever executes it.
func (d *Domain) observe(r *mr.Region) (*regionTally, error) {
	r.Observe(&regionTally{dom: d, region: r})
	t, ours := r.Observer().(*regionTally)
	if !ours {
		return nil, fmt.Errorf("xdpfab: region %v is closed, or has another observer: %w", r, ErrBusy)
	}
	if err := d.node.Dev.Observe(r.Key(), t); err != nil {
		return nil, err
	}
	if r.Memory().Kind() == mr.KindResident {
		if err := residence.Of(d.node).ObserveProgram(r.Key(), t); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// Awaited reports whether anything waits for the counters, or for words, of the region.
func (t *regionTally) Awaited() bool {
	if w, is := t.region.Watcher().(*watch); is && w.sleepers.count.Load() > 0 {
		return true
	}
	for _, c := range t.now() {
		if c != nil && (c.sleepers.count.Load() > 0 || c.due.Load() != math.MaxUint64) {
			return true
		}
	}
	return false
}

// A host counts what peers do for its guests: see share.Counted.

// Count implements share.Counted.
func (t *tally) Count(returning, silent, bytesRead, bytesWritten uint64) {
	if c := t[reads]; c != nil {
		c.value.Add(c.amount(returning, bytesRead))
	}
	if c := t[writes]; c != nil {
		c.value.Add(c.amount(silent, bytesWritten))
	}
}

// Tell implements share.Counted.
func (t *tally) Tell() {
	for i, c := range t {
		if c != nil && (i == 0 || c != t[0]) {
			c.tell()
		}
	}
}

// Count implements share.Counted.
func (t *regionTally) Count(returning, silent, bytesRead, bytesWritten uint64) {
	now := t.now()
	now.Count(returning, silent, bytesRead, bytesWritten)
}

// Tell implements share.Counted.
func (t *regionTally) Tell() {
	now := t.now()
	now.Tell()
	t.region.Changed()
}

// tell starts the work that waits for the value that the counter has, and wakes the
// sleepers whose wait is over.
func (c *Counter) tell() {
	if c.value.Load() >= c.due.Load() {
		c.dom.triggers.fire(c)
	}
	c.notify()
}

// tallyAtHost has the host count what peers do through an endpoint from the time on
// when it serves them, and returns the number of the tally, or 0.
func (ep *endpoint) tallyAtHost() (number int, err error) {
	if ep.remote == (tally{}) {
		return 0, nil
	}
	if ep.tally == nil {
		if ep.tally, err = ep.dom.node.Dev.NewTally(&ep.remote); err != nil {
			return 0, err
		}
	}
	return ep.tally.Number(), nil
}
