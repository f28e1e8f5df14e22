// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/executor"
	"github.com/xdpfab/xdpfab/internal/memory"
	"github.com/xdpfab/xdpfab/internal/node"
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/share"
	"github.com/xdpfab/xdpfab/mr"
)

// Guest is a program that uses the domain's interface: what it has here, and its
// conversation.
type Guest struct {
	h      *Host
	St     *node.Stepper // of the engine that takes its operations
	talk   *share.Talk
	limits GuestLimits
	info   GuestInfo // what does not change

	Segment  *share.Segment
	doorbell *share.Doorbell // this side's end
	ring     *os.File        // the doorbell as a file, to be waited for
	gifts    []int           // file descriptors that leave with the current answer
	given    func()          // called when they have; nil for none
	Ring     *share.HostRing
	flights  *engine.Flights // of all its endpoints together
	pays     payer
	in       *share.Arrivals     // what peers send
	holds    holding             // in place of Ring and in; nil for none
	queue    atomic.Pointer[int] // that it borrows
	sizes    share.Sizes
	features []string              // that host and guest have agreed on; set when it attaches
	broken   atomic.Pointer[error] // the rule that it has broken
	table    *mr.Table

	calls    sync.WaitGroup // that are being answered
	Calling  atomic.Int64   // how many
	counting sync.Mutex     // held by the call that reads the interface's counters
	ringing  sync.WaitGroup // await

	departure

	// By queue; each belongs to the thread of the queue's engine.
	executors []*executor.Executor
	memory    []*memory.Memory

	open   atomic.Int64   // peers
	stops  node.WorkQueue // ends of the watches of ways to peers
	giveUp atomic.Int64   // ns; 0 for the host's

	// making is held while an endpoint is made, closed, or gets a peer: the guest's calls
	// are answered side by side, and none may find half an endpoint. It comes before
	// Host.mu and mu.
	making sync.Mutex

	Mu        sync.Mutex
	endpoints map[uint16]*GuestEndpoint
	peers     uint32 // numbers given out
	regions   map[uint64]*guestRegion
	spanned   int            // bytes, of regions
	closing   []*guestRegion // that it no longer has, but that may be in use by pollers
	withdrawn Applied        // to regions that are closed
	Tallies   *share.Observers
	listeners map[uint16]*guestPassive
	blocks    map[uint16]*node.Block // by first number: of the guest's scalable endpoints
	settled   bool                   // it has, or had, endpoints or regions

	Ended bool          // nothing is left of it but what is kept; under Host.mu
	Gone  chan struct{} // closed then
}

// GuestEndpoint is an endpoint of a guest.
type GuestEndpoint struct {
	Guest    *Guest
	number   uint16
	identity uint64 // of the origin
	as       share.Endpoint
	key      *session.Key
	origin   *engine.Origin
	ring     *engine.Ring
	on       atomic.Bool // it accepts sessions
	events   atomic.Bool // it takes them
	messages atomic.Bool // likewise
	attends  atomic.Bool // the guest executes what this host cannot
	calls    atomic.Bool // a function of the guest answers calls
	credit   share.Credit
	observer atomic.Pointer[share.Observer]
	tally    int // of observer; under guest.mu

	// Of one that is to be connected; see connection.
	connected   bool
	asks        atomic.Bool // it has asked
	asking, met atomic.Bool // see connection
	admits      atomic.Uint64
	inquiry     *engine.Inquiry // engine's thread
	parted      context.Context
	leave       context.CancelFunc
	spoken      bool // it took messages or events, attended, or was counted, at some time; under guest.mu
	successor   bool // it has taken the place of one that was left
	bound       bool // to a connection or a scalable endpoint, and so to this guest
	left        bool // by the former holder of kept regions: it has no ring and no origin
}

// holding is what a guest may have here in place of rings: a queue of its own.
type holding interface {
	// calls are what the guest can ask for.
	calls() map[string]guestCall
	// end gives it back when the guest has ended.
	end(g *Guest)

	migratable
}

