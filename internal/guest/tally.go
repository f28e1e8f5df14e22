// SPDX-License-Identifier: Apache-2.0

//go:build linux

package guest

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/share"
)

// The host of a domain counts what peers do, in memory that both have: share.Tallies.

// NewTally has the host count for an endpoint.
func (a *Attached) NewTally(to share.Counted) (*share.Tally, error) {
	a.tallying.Lock()
	defer a.tallying.Unlock()
	return a.tally(to)
}

// tally has the host count for something that peers touch. a.tallying is held.
func (a *Attached) tally(to share.Counted) (*share.Tally, error) {
	all := a.Ring.Tallies()
	if all == nil {
		var err error
		if all, err = share.NewTallies(); err != nil {
			return nil, err
		}
		if err := a.offerTallies(context.Background(), all); err != nil {
			return nil, errors.Join(err, all.Close())
		}
		a.Ring.Tally(all)
	}
	return all.Use(to)
}

// offerTallies has a host count in the tallies, if there are any.
func (a *Attached) offerTallies(ctx context.Context, all *share.Tallies) error {
	if all == nil {
		return nil
	}
	return a.Call(ctx, share.CallTallies, struct{}{}, nil, all.FD())
}

// free gives a tally back, when the host counts in it no more. What was counted is told.
func (a *Attached) free(t *share.Tally) {
	if t != nil {
		a.Ring.Tallies().Look()
		t.Free()
	}
}

// Observe has the host count what peers do to a region. What they have done before is no
// concern of a counter that is bound now.
func (a *Attached) Observe(key uint64, to share.Counted) error {
	a.tallying.Lock()
	defer a.tallying.Unlock()
	if a.attendsTo(key) { // counted where it is executed
		return nil
	}
	observed := false
	if !a.regionOf(key, func(x *offered) { observed = x.tally != nil }) {
		return fmt.Errorf("xdpfab: region %#x: %w", key, errno.Closed)
	}
	if observed {
		a.Ring.Tallies().Look()
		return nil
	}
	t, err := a.tally(to)
	if err != nil {
		return fmt.Errorf("xdpfab: counter of region %#x: %w", key, err)
	}
	err = a.Call(context.Background(), share.CallObserve, share.Observe{Key: key, Tally: t.Number()}, nil)
	if err == nil && !a.regionOf(key, func(x *offered) { x.tally, x.Tally = t, t.Number() }) {
		err = errno.Closed
	}
	if err != nil {
		a.free(t)
		return fmt.Errorf("xdpfab: counter of region %#x: %w", key, err)
	}
	return nil
}

// regionOf calls f with what hosts are told of a region, and reports whether there is one
// of that key.
func (a *Attached) regionOf(key uint64, f func(*offered)) bool {
	a.Mu.Lock()
	defer a.Mu.Unlock()
	i := slices.IndexFunc(a.regions, func(x offered) bool { return x.Key == key })
	if i >= 0 {
		f(&a.regions[i])
	}
	return i >= 0
}
