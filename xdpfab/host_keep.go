// SPDX-License-Identifier: Apache-2.0

package xdpfab

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
// takes a region back is heir to all of it.

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

// keptID tells kept regions apart.
type keptID struct {
	uid  uint32
	name string
}

// kept is a region that outlives its program. Under Host.mu.
type kept struct {
	holder *guest // that has it, or had it
	region *guestRegion
	rule   string
	taken  bool // the holder is running, and uses the region
}

// keep has a region outlive the guest.
func (g *guest) keep(_ context.Context, key uint64) (any, error) {
	g.h.mu.Lock()
	defer g.h.mu.Unlock()
	g.mu.Lock()
	defer g.mu.Unlock()
	r := g.regions[key]
	if r == nil {
		return nil, errno.Closed
	}
	id := keptID{g.info.UID, r.region.Name()}
	if other := g.h.lodging.kept[id]; other != nil && other.region == r {
		return nil, nil
	}
	if r.region.Observer() != nil {
		return nil, fmt.Errorf("operations on region %q are counted, and nobody would read that when the program has ended: want a region without counters: %w", id.name, errno.NotImplemented)
	}
	if err := g.mayKeep(id, len(r.memory.Bytes())); err != nil {
		return nil, err
	}
	g.h.lodging.keep(id, &kept{holder: g, region: r, rule: g.limits.Rule, taken: true})
	return nil, nil
}

// mayKeep reports why the guest cannot have so many bytes more kept. h.mu is held.
func (g *guest) mayKeep(id keptID, bytes int) error {
	if id.name == "" {
		return errors.New("a region without a name cannot be kept, since no program could find it again: register it with a name")
	}
	if g.h.lodging.kept[id] != nil {
		return fmt.Errorf("a region %q is kept for user %d already; take it back, have it withdrawn, or choose another name: %w", id.name, id.uid, mr.ErrNameInUse)
	}
	count, sum := 0, 0
	for _, k := range g.h.lodging.kept {
		if k.rule == g.limits.Rule {
			count, sum = count+1, sum+len(k.region.memory.Bytes())
		}
	}
	switch {
	case sum+bytes > g.limits.Kept:
		return fmt.Errorf("memory of %d bytes beside %d bytes that are kept: %s allows %d for all its programs; have regions withdrawn, or its limit kept raised: %w", bytes, sum, g.limits.Rule, g.limits.Kept, errno.Denied)
	case count >= g.limits.Regions:
		return fmt.Errorf("more than %d regions that are kept: %s allows no more for all its programs; have some withdrawn, or its limit regions raised: %w", count, g.limits.Rule, errno.Denied)
	}
	return nil
}

// unkeep forgets that a region is kept, which is about to be closed. h.mu is held.
func (g *guest) unkeep(r *guestRegion) {
	if id := (keptID{g.info.UID, r.region.Name()}); g.h.lodging.kept[id] != nil && g.h.lodging.kept[id].region == r {
		delete(g.h.lodging.kept, id)
	}
}

// keeps reports whether regions of the guest are kept. h.mu is held.
func (g *guest) keeps() bool {
	for _, k := range g.h.lodging.kept {
		if k.holder == g {
			return true
		}
	}
	return false
}

// endure leaves of a guest that has ended what is kept, and closes everything else that
// peers reach.
func (g *guest) endure() {
	g.h.mu.Lock()
	keeps := g.keeps()
	g.h.mu.Unlock()
	for _, ep := range maps.Clone(g.endpoints) {
		g.linger(ep, keeps)
	}
	g.h.mu.Lock()
	over := g.parted()
	g.h.mu.Unlock()
	for _, r := range over {
		_ = r.close()
	}
}

