// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package residence is what a node has of resident memory: regions and sessions that the
// XDP program of its interface executes, and the folder from which they outlive the
// process.
package residence

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"

	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/memory"
	"github.com/xdpfab/xdpfab/internal/node"
	"github.com/xdpfab/xdpfab/internal/resident"
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
	"github.com/xdpfab/xdpfab/mr"
)

// Resident regions lie in memory that the XDP program of the interface can reach. It
// executes the requests for them and answers, and no poller wakes up: docs/resident.md.

// Residence is what a domain has of resident memory. Its lock may be taken while others
// are held.
type Residence struct {
	n        *node.Node
	table    *mr.Table // the domain's
	Mu       sync.Mutex
	Executor *resident.Executor // nil until there is resident memory
	memories map[*mr.Memory]*resident.Memory
	local    []*memory.Memory                    // of the servers
	servers  atomic.Pointer[[]*resident.Server]  // by queue; each belongs to the engine's thread
	Keys     atomic.Pointer[map[uint64]struct{}] // of the regions; stored under mu, and never changed
	Store    *Store                              // nil: all ends with the process
	Handing  atomic.Bool                         // a handover has begun: nothing becomes resident
	// the domain ends, and another process takes over its state; stored under mu
	Leaving atomic.Bool
	shown   bool // see Show; under mu
	Counted programTallies
}

// New gives a node what is resident, which comes from a store, or nil.
func New(n *node.Node, at *Store) *Residence {
	h := &Residence{n: n, table: n.Table, Store: at}
	n.Residents = h
	return h
}

// Of returns what a node has of resident memory.
func Of(n *node.Node) *Residence { return n.Residents.(*Residence) }

// Look counts what the program has applied for peers up to now.
func (h *Residence) Look() { h.Counted.look() }

// ResidentMemory is NewResidentMemory with d.node.mu held.
func (h *Residence) ResidentMemory(name string, size int) (*mr.Memory, error) {
	if err := h.n.Open(); err != nil {
		return nil, err
	}
	if err := h.reside(); err != nil {
		return nil, err
	}
	m, found, err := h.Executor.NewMemory(name, size)
	if err != nil {
		return nil, err
	}
	if found {
		h.n.Log(slog.LevelInfo, "resident memory goes on as it was left", slog.String("memory", name),
			slog.Int("size", size))
	}
	var as *mr.Memory
	as, err = mr.Resident(m.Bytes(), func() error {
		h.drop(as, m)
		return m.Close()
	})
	if err != nil {
		h.drop(as, m)
		return nil, errors.Join(err, m.Close())
	}
	h.Mu.Lock()
	defer h.Mu.Unlock()
	h.memories[as] = m
	return as, nil
}

// WasLeft reports whether a former process left a memory that ResidentMemory returned.
func (h *Residence) WasLeft(m *mr.Memory) bool {
	h.Mu.Lock()
	defer h.Mu.Unlock()
	return h.memories[m] != nil && h.memories[m].Found()
}

// reside has the XDP program execute, from the first call on. n.mu is held.
func (h *Residence) reside() error {
	h.Mu.Lock()
	defer h.Mu.Unlock()
	if h.Leaving.Load() {
		return fmt.Errorf("domain on %s, which another process is taking over: %w", h.n.Label(), errno.Busy)
	}
	if h.Executor != nil {
		return nil
	}
	dev, own := h.n.Dev.(node.NetInterface)
	switch {
	case h.Handing.Load():
		return fmt.Errorf("domain on %s, which another process is taking over: %w", h.n.Label(), errno.Busy)
	case h.n.Dev.Medium() == wire.OnSocket:
		return errno.Refuse(errno.NotImplemented,
			"domain on %s, which has UDP sockets and no XDP program: want AF_XDP (--transport xdp, "+
				"DomainAttr.Transport)", h.n.Label())
	case !own:
		return errno.Refuse(errno.NotImplemented,
			"domain on %s, which has no XDP program of its own: want a domain that has opened an interface itself",
			h.n.Label())
	}
	var err error
	x := h.Store.executor()
	if x != nil {
		h.tellPlaces(x.Capacity())
	} else {
		sockets, counters := dev.Program().Shared()
		x, err = resident.Load(resident.Config{Sessions: h.n.Config.ResidentSessions, Regions: resident.MaxRegions,
			Sockets: sockets, Counters: counters, Frags: dev.Program().Frags()})
	}
	if err != nil {
		return err
	}
	x.OnLoss(func() { h.tellLoss(dev.Name(), h.n.Dev.Info().Driver) })
	x.OnStuck(func(why error) {
		err := errors.Join(why, dev.Program().SetExecutor(nil))
		go h.n.Log(slog.LevelError, "XDP program executes nothing more, as it does not obey: the poller does, "+
			"until the domain is opened anew",
			slog.String("interface", dev.Name()), slog.Any("cause", err))
	})
	h.Executor, h.memories = x, map[*mr.Memory]*resident.Memory{}
	h.Keys.Store(&map[uint64]struct{}{})
	servers, err := h.serve()
	if err == nil {
		err = h.Store.keep(dev, x)
	}
	if err == nil {
		if err = dev.Program().SetExecutor(x.Program()); err != nil {
			err = errors.Join(err, h.Store.vacate(dev))
		}
	}
	if err != nil {
		return errors.Join(err, h.close())
	}
	h.servers.Store(&servers)
	return nil
}

