// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"slices"

	"github.com/xdpfab/xdpfab/internal/node"
	"github.com/xdpfab/xdpfab/internal/share"
	"github.com/xdpfab/xdpfab/mr"
)

// Regions that are kept move to another process with all that belongs to them: memory,
// names, keys, incarnations, owners, and the endpoints that serve them. The rule that
// bounds them is named as before, whatever the rules of the other process say.

// keptState is what a program left that ended.
type keptState struct {
	Info      GuestInfo
	Endpoints []leftState
	Regions   []regionState
}

// leftState is an endpoint that serves kept regions of a former program.
type leftState struct {
	Number uint16
	Key    []byte `json:",omitempty"`
}

// keptMark records that a region is kept.
type keptMark struct {
	Rule  string
	Taken bool // its holder is running, and uses it
}

// addKept adds what programs have left that ended. What cannot be added is lost, but
// nothing else with it.
func (h *Handover) addKept(host *Host) {
	host.Mu.Lock()
	defer host.Mu.Unlock()
	holders := map[*Guest]struct{}{}
	for _, k := range host.Tenancy.Kept {
		if k.Holder.Ended {
			holders[k.Holder] = struct{}{}
		}
	}
	for g := range holders {
		s := keptState{Info: g.info, Endpoints: g.serving()}
		var err error
		if s.Regions, err = h.regionsOf(g); err != nil {
			host.n.Log(slog.LevelError, "kept region is lost", slog.Int("pid", g.info.PID),
				slog.Any("cause", err))
		}
		h.State.Kept = append(h.State.Kept, s)
	}
}

// serving returns the endpoints for kept regions alone that the guest has of a former
// program, or has left itself.
func (g *Guest) serving() (all []leftState) {
	g.Mu.Lock()
	defer g.Mu.Unlock()
	for n, ep := range g.endpoints {
		if ep.left {
			all = append(all, leftState{n, ep.as.Key})
		}
	}
	return all
}

// regionsOf returns the regions of a guest of which there can be copies. h.mu is held.
func (h *Handover) regionsOf(g *Guest) (all []regionState, err error) {
	g.Mu.Lock()
	defer g.Mu.Unlock()
	for _, r := range g.regions {
		at, bad := h.dup(r.memory.FD())
		if bad != nil {
			err = errors.Join(err, fmt.Errorf("region %v: %w", r.region, bad))
			continue
		}
		s := regionState{As: r.told, Memory: at}
		if k := g.h.Tenancy.Kept[KeptID{g.info.UID, r.region.Name()}]; k != nil && k.region == r {
			s.Kept = &keptMark{k.rule, k.taken}
		}
		all = append(all, s)
	}
	return all, err
}

// restoreKept gives a new domain what a program left that had ended before. Whatever
// cannot be restored is lost, and the rest continues without it.
func (h *Handover) restoreKept(host *Host, s *keptState) {
	// the rule was obeyed
	g := NewGuest(host, nil, GuestLimits{Regions: math.MaxInt, Memory: math.MaxInt, Budgets: h.budgetsOf(s)})
	g.info, g.Ended, g.pays.has = s.Info, true, true
	close(g.Gone)
	g.furnish()
	var errs []error
	for _, ep := range s.Endpoints {
		errs = append(errs, g.restoreLeft([]leftState{ep}))
	}
	for _, r := range s.Regions {
		if err := h.restoreRegions(g, []regionState{r}); err != nil {
			errs = append(errs, fmt.Errorf("region %q: %w", r.As.Name, err))
		}
	}
	if err := errors.Join(errs...); err != nil {
		host.n.Log(slog.LevelError, "not all that a program has left goes on", slog.Int("pid", s.Info.PID),
			slog.Any("cause", err))
	}
	host.Mu.Lock()
	keeps := g.keeps()
	host.Mu.Unlock()
	if !keeps {
		g.releaseRestored()
	}
}