// parted takes the regions that are not kept from the guest. h.mu is held.
func (g *guest) parted() (over []*guestRegion) {
	held := map[*guestRegion]bool{}
	for _, k := range g.h.lodging.kept {
		held[k.region] = true
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for key, r := range g.regions {
		if !held[r] {
			delete(g.regions, key)
			g.spanned -= len(r.memory.Bytes())
			over = append(over, r)
		}
	}
	return over
}

// leave ends an endpoint of a program that closes its domain.
func (g *guest) leave(_ context.Context, origin uint64) (any, error) {
	g.h.mu.Lock()
	keeps := g.keeps()
	g.h.mu.Unlock()
	g.mu.Lock()
	ep := g.endpointOf(origin)
	g.mu.Unlock()
	if ep != nil {
		g.linger(ep, keeps)
	}
	return nil, nil
}

// linger ends an endpoint, or, if there are regions that are kept and it serves, makes it
// one that serves memory alone. Sessions in which the guest had messages or events end:
// nobody would take them.
func (g *guest) linger(ep *guestEndpoint, keeps bool) {
	if !keeps || !ep.on.Load() || ep.bound {
		g.remove(ep)
		return
	}
	g.making.Lock()
	defer g.making.Unlock()
	g.mu.Lock()
	ep.left = true
	g.mu.Unlock()
	ep.messages.Store(false)
	ep.events.Store(false)
	ep.observer.Store(nil)
	if ep.spoken {
		g.h.n.EndTargets(ep.number)
	}
	g.silence(ep)
}

// dissolve gives back what was left of a guest that has ended. Nothing of it is kept any
// more.
func (g *guest) dissolve() {
	for _, ep := range maps.Clone(g.endpoints) {
		g.remove(ep)
	}
	for _, m := range g.memory {
		if m != nil {
			m.Close()
		}
	}
}

// over says that the guest has ended: what it has kept can be taken back or withdrawn. If
// that is nothing, nothing is left of it: what was kept when endure came may have been
// withdrawn since.
func (g *guest) over() {
	if g.depart() {
		g.dissolve()
	}
}

// depart notes that the guest has ended, and reports whether nothing of it is kept.
func (g *guest) depart() (last bool) {
	g.h.mu.Lock()
	defer g.h.mu.Unlock()
	for _, k := range g.h.lodging.kept {
		if k.holder == g {
			k.taken = false
		}
	}
	g.ended = true
	close(g.gone)
	return !g.keeps()
}

// Kept returns the regions of guests that outlive their programs, by user and name.
func (h *Host) Kept() []KeptRegion {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := []KeptRegion{}
	for id, k := range h.lodging.kept {
		x := KeptRegion{Name: id.name, UID: id.uid, InUse: k.taken, Bytes: len(k.region.memory.Bytes()), Rule: k.rule, Endpoints: []uint16{}}
		if k.taken {
			x.PID = k.holder.info.PID
		}
		h.n.Numbers.Each(func(n uint16, t node.Tenant) {
			if ep, is := t.(*guestEndpoint); is && ep.guest == k.holder && ep.Serves() {
				x.Endpoints = append(x.Endpoints, n)
			}
		})
		slices.Sort(x.Endpoints)
		all = append(all, x)
	}
	slices.SortFunc(all, func(a, b KeptRegion) int { return cmp.Or(cmp.Compare(a.UID, b.UID), cmp.Compare(a.Name, b.Name)) })
	return all
}

// WithdrawKept withdraws a region that is kept for a user. It returns when no operation
// of peers is in flight on it. The error wraps ErrNotKept if there is no such region, or
// ErrBusy if a program uses it, or another process is taking over.
func (h *Host) WithdrawKept(uid uint32, name string) error {
	h.withdrawing.Lock()
	defer h.withdrawing.Unlock()
	h.mu.Lock()
	leaving := h.lodging.leaving
	h.mu.Unlock()
	if leaving {
		return fmt.Errorf("xdpfab: region %q of user %d: another process takes over just now: ask that one: %w", name, uid, errno.Busy)
	}
	return h.withdrawKept(uid, name)
}

// withdrawKept does the work of WithdrawKept. d.withdrawing is held.
func (h *Host) withdrawKept(uid uint32, name string) error {
	h.mu.Lock()
	k := h.lodging.kept[keptID{uid, name}]
	if k == nil {
		h.mu.Unlock()
		return fmt.Errorf("xdpfab: region %q of user %d: %w", name, uid, errno.NotKept)
	}
	g := k.holder
	if k.taken {
		h.mu.Unlock()
		return fmt.Errorf("xdpfab: region %q of user %d: its program, process %d, uses it: close it there, or end the program first: %w", name, uid, g.info.PID, errno.Busy)
	}
	delete(h.lodging.kept, keptID{uid, name})
	g.mu.Lock()
	delete(g.regions, k.region.region.Key())
	g.spanned -= len(k.region.memory.Bytes())
	g.mu.Unlock()
	last := g.ended && !g.keeps()
	h.mu.Unlock()
	err := k.region.close()
	if last {
		g.dissolve()
	}
	return err
}

// forsakeKept withdraws everything that is kept, when no guest runs any more.
func (h *Host) forsakeKept() {
	h.withdrawing.Lock() // and so nobody else is at it any more
	defer h.withdrawing.Unlock()
	for _, k := range h.Kept() {
		_ = h.withdrawKept(k.UID, k.Name)
	}
}
