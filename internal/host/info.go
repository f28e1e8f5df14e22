// SPDX-License-Identifier: Apache-2.0

package host

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"

	"github.com/xdpfab/xdpfab/internal/share"
	"github.com/xdpfab/xdpfab/internal/wire"
	"github.com/xdpfab/xdpfab/mr"
)

// GuestInfo describes a program that a domain hosts.
type GuestInfo struct {
	PID       int    `json:"pid"` // 0 if this process cannot see it
	UID       uint32 `json:"uid"`
	GID       uint32 `json:"gid"`
	Endpoints int    `json:"endpoints"`
	Serving   int    `json:"serving"` // endpoints that accept sessions; a borrower's are not known here
	Peers     int    `json:"peers"`
	Regions   int    `json:"regions"`
	Memory    int    `json:"memory"`          // bytes that the regions span
	Taken     uint64 `json:"taken"`           // entries of its submission ring that were taken so far
	Refused   uint64 `json:"refused"`         // of these, those that were no operation
	Completed uint64 `json:"completed"`       // completions that it has been given
	Queue     *int   `json:"queue,omitempty"` // that it borrows; nil for none
}

// GuestWork is what was done for a program, and in its memory. Another host that takes
// over counts anew.
type GuestWork struct {
	Timed   uint64  `json:"timed"`   // operations of its ring whose time was measured
	Took    uint64  `json:"took_ns"` // by these, from entry to completion
	Applied Applied `json:"applied"` // to its regions, also to those that it has withdrawn
}

// AttachedGuest is a program that is attached at present.
type AttachedGuest struct {
	GuestInfo
	GuestWork
}

// Applied is what pollers have applied to a region for peers: see mr.Tally.
type Applied struct {
	Fetching         uint64 `json:"fetching"`
	NonFetching      uint64 `json:"non_fetching"`
	FetchingBytes    uint64 `json:"fetching_bytes"`
	NonFetchingBytes uint64 `json:"non_fetching_bytes"`
}

// Add adds the counts of x.
func (a *Applied) Add(x Applied) {
	a.Fetching, a.NonFetching = a.Fetching+x.Fetching, a.NonFetching+x.NonFetching
	a.FetchingBytes += x.FetchingBytes
	a.NonFetchingBytes += x.NonFetchingBytes
}

// Guests returns the programs that the domain hosts at present, by process.
func (h *Host) Guests() []AttachedGuest {
	h.Mu.Lock()
	guests := slices.Collect(maps.Keys(h.Tenancy.guests))
	h.Mu.Unlock()
	all, rings := make([]AttachedGuest, len(guests)), make([]*share.HostRing, len(guests))
	for i, g := range guests {
		all[i], rings[i] = g.describe()
	}
	for _, st := range h.n.Steppers { // one call of each engine, however many guests there are
		st.Call(func() {
			for i, g := range guests {
				if f := rings[i]; g.St == st && f != nil {
					c := &f.Counts
					all[i].Taken, all[i].Refused, all[i].Completed = c.Taken, c.Refused, c.Completed
					all[i].Timed, all[i].Took = f.Times.Timed, f.Times.Took
				}
			}
		})
	}
	slices.SortFunc(all,
		func(a, b AttachedGuest) int { return cmp.Or(cmp.Compare(a.PID, b.PID), cmp.Compare(a.Taken, b.Taken)) })
	return all
}

// EachGuestRegion calls f for each region that guests serve, by process and name. f must
// not keep the region.
func (h *Host) EachGuestRegion(f func(pid int, r *mr.Region)) {
	h.Mu.Lock()
	guests := slices.Collect(maps.Keys(h.Tenancy.guests))
	h.Mu.Unlock()
	slices.SortFunc(guests, func(a, b *Guest) int { return cmp.Compare(a.info.PID, b.info.PID) })
	for _, g := range guests {
		g.Mu.Lock()
		regions := make([]*mr.Region, 0, len(g.regions))
		for _, r := range g.regions {
			regions = append(regions, r.region)
		}
		g.Mu.Unlock()
		slices.SortFunc(regions, func(a, b *mr.Region) int { return cmp.Compare(a.Name(), b.Name()) })
		for _, r := range regions {
			f(g.info.PID, r)
		}
	}
}

// meet records which program the guest is.
func (g *Guest) meet() error {
	c, err := g.talk.Peer()
	if err != nil {
		return fmt.Errorf("xdpfab: program at the other end: %w", err)
	}
	g.info = GuestInfo{PID: int(c.Pid), UID: c.Uid, GID: c.Gid}
	return nil
}

// unlist removes a region from those of the guest, which closeRegion has to close then.
// What was applied to it stays in the guest's sum. g.Mu is held.
func (g *Guest) unlist(key uint64, r *guestRegion) {
	delete(g.regions, key)
	g.spanned -= len(r.memory.Bytes())
	g.closing = append(g.closing, r)
}

// closeRegion closes a region that was unlisted. What pollers still apply to it counts.
func (g *Guest) closeRegion(r *guestRegion) error {
	err := r.close()
	g.Mu.Lock()
	defer g.Mu.Unlock()
	g.closing = slices.DeleteFunc(g.closing, func(c *guestRegion) bool { return c == r })
	g.withdrawn.Add(Applied(r.region.Tally()))
	return err
}

// describe returns what the guest has, and where its operations are counted, if it has
// attached.
func (g *Guest) describe() (AttachedGuest, *share.HostRing) {
	i := AttachedGuest{GuestInfo: g.info}
	i.Queue = g.queue.Load()
	g.Mu.Lock()
	defer g.Mu.Unlock()
	i.Endpoints, i.Regions, i.Memory, i.Peers = len(g.endpoints), len(g.regions), g.spanned, int(g.open.Load())
	i.Applied = g.withdrawn
	for _, r := range g.regions {
		i.Applied.Add(Applied(r.region.Tally()))
	}
	for _, r := range g.closing {
		i.Applied.Add(Applied(r.region.Tally()))
	}
	for _, ep := range g.endpoints {
		if ep.Serves() {
			i.Serving++
		}
	}
	return i, g.Ring
}

// log logs what a guest did, or was refused, at level debug.
func (g *Guest) log(text string, attrs ...slog.Attr) {
	who := []slog.Attr{slog.Int("pid", g.info.PID), slog.Int("uid", int(g.info.UID))}
	g.h.n.Log(slog.LevelDebug, text, append(who, attrs...)...)
}

// ownFault says why no packet of this node reaches an address.
func (g *Guest) ownFault(_ context.Context, a share.Addr) (string, error) {
	return g.h.n.Dev.OwnFault(wire.Addr(a)), nil
}