// NewGuest makes a guest of a connection. It is served from admit on.
func NewGuest(h *Host, conn *net.UnixConn, limits GuestLimits) *Guest {
	g := &Guest{h: h, Gone: make(chan struct{}), talk: share.NewTalk(conn), limits: limits.withDefaults(),
		departure: newDeparture(),
	}
	g.pays = payer{limits: &g.limits, uid: func() uint32 { return g.info.UID }}
	return g
}

// start puts the segment to use. other is the guest's end of the doorbell, which it gets
// with the answer; nil if it has that. before, if it is not nil, prepares the ring before
// an engine has it.
func (g *Guest) start(segment *share.Segment, own, other *share.Doorbell, s share.Sizes, before func(*share.HostRing)) {
	g.Segment, g.doorbell, g.sizes = segment, own, s
	if other != nil {
		g.gifts, g.given = []int{other.FD()}, func() { _ = other.Close() }
	}
	g.furnish()
	g.ring = own.File()
	g.Mu.Lock()
	g.Ring, g.in = share.NewHostRing(segment, own, g.St.Eng, g.evict), share.NewArrivals(segment, own, g.evict)
	g.Mu.Unlock()
	g.flights = engine.NewFlights(s.Entries, g.pays.afford)
	g.Ring.OnAdmit(g.admit)
	g.Ring.OnAnswer(g.answered)
	g.Ring.OnReply(g.in.Reply)
	g.Ring.OnLists(g.pays.afford)
	if before != nil {
		before(g.Ring)
	}
	g.St.Call(func() { g.St.Eng.AddHostRing(g.Ring, g.limits.Weight) })
}

// attend has the engine take the guest's operations.
func (g *Guest) attend() { g.ringing.Go(g.await) }

// evict is called on the engine's thread when the guest has broken a rule of the rings.
func (g *Guest) evict(err error) {
	g.broken.Store(&err)
	go g.endTalk() // the engine's thread must not block
}

// endTalk ends the conversation, and so the guest.
func (g *Guest) endTalk() { g.talk.End() }

// await wakes the engine when the guest rings.
func (g *Guest) await() {
	var buf [16]byte
	for {
		if _, err := g.ring.Read(buf[:]); err != nil {
			return
		}
		g.St.Eng.Alert()
		g.room()
	}
}

// mostCalls is how many calls of one guest may be under way at a time. A guest that makes
// more is turned out: if its host waited instead, it would not learn of the guest's end.
const mostCalls = 1024

// serve answers the guest's calls, first those that are given, until it has gone, and
// then gives back what it had.
func (g *Guest) serve(first []share.Call) (err error) {
	defer g.watchDeath()()
	if g.arrived() {
		g.limits.Attached()
	} else {
		g.talk.Until(time.Now().Add(g.limits.Attach))
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	answer := func(c share.Call, fds []int) {
		g.Calling.Add(1)
		g.calls.Go(func() {
			if g.answer(ctx, &c, fds) != nil {
				g.endTalk()
			}
			g.Calling.Add(-1)
		})
	}
	for _, c := range first {
		answer(c, nil)
	}
	for {
		var c share.Call
		var fds []int
		if fds, err = g.talk.Receive(&c); err != nil {
			break
		}
		if !g.arrived() { // the first one, before which there is nothing
			if err = g.answer(ctx, &c, fds); err != nil {
				break
			}
			if g.arrived() {
				g.talk.Until(time.Time{})
				g.limits.Attached()
			}
			continue
		}
		if g.Calling.Load() >= mostCalls {
			share.CloseAside(fds)
			err = fmt.Errorf("xdpfab: a program makes more than %d calls at a time: %w", mostCalls, errno.Denied)
			break
		}
		answer(c, fds)
	}
	if errors.Is(err, share.ErrPaused) {
		return g.endPaused(cancel)
	}
	cancel(nil)
	if !g.arrived() && errors.Is(err, os.ErrDeadlineExceeded) {
		err = g.tellTimeout()
	}
	g.endTalk()
	g.calls.Wait()
	g.end()
	g.finish()
	if why := g.broken.Load(); why != nil {
		return *why
	}
	// A program that ends without having read everything resets the connection.
	if errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) || errors.Is(err, syscall.ECONNRESET) ||
		errors.Is(err, syscall.EPIPE) {
		return nil
	}
	return err
}

