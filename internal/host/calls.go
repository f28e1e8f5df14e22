// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"

	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/node"
	"github.com/xdpfab/xdpfab/internal/share"
	"github.com/xdpfab/xdpfab/internal/wire"
	"github.com/xdpfab/xdpfab/mr"
)

// guestCall answers a call.
type guestCall = func(g *Guest, ctx context.Context, args json.RawMessage, fds []int) (any, error)

// guestCalls are what a guest can ask for.
var guestCalls = map[string]guestCall{
	share.CallTune:     call1((*Guest).tune),
	share.CallEndpoint: call1((*Guest).endpoint),
	share.CallServe:    call1((*Guest).serveEndpoint),
	share.CallDrop: call1(func(g *Guest, _ context.Context, origin uint64) (any,
		error) {
		g.drop(origin)
		return nil, nil
	}),
	share.CallLeave: call1((*Guest).leave),
	share.CallLink: call1(func(g *Guest, ctx context.Context, a share.Addr) (wire.Link, error) {
		return g.link(ctx, wire.Addr(a))
	}),
	share.CallPeer:       call1((*Guest).peerOf),
	share.CallPeers:      call1((*Guest).peersOf),
	share.CallRegister:   (*Guest).register,
	share.CallDeregister: call1((*Guest).deregister),
	share.CallTallies:    (*Guest).mapTallies,
	share.CallObserve:    call1((*Guest).observe),
	share.CallAsk:        call1((*Guest).ask),
	share.CallPart:       call1((*Guest).part),
	share.CallBlock:      call1((*Guest).block),
	share.CallUnblock:    call1((*Guest).releaseNumbers),
	share.CallPassive:    call1((*Guest).passive),
	share.CallListen:     call1((*Guest).listen),
	share.CallHear:       call1((*Guest).hear),
	share.CallReply:      call1((*Guest).reply),
	share.CallUnlisten:   call1((*Guest).unlisten),
	share.CallKeep:       call1((*Guest).keep),
	share.CallTakeBack:   call1((*Guest).takeBack),
	share.CallCounters:   call1((*Guest).counters),
	share.CallOwnFault:   call1((*Guest).ownFault),
}

// firstCalls are what a guest can ask for before it has anything here.
var firstCalls = map[string]guestCall{
	share.CallOffer:  call1((*Guest).offer),
	share.CallAttach: (*Guest).attach,
	share.CallBorrow: call1((*Guest).borrow),
}

// takesFiles are the calls that bring file descriptors.
var takesFiles = map[string]bool{share.CallAttach: true, share.CallRegister: true, share.CallTallies: true}

// callsNow are what the guest can ask for at present.
func (g *Guest) callsNow() map[string]guestCall {
	switch {
	case g.holds != nil:
		return g.holds.calls()
	case g.Ring != nil:
		return guestCalls
	}
	return firstCalls
}

// call1 makes a call of a method that has one argument and no file descriptors.
func call1[A, R any](f func(*Guest, context.Context, A) (R, error)) guestCall {
	return func(g *Guest, ctx context.Context, args json.RawMessage, _ []int) (any, error) {
		var a A
		if err := read(args, &a); err != nil {
			return nil, err
		}
		return f(g, ctx, a)
	}
}

// answer does what a call asks for. The error returned is one of the conversation.
func (g *Guest) answer(ctx context.Context, c *share.Call, fds []int) error {
	if !takesFiles[c.Verb] { // it may wait for long
		share.CloseAside(fds)
		fds = nil
	}
	defer share.CloseAside(fds)
	paid, err := g.PayCall(c, len(fds))
	if err == nil {
		defer paid()
	} else {
		c.Arguments = nil // the guest may take its time to read the answer
	}
	var result any
	switch do := g.callsNow()[c.Verb]; {
	case err != nil:
	case do == nil:
		err = errno.Refuse(errno.NotImplemented, "%q: want another verb, or attach first", c.Verb)
	default:
		result, err = do(g, ctx, c.Arguments, fds)
	}
	if g.movesCall(ctx, c, err) {
		return nil
	}
	r := share.Reply{ID: c.ID}
	if err == nil {
		r.Result, err = json.Marshal(result)
	}
	if h, is := result.(handed); is {
		defer share.CloseAll([]int{h.fd})
		if err == nil {
			return g.talk.Send(r, h.fd)
		}
	}
	if err != nil {
		g.log("call of a guest refused", slog.String("call", c.Verb), slog.String("cause", err.Error()))
		r = failure(c.ID, err)
	}
	if g.gifts != nil {
		defer g.give()
		return g.talk.Send(r, g.gifts...)
	}
	return g.talk.Send(r)
}

