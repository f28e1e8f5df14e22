// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/share"
)

// takeBack gives the guest a region that was kept, and makes it successor to what the
// former program has left.
func (g *Guest) takeBack(ctx context.Context, name string) (any, error) {
	if g.limits.Serve != nil {
		if err := g.limits.Serve(name); err != nil {
			return nil, fmt.Errorf("region %q: %w: %w", name, err, errno.Denied)
		}
	}
	if err := g.awaitEnd(ctx, name); err != nil {
		return nil, err
	}
	g.making.Lock()
	defer g.making.Unlock()
	g.h.Mu.Lock()
	defer g.h.Mu.Unlock()
	k := g.h.Tenancy.Kept[KeptID{g.info.UID, name}]
	switch {
	case k == nil:
		return nil, fmt.Errorf("region %q of user %d: %w", name, g.info.UID, errno.NotKept)
	case k.taken || k.Holder != g && !k.Holder.Ended:
		return nil, fmt.Errorf("region %q: process %d has it: %w", name, k.Holder.info.PID, errno.Busy)
	}
	if k.Holder != g {
		if err := g.inherit(k.Holder); err != nil {
			return nil, fmt.Errorf("region %q: %w", name, err)
		}
	}
	fd, err := unix.FcntlInt(uintptr(k.region.memory.FD()), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("region %q: %w", name, err)
	}
	k.taken = true
	g.limits.Serves()
	return handed{k.region.told, fd}, nil
}

// handed is the result of a call that goes to the guest with a file descriptor, which is
// closed then.
type handed struct {
	share.Region
	fd int
}

// EndWait is how long a program that takes a region back waits for its holder:
// that may be ending just now. It is a variable for tests.
var EndWait = 2 * time.Second

// awaitEnd waits until the program has ended that has a kept region.
func (g *Guest) awaitEnd(ctx context.Context, name string) error {
	g.h.Mu.Lock()
	k := g.h.Tenancy.Kept[KeptID{g.info.UID, name}]
	g.h.Mu.Unlock()
	if k == nil || k.Holder == g {
		return nil
	}
	select {
	case <-k.Holder.Gone:
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(EndWait):
	}
	return nil
}

// inherit makes the guest successor to what another one has left. Nothing of that may
// meet with what the guest has, so the guest must have nothing yet. Host.mu and making
// are held.
func (g *Guest) inherit(from *Guest) error {
	from.Mu.Lock()
	defer from.Mu.Unlock()
	g.Mu.Lock()
	defer g.Mu.Unlock()
	for id, x := range g.h.Tenancy.Kept {
		if x.Holder == from && g.limits.Serve != nil && g.limits.Serve(id.Name) != nil {
			return fmt.Errorf("the former program has region %q, too, which %s does not let this one serve: %w",
				id.Name, g.limits.Rule, errno.Denied)
		}
	}
	switch {
	case g.settled:
		return errno.Refuse(errno.Busy,
			"the program has made endpoints or regions, or taken others back: want a domain that has not")
	case len(from.regions) > g.limits.Regions:
		return g.tooMany("regions", g.limits.Regions)
	case len(from.endpoints) > g.limits.Endpoints:
		return g.tooMany("endpoints", g.limits.Endpoints)
	case from.spanned > g.limits.Memory:
		return fmt.Errorf("regions of %d bytes: %s allows %d in all; have its limit memory raised: %w", from.spanned,
			g.limits.Rule, g.limits.Memory, errno.Denied)
	}
	g.settled = true
	g.table, g.executors, g.memory = from.table, from.executors, from.memory
	g.regions, g.spanned = from.regions, from.spanned
	for n, old := range from.endpoints {
		ep := &GuestEndpoint{Guest: g, number: n, as: old.as, key: old.key, left: true}
		ep.on.Store(true)
		g.endpoints[n] = ep
		g.h.n.Numbers.Put(n, ep)
	}
	from.endpoints, from.regions = nil, nil // engines may still ask it for an executor
	for _, k := range g.h.Tenancy.Kept {
		if k.Holder == from {
			k.Holder = g
		}
	}
	return nil
}