// Charge says for which budgets the regions count that programs have left, by the name of
// the rule that has kept them: they go on whatever the budgets leave. It has no effect
// after Open.
func (h *Handover) Charge(budgets func(rule string) []*Budget) { h.budgets = budgets }

// budgetsOf returns the budgets for what a program left, which one rule has kept.
func (h *Handover) budgetsOf(s *keptState) []*Budget {
	for _, r := range s.Regions {
		if r.Kept != nil && h.budgets != nil {
			return h.budgets(r.Kept.Rule)
		}
	}
	return nil
}

// releaseRestored gives back what a guest has that was restored in part, and has no
// rings.
func (g *Guest) releaseRestored() {
	g.h.Mu.Lock()
	maps.DeleteFunc(g.h.Tenancy.Kept, func(_ KeptID, k *kept) bool { return k.Holder == g })
	regions := g.parted()
	g.h.Mu.Unlock()
	for _, r := range regions {
		_ = g.closeRegion(r)
	}
	g.releaseRest()
}

// restoreLeft has the guest serve kept regions by the endpoints that did so before.
func (g *Guest) restoreLeft(all []leftState) error {
	g.h.Mu.Lock()
	defer g.h.Mu.Unlock()
	g.Mu.Lock()
	defer g.Mu.Unlock()
	for _, s := range all {
		key, err := node.SessionKey(g.table, s.Key)
		if err != nil {
			return err
		}
		if _, err := g.h.n.Numbers.Take(int(s.Number), false, nil); err != nil {
			return err
		}
		ep := &GuestEndpoint{Guest: g, number: s.Number, as: share.Endpoint{Key: s.Key}, key: key, left: true}
		ep.on.Store(true)
		g.endpoints[s.Number] = ep
		g.h.n.Numbers.Put(s.Number, ep)
		g.settled = true
	}
	return nil
}

// restoreRegions registers the regions that a guest had, and keeps those that were kept.
func (h *Handover) restoreRegions(g *Guest, all []regionState) error {
	for _, r := range all {
		args, err := json.Marshal(r.As)
		if err != nil || r.Memory < 0 || r.Memory >= len(h.fds) {
			return errors.Join(errors.New("the memory of a region is missing"), err)
		}
		if _, err := g.register(context.Background(), args, h.fds[r.Memory:r.Memory+1]); err != nil {
			return err
		}
		if r.Kept == nil {
			continue
		}
		if err := g.restoreMark(r.As.Key, r.Kept); err != nil {
			return err
		}
	}
	return nil
}

// restoreMark keeps a region again.
func (g *Guest) restoreMark(key uint64, mark *keptMark) error {
	g.h.Mu.Lock()
	defer g.h.Mu.Unlock()
	g.Mu.Lock()
	defer g.Mu.Unlock()
	r := g.regions[key]
	id := KeptID{g.info.UID, r.region.Name()}
	if g.h.Tenancy.Kept[id] != nil {
		return fmt.Errorf("region %q of user %d is kept twice: %w", id.Name, id.Uid, mr.ErrNameInUse)
	}
	g.h.Tenancy.keep(id, &kept{Holder: g, region: r, rule: mark.Rule, taken: mark.Taken})
	return nil
}

// turnedOut waits until guests have ended that cannot move to another process, so that
// what they have kept is left, and no queue is theirs.
func turnedOut(guests []*Guest, stay []*leaver) {
	for _, g := range guests {
		if g.arrived() && !slices.ContainsFunc(stay, func(x *leaver) bool { return x.g == g }) {
			<-g.Gone
		}
	}
}

// restoreCredits gives endpoints the credit that they had at another host.
func (g *Guest) restoreCredits(s *share.ArrivalsState) {
	g.Mu.Lock()
	defer g.Mu.Unlock()
	for number, ep := range g.endpoints {
		g.in.Grant(&ep.credit, s.Credits[number])
	}
}