// tellPlaces logs that the domain has another number of places than it wants: the state
// that a former process left decides that number.
func (h *Residence) tellPlaces(has int) {
	if want := h.n.Config.ResidentSessions; want != 0 && want != has {
		h.n.Log(slog.LevelWarn, "number of resident sessions stays that of the former process: another one has no "+
			"effect",
			slog.Int("has", has), slog.Int("wanted", want), slog.String("remedy",
				"close the domain without ResidentLeave (xdpfabd: end it, without --leave), and open it anew"))
	}
}

// tellLoss says in the log that what the XDP program sends does not arrive.
func (h *Residence) tellLoss(ifname, driver string) {
	remedy := "look for frames that the driver drops: ethtool -S " + ifname + " | grep xdp_tx"
	if driver == "veth" {
		remedy = "give the other end of the veth an XDP program, if only one that passes everything, or use ordinary " +
			"regions"
	}
	h.n.Log(slog.LevelWarn, "answers of the XDP program are lost: the poller sends them in its place, which takes "+
		"longer, and without a process there is no answer",
		slog.String("interface", ifname), slog.String("driver", driver), slog.String("remedy", remedy))
}

// Longest returns the length of the longest frame of a session that could become
// resident, in bytes, or 0 for any other: the program takes shorter ones than an
// interface may.
func (h *Residence) Longest(p *session.TargetParams) int {
	if h.servers.Load() == nil || !resident.Suits(p) {
		return 0
	}
	if t := h.n.Numbers.Serving(p.Endpoint); t != nil && !t.MayReside() {
		return 0
	}
	return resident.MaxFrame
}

// Pads reports whether requests should be as long as their answers, into which the XDP
// program turns them: the packets of veth, and all in generic mode, have no room behind.
func (h *Residence) Pads() bool {
	i := h.n.Dev.Info()
	return h.servers.Load() != nil && (i.Driver == "veth" || i.XDP == "generic")
}

// Show has the engines see all frames of resident sessions, and send the answers, or no
// longer.
func (h *Residence) Show(on bool) {
	h.Mu.Lock()
	defer h.Mu.Unlock()
	h.shown = on
	if servers := h.servers.Load(); servers != nil {
		for q, v := range *servers {
			h.n.Steppers[q].Call(func() { v.Show(on) })
		}
	}
}

// serve makes a server for each engine. h.mu is held.
func (h *Residence) serve() (servers []*resident.Server, err error) {
	for _, st := range h.n.Steppers {
		local := memory.New(h.n.Table)
		h.local = append(h.local, local)
		v, err := h.Executor.NewServer(local, 0, st.Eng.Lived)
		if err != nil {
			return nil, err
		}
		v.Show(h.shown)
		servers = append(servers, v)
	}
	return servers, nil
}

