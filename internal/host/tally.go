// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/share"
	"github.com/xdpfab/xdpfab/mr"
)

// mapTallies takes the memory in which the guest wants to find what peers do.
func (g *Guest) mapTallies(_ context.Context, _ json.RawMessage, fds []int) (any, error) {
	if len(fds) != 1 {
		return nil, wantFile(len(fds), "the tallies")
	}
	g.Mu.Lock()
	defer g.Mu.Unlock()
	if g.Tallies != nil {
		return nil, fmt.Errorf("there are tallies already: %w", errno.Busy)
	}
	if err := g.pays.take(talliesCost); err != nil {
		return nil, err
	}
	var err error
	if g.Tallies, err = share.MapTallies(fds[0], g.Segment, g.doorbell); err != nil {
		g.Tallies = nil
		g.pays.give(talliesCost)
	}
	return nil, err
}

// talliesCost is what the memory of tallies costs.
var talliesCost = Cost{Memory: share.TalliesLen, Files: 1, Mappings: 1}

// observe counts what peers do to a region from now on.
func (g *Guest) observe(_ context.Context, o share.Observe) (any, error) {
	g.h.Mu.Lock()
	defer g.h.Mu.Unlock()
	g.Mu.Lock()
	defer g.Mu.Unlock()
	r := g.regions[o.Key]
	if r == nil {
		return nil, fmt.Errorf("region %#x: %w", o.Key, errno.Closed)
	}
	if k := g.h.Tenancy.Kept[KeptID{g.info.UID, r.region.Name()}]; k != nil && k.region == r {
		return nil, errno.Refuse(errno.NotImplemented,
			"region %v outlives its program, and is not counted: want one that is not kept",
			r.region)
	}
	err := g.observeRegion(r.region, o.Tally)
	if err == nil && o.Tally != 0 {
		r.told.Tally = o.Tally
	}
	return nil, err
}

// observeRegion counts what peers do to a region, if there is where to. g.mu is held.
func (g *Guest) observeRegion(r *mr.Region, tally int) error {
	if tally == 0 {
		return nil
	}
	o, err := g.Tallies.Observer(tally)
	if err == nil && !r.Observe(o) {
		err = fmt.Errorf("region %v is counted already: %w", r, errno.Busy)
	}
	return err
}

// observeEndpoint counts what peers do through an endpoint. g.mu is held.
func (g *Guest) observeEndpoint(ep *GuestEndpoint, tally int) error {
	if tally == 0 {
		return nil
	}
	o, err := g.Tallies.Observer(tally)
	if err == nil {
		ep.observer.Store(o)
		ep.tally = tally
	}
	return err
}