func (g *Guest) tooMany(what string, limit int) error {
	return errno.Refuse(errno.Denied,
		"more than %d %s of one program: %s allows no more; close some, or have its limit raised",
		limit, what, g.limits.Rule)
}

// link finds the way to an address.
func (g *Guest) link(ctx context.Context, a wire.Addr) (wire.Link, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, g.givesUp(), node.ErrHopSilent)
	defer cancel()
	l, err := g.h.n.Dev.Link(ctx, a)
	return l, node.HopError(err)
}

// endpoint makes an endpoint, and returns its number.
func (g *Guest) endpoint(_ context.Context, a share.Endpoint) (uint16, error) {
	if err := g.pays.use(EndpointCost); err != nil {
		return 0, err
	}
	number, err := g.newEndpoint(a)
	if err != nil {
		g.pays.free(EndpointCost)
	}
	return number, err
}

// newEndpoint does the work of endpoint.
func (g *Guest) newEndpoint(a share.Endpoint) (uint16, error) {
	ring := engine.NewDirect(g.flights, g.Ring)
	g.making.Lock()
	defer g.making.Unlock()
	key, err := node.SessionKey(g.table, a.Key) // of the table that a successor has by now
	if err != nil {
		return 0, err
	}
	ep := &GuestEndpoint{Guest: g, identity: a.Origin, as: a, key: key, ring: ring, connected: a.Connected}
	ep.parted, ep.leave = context.WithCancel(context.Background())
	anew, err := g.assign(ep, a)
	if err != nil {
		return 0, err
	}
	if anew {
		g.h.n.EndTargets(ep.number)
	}
	source := ep.number
	if a.Posts && a.Block != nil {
		source = *a.Block
	}
	if ep.origin = g.St.Eng.NewOrigin(source); a.Unordered {
		ep.origin = g.St.Eng.NewUnorderedOrigin(source)
	}
	ep.origin.Assume(a.Origin, a.Serial)
	ep.origin.SetKey(key)
	ep.origin.SetGiveUp(g.givesUp())
	g.St.Call(func() {
		ep.origin.Charge(g.Ring)
		g.St.Eng.AddRing(ring, ep.origin)
	})
	return ep.number, nil
}

// assign gives an endpoint its number. An endpoint that was left with kept regions keeps
// its sessions, unless anew is true: then the key has changed and they must begin anew.
func (g *Guest) assign(ep *GuestEndpoint, a share.Endpoint) (anew bool, err error) {
	if a.Origin == 0 {
		return false, errno.Refuse(errno.NotImplemented, "an endpoint without an origin: want one that is random")
	}
	g.h.Mu.Lock()
	defer g.h.Mu.Unlock()
	g.Mu.Lock()
	defer g.Mu.Unlock()
	if g.h.hasOrigin(a.Origin) {
		return false, errno.Refuse(errno.Busy, "the origin of an endpoint is in use: want one that is random")
	}
	of, err := g.contextOf(&a)
	if err != nil {
		return false, err
	}
	if a.Number == node.AnyNumber && !a.Highest {
		a.Number = g.h.n.Numbers.SomeNumber()
	}
	ep.bound = a.Connected || a.Block != nil
	if old := g.endpoints[uint16(a.Number)]; old != nil && old.left && a.Number == int(old.number) && !ep.bound {
		ep.number, anew = old.number, old.key.ID() != ep.key.ID()
		ep.successor = true
		ep.on.Store(!anew)
	} else if err = g.mayNumber(1); err != nil && !g.reserves(a.Number) {
		return false, err
	} else if ep.number, err = g.h.n.Numbers.Take(a.Number, a.Highest, of); err != nil {
		return false, err
	}
	g.settled = true
	g.endpoints[ep.number] = ep
	g.h.n.Numbers.Put(ep.number, ep)
	return anew, nil
}

// hasOrigin reports whether an endpoint of a guest has an origin.
func (h *Host) hasOrigin(origin uint64) (has bool) {
	h.n.Numbers.Each(func(_ uint16, t node.Tenant) {
		if ep, is := t.(*GuestEndpoint); is && ep.identity == origin {
			has = true
		}
	})
	return has
}

// serveEndpoint makes an endpoint accept sessions, or no longer.
func (g *Guest) serveEndpoint(_ context.Context, s share.Serve) (any, error) {
	g.making.Lock()
	defer g.making.Unlock()
	g.Mu.Lock()
	ep := g.endpoints[s.Endpoint]
	if ep == nil || ep.left {
		g.Mu.Unlock()
		return nil, errno.Closed
	}
	if err := g.observeEndpoint(ep, s.Tally); err != nil {
		g.Mu.Unlock()
		return nil, err
	}
	speaks := s.Events || s.Messages || s.Attends || s.Calls || s.Tally != 0
	anew := ep.successor && speaks && !ep.spoken // sessions from before have none of these
	ep.spoken = ep.spoken || speaks
	g.Mu.Unlock()
	ep.events.Store(s.Events)
	ep.messages.Store(s.Messages)
	ep.attends.Store(s.Attends)
	ep.calls.Store(s.Calls)
	if ep.on.Store(s.On); s.On {
		g.limits.Serves()
	}
	if anew {
		g.h.n.EndTargets(ep.number)
	}
	return nil, nil
}

