// SPDX-License-Identifier: Apache-2.0

package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/node"
	"github.com/xdpfab/xdpfab/mr"
)

// A guest can have regions kept: when it has ended, peers go on operating on them, by the
// endpoints that served them, under the same keys and in the sessions that they have.
// What is left of the guest is its table, its executors, its regions that are kept and
// its endpoints, without messages and events. The next program of the same user that
// takes a region back is successor to all of it.

// KeptRegion is a region that outlives its program.
type KeptRegion struct {
	Name      string   `json:"name"` // one user has each name once
	UID       uint32   `json:"uid"`  // of the program that had it kept
	PID       int      `json:"pid"`  // of the program that has it; 0 if none has, or it cannot be seen
	InUse     bool     `json:"in_use"`
	Bytes     int      `json:"bytes"`     // of the memfd that it is part of
	Endpoints []uint16 `json:"endpoints"` // by which peers reach it
	Rule      string   `json:"rule"`      // that bounds what is kept
}

// KeptID tells kept regions apart.
type KeptID struct {
	Uid  uint32
	Name string
}

// kept is a region that outlives its program. Under Host.mu.
type kept struct {
	Holder *Guest // that has it, or had it
	region *guestRegion
	rule   string
	taken  bool // the holder is running, and uses the region
}

// keep has a region outlive the guest.
func (g *Guest) keep(_ context.Context, key uint64) (any, error) {
	g.h.Mu.Lock()
	defer g.h.Mu.Unlock()
	g.Mu.Lock()
	defer g.Mu.Unlock()
	r := g.regions[key]
	if r == nil {
		return nil, errno.Closed
	}
	id := KeptID{g.info.UID, r.region.Name()}
	if other := g.h.Tenancy.Kept[id]; other != nil && other.region == r {
		return nil, nil
	}
	if r.region.Observer() != nil {
		return nil, errno.Refuse(errno.NotImplemented,
			"operations on region %q are counted, and nobody would read that when the program has "+
				"ended: want a region without counters", id.Name)
	}
	if err := g.mayKeep(id, len(r.memory.Bytes())); err != nil {
		return nil, err
	}
	g.h.Tenancy.keep(id, &kept{Holder: g, region: r, rule: g.limits.Rule, taken: true})
	return nil, nil
}

// mayKeep reports why the guest cannot have so many bytes more kept. h.mu is held.
func (g *Guest) mayKeep(id KeptID, bytes int) error {
	if id.Name == "" {
		return errors.New(
			"a region without a name cannot be kept, since no program could find it again: register it with a name")
	}
	if g.h.Tenancy.Kept[id] != nil {
		return errno.Refuse(mr.ErrNameInUse,
			"a region %q is kept for user %d already; take it back, have it withdrawn, or choose another name",
			id.Name, id.Uid)
	}
	count, sum := 0, 0
	for _, k := range g.h.Tenancy.Kept {
		if k.rule == g.limits.Rule {
			count, sum = count+1, sum+len(k.region.memory.Bytes())
		}
	}
	switch {
	case sum+bytes > g.limits.Kept:
		return fmt.Errorf("memory of %d bytes beside %d bytes that are kept: %s allows %d for all its programs; have "+
			"regions withdrawn, or its limit kept raised: %w", bytes, sum, g.limits.Rule, g.limits.Kept, errno.Denied)
	case count >= g.limits.Regions:
		return fmt.Errorf("more than %d regions that are kept: %s allows no more for all its programs; have some "+
			"withdrawn, or its limit regions raised: %w", count, g.limits.Rule, errno.Denied)
	}
	return nil
}

// unkeep forgets that a region is kept, which is about to be closed. h.mu is held.
func (g *Guest) unkeep(r *guestRegion) {
	if id := (KeptID{g.info.UID, r.region.Name()}); g.h.Tenancy.Kept[id] != nil && g.h.Tenancy.Kept[id].region == r {
		delete(g.h.Tenancy.Kept, id)
	}
}

// keeps reports whether regions of the guest are kept. h.mu is held.
func (g *Guest) keeps() bool {
	for _, k := range g.h.Tenancy.Kept {
		if k.Holder == g {
			return true
		}
	}
	return false
}

// KeepRegions leaves of a guest that ended what is kept, and closes everything else
// that peers reach.
func (g *Guest) KeepRegions() {
	g.h.Mu.Lock()
	keeps := g.keeps()
	g.h.Mu.Unlock()
	for _, ep := range maps.Clone(g.endpoints) {
		g.endOrKeep(ep, keeps)
	}
	g.h.Mu.Lock()
	over := g.parted()
	g.h.Mu.Unlock()
	for _, r := range over {
		_ = g.closeRegion(r)
	}
}

// parted takes the regions that are not kept from the guest. h.mu is held.
func (g *Guest) parted() (over []*guestRegion) {
	held := map[*guestRegion]bool{}
	for _, k := range g.h.Tenancy.Kept {
		held[k.region] = true
	}
	g.Mu.Lock()
	defer g.Mu.Unlock()
	for key, r := range g.regions {
		if !held[r] {
			g.unlist(key, r)
			over = append(over, r)
		}
	}
	return over
}

