// SPDX-License-Identifier: Apache-2.0

// Package host has the guests of a node: programs that use its interface through it, what
// they cost and may have, and the handover of all to the next process.
package host

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/executor"
	"github.com/xdpfab/xdpfab/internal/memory"
	"github.com/xdpfab/xdpfab/internal/node"
	"github.com/xdpfab/xdpfab/internal/share"
	"github.com/xdpfab/xdpfab/mr"
)

// A domain that has an interface can host other programs, its guests: their domains have
// endpoints and regions as this one has, with this one's engines and interface. A guest
// keeps no promise that this process relies on: see internal/share.

// GuestLimits bound what one guest may have at a time. A number that is 0 means its
// default. As many regions are kept for all programs of the Rule together as one may
// have.
type GuestLimits struct {
	Entries   int // of its submission ring, and so operations in flight; 4096
	Arena     int // bytes for operands and results on their way; 64 MiB
	Arrivals  int // bytes of what peers send and the guest has not read; 4 MiB
	Endpoints int // numbers of endpoints, passive ones and contexts of scalable ones, each once; 256
	Peers     int // 65536
	Regions   int // 1024
	Memory    int // bytes of the memfds that its regions are parts of; 16 GiB
	// that its user borrows by this Rule (DomainAttr.Borrow): on these it can put any
	// frame on the wire; none
	Queues int
	Kept   int // bytes of memfds that outlive programs, of all programs of the Rule together; none
	Host   int // bytes of this process's own memory: see docs/sharing.md; 128 MiB

	// Attach is the time from the call of Host within which the program must have
	// attached; a minute. A program that says nothing holds no place for longer.
	Attach time.Duration

	// Budgets are what the guest shares with others, and each is charged with all that it
	// costs; none unless given.
	Budgets []*Budget
	// Attached, if it is not nil, is called when the program has attached.
	Attached func()
	// Serves, if it is not nil, is called when the program begins to be there for peers:
	// it has a region, an endpoint that accepts sessions or connections, or borrows a
	// queue. It may be called again, from any goroutine, and must not block.
	Serves func()

	// Rule names what sets these limits, in the errors that the guest gets; "the host"
	// unless given.
	Rule string
	// Weight is the guest's share of the engine, in proportion to other guests' weights:
	// guests that always have operations waiting are served bytes and entries in that
	// proportion. At most 100; 1
	Weight int

	// Serve, if it is not nil, is asked for each region that the guest registers, by
	// name, which may be empty. Its error refuses the region, and reaches the guest.
	Serve func(region string) error
}

// mostWeight keeps the turn of one guest short.
const mostWeight = 100

func (l GuestLimits) withDefaults() GuestLimits {
	for _, x := range []struct {
		field *int
		value int
	}{
		{&l.Entries, 4096}, {&l.Arena, 64 << 20}, {&l.Arrivals, 4 << 20}, {&l.Endpoints, 256}, {&l.Peers, 1 << 16},
		{&l.Regions, 1024}, {&l.Memory, 16 << 30}, {&l.Host, 128 << 20}, {&l.Weight, 1},
	} {
		if *x.field == 0 {
			*x.field = x.value
		}
	}
	if l.Attached == nil {
		l.Attached = func() {}
	}
	if l.Serves == nil {
		l.Serves = func() {}
	}
	l.Attach, l.Rule = cmp.Or(l.Attach, time.Minute), cmp.Or(l.Rule, "the host")
	return l
}

// Effective returns the limits with the usual ones in place of those that are not set.
func (l GuestLimits) Effective() GuestLimits { return l.withDefaults() }

// check reports limits that cannot be.
func (l *GuestLimits) check() error {
	if l.Weight < 1 || l.Weight > mostWeight {
		return fmt.Errorf("xdpfab: a guest of weight %d: want 1 to %d, or 0 for 1", l.Weight, mostWeight)
	}
	return nil
}

// Serve serves the program at the other end of a connection, until the program or this
// domain ends, or the program breaks a rule, which is the error returned. The connection
// is the domain's from then on, and what the program had is given back when Host returns.
// The caller of Host has decided that the program may use the interface.
func (h *Host) Serve(conn *net.UnixConn, limits GuestLimits) error {
	g := NewGuest(h, conn, limits)
	err := g.meet()
	err = errors.Join(err, g.limits.check())
	if err == nil {
		err = h.admit(g)
	}
	if errors.Is(err, errLeaving) && h.keepForNext(g.talk) {
		return g.talk.Close()
	}
	if err != nil {
		g.endTalk()
		_ = g.talk.Close()
		return err
	}
	return g.serve(nil)
}

// Host is what a domain has of its guests.
type Host struct {
	n  *node.Node
	Mu sync.Mutex // guards tenancy, and what is said to be under it
	// Guests, or the host: see host.go and attached.go.
	Tenancy tenancy        // under mu
	hosting sync.WaitGroup // guests; begun under mu
	// withdrawing is held while a region that was kept is withdrawn; before mu.
	withdrawing sync.Mutex
	closed      atomic.Bool // see Close
	lending
}

// tenancy is what a domain has of its guests. It is made with the first one.
type tenancy struct {
	guests map[*Guest]struct{}
	Kept   map[KeptID]*kept
	succession
}

// admit records a new guest.
func (h *Host) admit(g *Guest) error {
	h.Mu.Lock()
	defer h.Mu.Unlock()
	if err := cmp.Or(h.n.Open(), h.staying()); err != nil {
		return err
	}
	if err := h.n.Dev.MayHost(); err != nil {
		return fmt.Errorf("xdpfab: a host of guests: %w", err)
	}
	if h.Tenancy.guests == nil {
		h.Tenancy.guests = map[*Guest]struct{}{}
	}
	h.Tenancy.guests[g] = struct{}{}
	g.St = h.n.NextStepper()
	h.hosting.Add(1)
	return nil
}