// arrived reports whether the guest has rings here, or something in their place.
func (g *Guest) arrived() bool { return g.Ring != nil || g.holds != nil }

// tellTimeout tells a guest that it has not attached in time, if it reads that.
func (g *Guest) tellTimeout() error {
	err := fmt.Errorf(
		"xdpfab: the program has not attached within %v of connecting: %s allows no more; have it connect again: %w",
		g.limits.Attach, g.limits.Rule, errno.Denied)
	g.talk.Until(time.Now().Add(reasonTimeout))
	_ = g.talk.Send(failure(0, err))
	return err
}

// reasonTimeout is how long a guest that is turned out has to take the reason.
const reasonTimeout = 100 * time.Millisecond

// end gives back everything that the guest has, once it makes no more calls.
func (g *Guest) end() {
	defer g.h.removeGuest(g)
	defer g.talk.Close()
	if g.holds != nil {
		g.holds.end(g)
		close(g.Gone)
	}
	if g.Ring == nil {
		return
	}
	g.St.Call(g.Ring.End)
	g.in.End()
	g.KeepRegions()
	for n := range maps.Clone(g.listeners) {
		_, _ = g.unlisten(context.Background(), n)
	}
	g.releaseAllNumbers()
	g.St.Call(func() {
		g.Ring.Close()
		g.St.Eng.RemoveHostRing(g.Ring)
	})
	g.stops.Wait()
	_ = g.ring.Close() // the doorbell, which ends await
	g.ringing.Wait()
	if g.Tallies != nil {
		_ = g.Tallies.Close()
		g.pays.give(talliesCost)
	}
	_ = g.Segment.Close()
	g.releaseSegment(g.sizes)
	g.give()
	g.OfferKept()
}

// give closes the file descriptors that left with an answer.
func (g *Guest) give() {
	if g.given != nil {
		g.given()
		g.gifts, g.given = nil, nil
	}
}

// closedAtOnce is how many peers of a guest are closed before other guests have their
// turn.
const closedAtOnce = 64

// drop closes the endpoint of an origin.
func (g *Guest) drop(origin uint64) {
	g.Mu.Lock()
	ep := g.endpointOf(origin)
	g.Mu.Unlock()
	if ep != nil {
		g.remove(ep)
	}
}

// remove ends an endpoint that the guest has or has left.
func (g *Guest) remove(ep *GuestEndpoint) {
	g.making.Lock()
	defer g.making.Unlock()
	number := ep.number
	g.Mu.Lock()
	if g.endpoints[number] != ep {
		g.Mu.Unlock()
		return
	}
	delete(g.endpoints, number)
	g.Mu.Unlock()
	ep.on.Store(false)
	g.h.n.EndTargets(number)
	g.silence(ep)
	g.h.n.Numbers.Drop(number, ep)
}

// silence ends an endpoint as a source of operations.
func (g *Guest) silence(ep *GuestEndpoint) {
	if ep.ring == nil {
		return
	}
	ep.part(g.St)
	for more := true; more; {
		g.St.Call(func() { more = g.Ring.CloseRing(ep.ring, closedAtOnce) })
	}
	g.St.Call(func() { g.St.Eng.RemoveRing(ep.ring) })
	ep.ring = nil
	g.pays.free(EndpointCost)
}

// endpointOf returns the endpoint of an origin, or nil. g.mu is held.
func (g *Guest) endpointOf(origin uint64) *GuestEndpoint {
	for _, ep := range g.endpoints {
		if ep.identity == origin && !ep.left {
			return ep
		}
	}
	return nil
}