// leave ends an endpoint of a program that closes its domain.
func (g *Guest) leave(_ context.Context, origin uint64) (any, error) {
	g.h.Mu.Lock()
	keeps := g.keeps()
	g.h.Mu.Unlock()
	g.Mu.Lock()
	ep := g.endpointOf(origin)
	g.Mu.Unlock()
	if ep != nil {
		g.endOrKeep(ep, keeps)
	}
	return nil, nil
}

// endOrKeep ends an endpoint, or, if there are regions that are kept and it serves, makes
// it one that serves memory alone. Sessions in which the guest had messages or events
// end: no process would take them.
func (g *Guest) endOrKeep(ep *GuestEndpoint, keeps bool) {
	if !keeps || !ep.on.Load() || ep.bound {
		g.remove(ep)
		return
	}
	g.making.Lock()
	defer g.making.Unlock()
	g.Mu.Lock()
	ep.left = true
	g.Mu.Unlock()
	ep.messages.Store(false)
	ep.events.Store(false)
	ep.attends.Store(false)
	ep.calls.Store(false)
	ep.observer.Store(nil)
	if ep.spoken {
		g.h.n.EndTargets(ep.number)
	}
	g.silence(ep)
}

// releaseRest releases the rest of a guest that ended and whose regions are no longer
// kept.
func (g *Guest) releaseRest() {
	for _, ep := range maps.Clone(g.endpoints) {
		g.remove(ep)
	}
	for _, m := range g.memory {
		if m != nil {
			m.Close()
		}
	}
}

// OfferKept is called when the guest has ended: what it has kept can be taken back or
// withdrawn. If that is nothing, nothing is left of it: what was kept when KeepRegions
// came may have been withdrawn since.
func (g *Guest) OfferKept() {
	if g.markEnded() {
		g.releaseRest()
	}
}

// markEnded records that the guest has ended, and reports whether nothing of it is kept.
func (g *Guest) markEnded() (last bool) {
	g.h.Mu.Lock()
	defer g.h.Mu.Unlock()
	for _, k := range g.h.Tenancy.Kept {
		if k.Holder == g {
			k.taken = false
		}
	}
	g.Ended = true
	close(g.Gone)
	return !g.keeps()
}

// Kept returns the regions of guests that outlive their programs, by user and name.
func (h *Host) Kept() []KeptRegion {
	h.Mu.Lock()
	defer h.Mu.Unlock()
	all := []KeptRegion{}
	for id, k := range h.Tenancy.Kept {
		x := KeptRegion{Name: id.Name, UID: id.Uid, InUse: k.taken, Bytes: len(k.region.memory.Bytes()), Rule: k.rule,
			Endpoints: []uint16{}}
		if k.taken {
			x.PID = k.Holder.info.PID
		}
		h.n.Numbers.Each(func(n uint16, t node.Tenant) {
			if ep, is := t.(*GuestEndpoint); is && ep.Guest == k.Holder && ep.Serves() {
				x.Endpoints = append(x.Endpoints, n)
			}
		})
		slices.Sort(x.Endpoints)
		all = append(all, x)
	}
	slices.SortFunc(all,
		func(a, b KeptRegion) int { return cmp.Or(cmp.Compare(a.UID, b.UID), cmp.Compare(a.Name, b.Name)) })
	return all
}

// WithdrawKept withdraws a region that is kept for a user. It returns when no operation
// of peers is in flight on it. The error wraps ErrNotKept if there is no such region, or
// ErrBusy if a program uses it, or another process is taking over.
func (h *Host) WithdrawKept(uid uint32, name string) error {
	h.withdrawing.Lock()
	defer h.withdrawing.Unlock()
	if err := h.leavesKept(uid, name); err != nil {
		return err
	}
	return h.withdrawKept(uid, name)
}

// withdrawKept does the work of WithdrawKept. d.withdrawing is held.
func (h *Host) withdrawKept(uid uint32, name string) error {
	h.Mu.Lock()
	k := h.Tenancy.Kept[KeptID{uid, name}]
	if k == nil {
		h.Mu.Unlock()
		return fmt.Errorf("xdpfab: region %q of user %d: %w", name, uid, errno.NotKept)
	}
	g := k.Holder
	if k.taken {
		h.Mu.Unlock()
		return errno.Refuse(errno.Busy,
			"xdpfab: region %q of user %d: its program, process %d, uses it: close it there, or end "+
				"the program first", name, uid, g.info.PID)
	}
	delete(h.Tenancy.Kept, KeptID{uid, name})
	g.Mu.Lock()
	g.unlist(k.region.region.Key(), k.region)
	g.Mu.Unlock()
	last := g.Ended && !g.keeps()
	h.Mu.Unlock()
	err := g.closeRegion(k.region)
	if last {
		g.releaseRest()
	}
	return err
}

// withdrawAllKept withdraws everything that is kept, after the last guest has ended.
func (h *Host) withdrawAllKept() {
	h.withdrawing.Lock() // waits for other withdrawals
	defer h.withdrawing.Unlock()
	for _, k := range h.Kept() {
		_ = h.withdrawKept(k.UID, k.Name)
	}
}

// keep records a region that is kept. Host.mu is held.
func (l *tenancy) keep(id KeptID, k *kept) {
	if l.Kept == nil {
		l.Kept = map[KeptID]*kept{}
	}
	l.Kept[id] = k
}