// guestRegion is memory of a guest that peers operate on.
type guestRegion struct {
	region *mr.Region
	memory *mr.Memory
	told   share.Region // what the guest said of it
	paid   func()       // gives back what it costs
}

// regionCost is what a region costs that is part of so many bytes.
func regionCost(bytes int) Cost { return Cost{Memory: bytes, Files: 1, Mappings: 1} }

func (r *guestRegion) close() error {
	defer r.paid()
	return errors.Join(r.region.Close(), r.memory.Close())
}

// register lets peers of the guest's endpoints operate on its memory.
func (g *Guest) register(_ context.Context, args json.RawMessage, fds []int) (any, error) {
	var a share.Region
	if err := read(args, &a); err != nil {
		return nil, err
	}
	if len(fds) != 1 {
		return nil, wantFile(len(fds), "the region")
	}
	if g.limits.Serve != nil {
		if err := g.limits.Serve(a.Name); err != nil {
			return nil, fmt.Errorf("region %q: %w: %w", a.Name, err, errno.Denied)
		}
	}
	g.Mu.Lock()
	defer g.Mu.Unlock()
	switch {
	case len(g.regions) >= g.limits.Regions:
		return nil, g.tooMany("regions", g.limits.Regions)
	case a.Length <= 0:
		return nil, errno.Refuse(errno.Length, "region of %d bytes: want at least one", a.Length)
	}
	if err := g.pays.take(regionCost(0)); err != nil {
		return nil, err
	}
	r, err := g.newRegion(&a, fds[0])
	if err != nil {
		g.pays.give(regionCost(0))
		return nil, err
	}
	g.settled = true
	g.limits.Serves()
	g.regions[a.Key] = r
	g.log("guest serves a region", slog.String("name", a.Name), slog.Int("bytes", a.Length),
		slog.Bool("read", mr.Access(a.Access)&mr.RemoteRead != 0),
		slog.Bool("write", mr.Access(a.Access)&mr.RemoteWrite != 0))
	g.spanned += len(r.memory.Bytes())
	return nil, nil
}

// newRegion makes a region that descriptor and mapping have been paid for. g.mu is held.
func (g *Guest) newRegion(a *share.Region, fd int) (*guestRegion, error) {
	// The whole memfd takes address space, however short the region is.
	m, err := mr.Shared(fd, g.limits.Memory-g.spanned)
	if errors.Is(err, mr.ErrSize) {
		what := fmt.Sprintf("region beside others of %d bytes", g.spanned)
		if g.spanned == 0 {
			what, err = "memory of the region", mr.ErrSize
		}
		return nil, errno.Refuse(errno.Denied, "%s: %s allows %d in all; use less, or have its limit raised: %w", what,
			g.limits.Rule, g.limits.Memory, err)
	}
	if err != nil {
		return nil, err
	}
	bytes := Cost{Memory: len(m.Bytes())}
	if err := g.pays.take(bytes); err != nil {
		return nil, errors.Join(err, m.Close())
	}
	r, err := g.table.Register(m, mr.Options{Key: &a.Key, Access: mr.Access(a.Access), Name: a.Name, Offset: a.Offset,
		Length:  a.Length,
		Virtual: a.Base != 0, Address: a.Base, AuthKey: a.AuthKey, Incarnation: a.Incarnation})
	if err != nil {
		g.pays.give(bytes)
		return nil, errors.Join(err, m.Close())
	}
	if err := g.observeRegion(r, a.Tally); err != nil {
		g.pays.give(bytes)
		return nil, errors.Join(err, r.Close(), m.Close())
	}
	return &guestRegion{r, m, *a, func() { g.pays.give(regionCost(bytes.Memory)) }}, nil
}

// deregister withdraws a region. It returns when no operation is in flight on it.
func (g *Guest) deregister(_ context.Context, key uint64) (any, error) {
	g.h.Mu.Lock()
	g.Mu.Lock()
	r := g.regions[key]
	if r != nil {
		g.unlist(key, r)
		g.unkeep(r)
	}
	g.Mu.Unlock()
	g.h.Mu.Unlock()
	if r == nil {
		return nil, nil // the guest has ended
	}
	return nil, g.closeRegion(r)
}
