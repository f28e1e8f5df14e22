// SPDX-License-Identifier: Apache-2.0

package xdpfab

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/xdpfab/xdpfab/internal/share"
)

// The host of a domain counts what peers do, in memory that both have: share.Tallies.

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
}

// tell starts the work that waits for the value that the counter has, and wakes the
// sleepers whose wait is over.
func (c *Counter) tell() {
	if c.value.Load() >= c.due.Load() {
		c.dom.triggers.fire(c)
	}
	c.notify()
}

// tally has the host count for something that peers touch. a.tallying is held.
func (a *attached) tally(to share.Counted) (*share.Tally, error) {
	all := a.carrier.Tallies()
	if all == nil {
		var err error
		if all, err = share.NewTallies(); err != nil {
			return nil, err
		}
		if err := a.offerTallies(context.Background(), all); err != nil {
			return nil, errors.Join(err, all.Close())
		}
		a.carrier.Tally(all)
	}
	return all.Use(to)
}

// offerTallies has a host count in the tallies, if there are any.
func (a *attached) offerTallies(ctx context.Context, all *share.Tallies) error {
	if all == nil {
		return nil
	}
	return a.call(ctx, share.CallTallies, struct{}{}, nil, all.FD())
}

// free gives a tally back, when the host counts in it no more. What was counted is told.
func (a *attached) free(t *share.Tally) {
	if t != nil {
		a.carrier.Tallies().Look()
		t.Free()
	}
}

// observe has the host count what peers do to a region. What they have done before is no
// concern of a counter that is bound now.
func (a *attached) observe(key uint64, to *regionTally) error {
	a.tallying.Lock()
	defer a.tallying.Unlock()
	observed := false
	if !a.regionOf(key, func(x *offered) { observed = x.tally != nil }) {
		return fmt.Errorf("xdpfab: region %#x: %w", key, ErrClosed)
	}
	if observed {
		a.carrier.Tallies().Look()
		return nil
	}
	t, err := a.tally(to)
	if err != nil {
		return fmt.Errorf("xdpfab: counter of region %#x: %w", key, err)
	}
	err = a.call(context.Background(), share.CallObserve, share.Observe{Key: key, Tally: t.Number()}, nil)
	if err == nil && !a.regionOf(key, func(x *offered) { x.tally, x.Tally = t, t.Number() }) {
		err = ErrClosed
	}
	if err != nil {
		a.free(t)
		return fmt.Errorf("xdpfab: counter of region %#x: %w", key, err)
	}
	return nil
}

// regionOf calls f with what hosts are told of a region, and reports whether there is one
// of that key.
func (a *attached) regionOf(key uint64, f func(*offered)) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	i := slices.IndexFunc(a.regions, func(x offered) bool { return x.Key == key })
	if i >= 0 {
		f(&a.regions[i])
	}
	return i >= 0
}

// observeEndpoint has the host count what peers do through an endpoint from the time on
// when it serves them, and returns the number of the tally, or 0.
func (a *attached) observeEndpoint(ep *Endpoint) (number int, err error) {
	if ep.remote == (tally{}) {
		return 0, nil
	}
	a.tallying.Lock()
	defer a.tallying.Unlock()
	if ep.tally == nil {
		if ep.tally, err = a.tally(&ep.remote); err != nil {
			return 0, err
		}
	}
	return ep.tally.Number(), nil
}
