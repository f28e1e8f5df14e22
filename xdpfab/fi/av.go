// SPDX-License-Identifier: Apache-2.0

package fi

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/xdpfab/xdpfab/internal/calls"
	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/node"
	"github.com/xdpfab/xdpfab/internal/sharedav"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// Address names a peer within an address vector (fi_addr_t); the first one
// inserted is 0 (FI_AV_TABLE).
type Address uint32

// AddressVector maps addresses to peers; fi_av(3).
type AddressVector struct {
	object
	shared *sharedav.Table // of a vector with a name; nil without

	mu      sync.Mutex
	entries []avEntry
	index   map[wire.Addr]Address // of the entries that have not been removed, without lane
	bound   []*endpoint
	latest  sourceName // what was looked up last; forgotten when an answer may change
}

type avEntry struct {
	addr    wire.Addr
	link    wire.Link
	known   bool // not of a shared vector that has not been asked for it
	removed bool
	named   bool // completions call it userID; see SetUserID
	userID  Address
}

// NewAddressVector makes an address vector (fi_av_open). Without attributes it is empty
// and the domain's own; more than one are refused.
func (d *Domain) NewAddressVector(attr ...AVAttr) (*AddressVector, error) {
	if err := d.there(); err != nil {
		return nil, err
	}
	if len(attr) > 1 {
		return nil, errno.Refuse(ErrNotImplemented,
			"xdpfab: address vector with %d attributes: want one, or none", len(attr))
	}
	av := &AddressVector{index: map[wire.Addr]Address{}}
	what, err := "address vector", error(nil)
	if len(attr) == 1 {
		if av.shared, what, err = attr[0].open(d.attr.GiveUp); err != nil {
			return nil, err
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.node.Open(); err != nil {
		return nil, errno.Join(err, av.unshare())
	}
	av.open(d, what, nil)
	av.leave = av.unshare
	return av, nil
}

// Insert adds the endpoint at addr (fi_av_insert): a MAC address for raw Ethernet, or an
// IP address or a host's name for UDP, each optionally followed by "/" and an endpoint
// number. A name is looked up by net.DefaultResolver. For an IP address the route is
// looked up and the next hop resolved, which may take as long as ARP does, or the
// domain's GiveUp time: Insert fails with ErrPeerSilent if the hop does not answer.
// Nothing is sent to the peer itself.
func (av *AddressVector) Insert(ctx context.Context, addr string) (Address, error) {
	if err := av.there(); err != nil {
		return 0, err
	}
	if err := av.ended(); err != nil {
		return 0, err
	}
	a, link, err := av.dom.resolve(ctx, addr)
	if err != nil {
		return 0, err
	}
	return av.put(ctx, avEntry{addr: a, link: link})
}

// put adds an entry and returns its address.
func (av *AddressVector) put(ctx context.Context, e avEntry) (Address, error) {
	n, err := av.share(ctx, e.addr)
	if err != nil {
		return 0, err
	}
	av.mu.Lock()
	defer av.mu.Unlock()
	if err := av.ended(); err != nil {
		return 0, err
	}
	if err := av.full(); err != nil {
		return 0, err
	}
	if av.shared == nil {
		n = len(av.entries)
	}
	e.known = true
	av.cover(n)
	av.entries[n] = e
	av.learn(Address(n))
	return Address(n), nil
}

// cover makes sure that there is an entry n. av.mu is held.
func (av *AddressVector) cover(n int) {
	for len(av.entries) <= n {
		av.entries = append(av.entries, avEntry{})
	}
}

// resolve reads an address and finds the way to it. A host's name with several addresses
// means the first one that there is a way to.
func (d *Domain) resolve(ctx context.Context, addr string) (wire.Addr, wire.Link, error) {
	if err := errno.NoContext(ctx); err != nil {
		return wire.Addr{}, wire.Link{}, err
	}
	// The search for a silent next hop takes 3 s, and that for a name as long as the
	// resolver is told to, but neither should last longer than the wait for the peer.
	ctx, cancel := context.WithTimeoutCause(ctx, d.attr.GiveUp, node.ErrHopSilent)
	defer cancel()
	all, err := node.ResolveAll(ctx, addr, "ip")
	if err != nil {
		return wire.Addr{}, wire.Link{}, fmt.Errorf("xdpfab: %w", err)
	}
	var first error
	for _, a := range all {
		link, err := d.node.Dev.Link(ctx, a)
		if err == nil {
			return a, link, nil
		}
		if first == nil {
			first = fmt.Errorf("xdpfab: %s: %w", addr, node.HopError(err))
			if errors.Is(first, ErrPeerSilent) {
				first = fmt.Errorf("%w; %s", first, calls.Diagnose(addr, d.node.Dev.Info().Name))
			}
		}
	}
	return all[0], wire.Link{}, first
}

// Remove makes an address unusable (fi_av_remove). Sessions to it end, and outstanding
// operations complete with what is known of them. The number is not used again. Other
// users of a shared vector go on using an address that they have used already.
func (av *AddressVector) Remove(a Address) error {
	if err := av.there(); err != nil {
		return err
	}
	if err := av.unshareAddress(a); err != nil {
		if _, used := av.lookup(a); used != nil || !errors.Is(err, ErrUnknownPeer) {
			return err
		} // another user of the vector has removed it
	}
	av.mu.Lock()
	if av.shared != nil { // it was valid a moment ago
		av.cover(int(a))
	}
	if int(a) >= len(av.entries) || av.entries[a].removed {
		av.mu.Unlock()
		return fmt.Errorf("xdpfab: address %d: %w", a, ErrUnknownPeer)
	}
	av.entries[a].removed = true
	av.unlearn(a)
	bound := slices.Clone(av.bound)
	av.mu.Unlock()
	for _, ep := range bound {
		ep.dropPeer(a)
	}
	return nil
}

// use and unuse keep the list of the endpoints that are bound.
func (av *AddressVector) use(ep *endpoint) error {
	if err := av.hold(); err != nil {
		return err
	}
	av.mu.Lock()
	av.bound = append(av.bound, ep)
	av.mu.Unlock()
	return nil
}

func (av *AddressVector) unuse(ep *endpoint) {
	av.mu.Lock()
	av.bound = slices.DeleteFunc(av.bound, func(x *endpoint) bool { return x == ep })
	av.mu.Unlock()
	av.drop()
}

// Lookup returns the text form of an address (fi_av_lookup).
func (av *AddressVector) Lookup(a Address) (string, error) {
	if err := av.there(); err != nil {
		return "", err
	}
	if av.shared != nil {
		addr, err := av.sharedAddress(Address(a.entry()))
		if err != nil {
			return "", err
		}
		e, err := a.in(addr)
		return e.String(), err
	}
	e, err := av.lookup(a)
	return e.addr.String(), err
}

// in returns the address of the receive context that a names, of the endpoint at addr.
func (a Address) in(addr wire.Addr) (wire.Addr, error) {
	if int(addr.Endpoint)+a.context() > 0xffff {
		return addr, fmt.Errorf("xdpfab: address %d (%v): there is no receive context %d: %w", a, addr, a.context(),
			ErrUnknownPeer)
	}
	addr.Endpoint += uint16(a.context())
	return addr, nil
}

func (av *AddressVector) lookup(a Address) (avEntry, error) {
	av.mu.Lock()
	defer av.mu.Unlock()
	i := a.entry()
	if i >= len(av.entries) {
		return avEntry{}, fmt.Errorf("xdpfab: address %d (the vector holds %d): %w", a, len(av.entries), ErrUnknownPeer)
	}
	e := av.entries[i]
	var err error
	if e.addr, err = a.in(e.addr); err != nil {
		return avEntry{}, err
	}
	if e.removed {
		return e, fmt.Errorf("xdpfab: address %d (%v) was removed: %w", a, e.addr, ErrUnknownPeer)
	}
	if !e.known {
		return e, fmt.Errorf("xdpfab: address %d has not been looked up: %w", a, ErrUnknownPeer)
	}
	return e, nil
}

// Close ends the use of the address vector. It reports ErrBusy as long as an endpoint
// is bound. Closing twice is no error.
func (av *AddressVector) Close() error {
	if err := av.there(); err != nil {
		return err
	}
	return av.close()
}

// SetUserID has completions name a peer by a value of the program's own, such as an index
// of its data, where they would name it by the address a (fi_av_set_user_id,
// FI_AV_USER_ID): Completion.Source is id then. Posts go on using a. It holds for
// completions that are read from now on, in this process, until a is removed. An entry of
// a shared vector can have a user ID once this process has used it.
func (av *AddressVector) SetUserID(a, id Address) error {
	if err := av.there(); err != nil {
		return err
	}
	if a.context() != 0 {
		return errno.Refuse(ErrUnknownPeer,
			"xdpfab: user ID of address %#x, of receive context %d: want the address of the endpoint",
			uint32(a), a.context())
	}
	if err := av.ended(); err != nil {
		return err
	}
	if _, err := av.lookup(a); err != nil {
		return err
	}
	av.mu.Lock()
	defer av.mu.Unlock()
	e := &av.entries[a]
	e.userID, e.named = id, true
	av.latest = sourceName{}
	return nil
}

// sourceName is what completions call an endpoint. Messages mostly come from the endpoint
// from which the one before came.
type sourceName struct {
	from  wire.Addr
	name  Address
	known bool
}

// source returns what completions call an endpoint: its user ID, its address, or
// NoAddress.
func (av *AddressVector) source(from wire.Addr) Address {
	av.mu.Lock()
	defer av.mu.Unlock()
	if !av.latest.known || av.latest.from != from {
		av.latest = sourceName{from, av.nameOf(from), true}
	}
	return av.latest.name
}

// nameOf is source for an endpoint that is not the latest one. av.mu is held.
func (av *AddressVector) nameOf(from wire.Addr) Address {
	a, ok := av.index[from]
	if !ok {
		return NoAddress
	}
	if e := &av.entries[a]; e.named {
		return e.userID
	}
	return a
}