// removeGuest forgets a guest.
func (h *Host) removeGuest(g *Guest) {
	h.Mu.Lock()
	defer h.Mu.Unlock()
	delete(h.Tenancy.guests, g)
	h.hosting.Done()
}

// EndGuests implements node.GuestHost.
func (h *Host) EndGuests() {
	h.undoOpen()
	h.Mu.Lock()
	guests := maps.Clone(h.Tenancy.guests)
	h.Mu.Unlock()
	for g := range guests {
		g.endTalk()
	}
	h.hosting.Wait()
	h.withdrawAllKept()
}

// endpointOf returns the guest's endpoint of a number, if it accepts sessions, or nil.
// Any thread.
func (h *Host) endpointOf(number uint16) *GuestEndpoint {
	ep, _ := h.n.Numbers.Serving(number).(*GuestEndpoint)
	return ep
}

// furnish gives the guest room for regions and endpoints.
func (g *Guest) furnish() {
	g.Mu.Lock()
	defer g.Mu.Unlock()
	g.table = mr.NewTable()
	g.executors, g.memory = make([]*executor.Executor, len(g.h.n.Steppers)), make([]*memory.Memory, len(g.h.n.Steppers))
	g.endpoints, g.regions, g.listeners = map[uint16]*GuestEndpoint{}, map[uint64]*guestRegion{},
		map[uint16]*guestPassive{}
	g.blocks = map[uint16]*node.Block{}
}

// executor returns the executor of the guest's memory for sessions of a queue. It shares
// the buffers of own, the domain's executor. It is called on the thread of that queue's
// engine.
func (g *Guest) executor(queue int, own *executor.Executor) *executor.Executor {
	if x := g.executors[queue]; x != nil {
		return x
	}
	m := memory.New(g.table)
	g.executors[queue], g.memory[queue] = own.WithMemory(m), m
	return g.executors[queue]
}

// allows reports why the guest may not have rings of such sizes.
func (g *Guest) allows(s share.Sizes) error {
	if l := &g.limits; s.Entries > l.Entries || s.Arena > l.Arena || s.Arrivals > l.Arrivals {
		return errno.Refuse(errno.Denied,
			"rings of %d entries, an arena of %d bytes and %d bytes of arrivals: %s allows %d, %d and %d; ask for"+
				" less, or have them raised", s.Entries, s.Arena, s.Arrivals,
			l.Rule, l.Entries, l.Arena, l.Arrivals)
	}
	return nil
}

// segmentCost is what a guest costs that attached: connection, pidfd, segment, both
// ends of the doorbell, and a copy of one of them on its way to another process.
func segmentCost(s share.Sizes) Cost { return Cost{Memory: s.Len(), Files: 6, Mappings: 1} }

// OwnCost is the host's own memory for such a guest, before it has anything else.
func OwnCost(s share.Sizes) int {
	return guestCost + s.Entries*entryCost + min(s.Entries, engine.FlightsAtOnce)*engine.FlightLen
}

// chargeSegment takes what the guest costs that attached.
func (g *Guest) chargeSegment(s share.Sizes) error {
	if err := g.pays.take(segmentCost(s)); err != nil {
		return err
	}
	if err := g.pays.use(OwnCost(s)); err != nil {
		g.pays.give(segmentCost(s))
		return err
	}
	return nil
}

// releaseSegment gives that back, and flights and lists that were made since.
func (g *Guest) releaseSegment(s share.Sizes) {
	g.pays.give(segmentCost(s))
	own := OwnCost(s)
	if g.flights != nil {
		g.St.Call(func() { own += g.flights.Afforded() + g.Ring.ListLen() })
	}
	g.pays.free(own)
}

// attach answers the call of a guest that brings the segment.
func (g *Guest) attach(ctx context.Context, args json.RawMessage, fds []int) (any, error) {
	var a share.Attach
	switch err := read(args, &a); {
	case err != nil:
		return nil, err
	case a.Version != share.Version:
		return nil,
			errno.Refuse(errno.NotImplemented,
				"shared rings of version %d: this host has version %d; use a program and a daemon of one release",
				a.Version, share.Version)
	case len(fds) != 1:
		return nil, wantFile(len(fds), "the rings")
	case g.Ring != nil:
		return nil, fmt.Errorf("attached already: %w", errno.Busy)
	}
	if err := g.allows(a.Sizes); err != nil {
		return nil, err
	}
	if err := g.chargeSegment(a.Sizes); err != nil {
		return nil, err
	}
	segment, err := a.Sizes.Map(fds[0])
	if err != nil {
		g.releaseSegment(a.Sizes)
		return nil, fmt.Errorf("rings: %w: %w", err, syscall.EINVAL)
	}
	own, other, err := share.NewDoorbells()
	if err != nil {
		g.releaseSegment(a.Sizes)
		return nil, fmt.Errorf("%w (%w)", err, segment.Close())
	}
	g.start(segment, own, other, a.Sizes, nil)
	g.features = share.Agreed(a.Features)
	g.attend()
	return g.where(g.features)
}

// On returns the host of a node's guests. The first call makes it.
func On(n *node.Node) *Host {
	var made node.GuestHost = &Host{n: n}
	n.Guests.CompareAndSwap(nil, &made)
	return n.Host().(*Host)
}