// Register is register for resident memory: o is that of the region. n.mu is held.
func (h *Residence) Register(m *mr.Memory, o mr.Options) (*mr.Region, error) {
	if o.Offset != 0 {
		return nil, errno.Refuse(errno.NotImplemented, "offset %d in resident memory: want 0", o.Offset)
	}
	var r *mr.Region
	left, err := h.left(m, &o)
	if err != nil {
		return nil, err
	}
	before := o.Withdrawing
	o.Withdrawing = func() {
		h.withdraw(r.Key())
		if before != nil {
			before()
		}
	}
	if r, err = h.table.Register(m, o); err != nil {
		return nil, err
	}
	if err := h.enter(m, r, &o, left); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// enter has the program execute what is for a region over a memory, which stays, since it
// has the region. If the region was left by the process before, it does already.
func (h *Residence) enter(m *mr.Memory, r *mr.Region, o *mr.Options, left bool) (err error) {
	h.Mu.Lock()
	defer h.Mu.Unlock()
	of := h.memories[m]
	if of == nil {
		return errno.Refuse(errno.Foreign,
			"resident memory of another domain: want one that NewResidentMemory of this domain returned")
	}
	if !left {
		as := h.describe(o)
		as.Key, as.Length, as.Base, as.Incarnation = r.Key(), r.Len(), r.Base(), r.Incarnation()
		if err = h.mayReplace(as.Key); err == nil {
			err = h.Executor.Replace(of, as, *h.Keys.Load())
		}
	}
	if err == nil {
		if left {
			h.Store.Back[r.Key()] = true
		}
		keys := maps.Clone(*h.Keys.Load())
		keys[r.Key()] = struct{}{}
		h.Keys.Store(&keys)
	}
	return err
}

// withdraw has the program leave the region of a key, if it has entered it.
func (h *Residence) withdraw(key uint64) {
	h.Mu.Lock()
	defer h.Mu.Unlock()
	if h.Executor == nil || h.Leaving.Load() {
		return
	}
	keys := maps.Clone(*h.Keys.Load())
	if _, entered := keys[key]; !entered {
		return // it may be the former process's
	}
	delete(keys, key)
	h.Keys.Store(&keys)
	if at := h.Store; at != nil && at.left() && at.Back[key] {
		return // it is the former process's, too, until Resume ends it
	}
	_ = h.Executor.Deregister(key) // it fails if the key is gone
}

// drop drops a memory that is closed.
func (h *Residence) drop(m *mr.Memory, of *resident.Memory) {
	h.Mu.Lock()
	defer h.Mu.Unlock()
	delete(h.memories, m)
	if h.Executor != nil && !h.Leaving.Load() {
		h.Executor.ReleaseMemory(of)
	}
}

// End gives up the program, after the engines have ended and the device is closed.
func (h *Residence) End() error {
	h.Mu.Lock()
	defer h.Mu.Unlock()
	return errors.Join(h.close(), h.giveUp())
}

// close is end with h.mu held.
func (h *Residence) close() error {
	for _, m := range h.local {
		m.Close()
	}
	h.local = nil
	h.servers.Store(nil)
	x := h.Executor
	h.Executor = nil
	if x == nil {
		return nil
	}
	h.Counted.close()
	return x.Close()
}

// residentVerdicts are the statistics of the program by what became of a frame.
var residentVerdicts = map[string][]resident.Verdict{
	"resident_requests_executed": {resident.Execute},
	"resident_duplicates":        {resident.Duplicate},
	"resident_early":             {resident.Early},
	"resident_passed":            {resident.Foreign, resident.Spent},
	"resident_relayed":           {resident.Relayed},
	"resident_refused":           {resident.Stale, resident.OutOfWindow, resident.Invalid, resident.Absent},
	"resident_busy":              {resident.Busy},
}

// Count adds the statistics of the program, if there is one.
func (h *Residence) Count(all map[string]uint64) error {
	h.Mu.Lock()
	defer h.Mu.Unlock()
	if h.Executor == nil {
		return nil
	}
	t, err := h.Executor.Tally()
	if err != nil {
		return err
	}
	for name, verdicts := range residentVerdicts {
		for _, v := range verdicts {
			all[name] += t.Frames[v]
		}
	}
	all["resident_ops_executed"], all["resident_sessions"] = t.Ops, t.Sessions
	all["resident_answers_lost"], all["resident_sessions_relayed"] = t.Lost, t.Relayed
	all["resident_sessions_returned"] = t.Returned
	return nil
}

// mayReplace returns an error if there is a registration of a key that another process
// could still go on with. The lock is held.
func (h *Residence) mayReplace(key uint64) error {
	if h.Store == nil || !h.Store.Handed || h.Store.resumed {
		return nil
	}
	regions, err := h.Executor.Regions()
	if err != nil {
		return err
	}
	if r, is := regions[key]; is {
		return fmt.Errorf("key %#x is handed over with region %q of %d bytes: want the same memory, length, rights,"+
			" authorization key, incarnation and kind of addresses as before; "+
			"or stop the former process, and start this one", key, r.Name.Name, r.Length)
	}
	return nil
}
