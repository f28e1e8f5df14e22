// SPDX-License-Identifier: Apache-2.0

package xdpfab

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/xdpfab/xdpfab/internal/wire"
	"github.com/xdpfab/xdpfab/mr"
)

// RemoteRegion describes a region of a peer, as Peer.Lookup finds it in the peer's
// catalogue. The region itself, in the memory of the node that registered it, is an
// [mr.Region].
//
// A caller that has learnt a region's key by other means fills in the Key; also the Base
// if the region is addressed virtually, and the Incarnation if only this registration is
// meant. A Size of 0 means that the size is not known.
type RemoteRegion struct {
	Name   string // in the catalogue; empty for a region that is known by its key
	Key    uint64
	Size   uint64 // bytes
	Base   uint64 // Msg.Offset of the first byte: 0, or its virtual address
	Access mr.Access
	// Incarnation tells this registration from every other one, including later ones
	// under the same name or key, and those after a restart. A registration never has 0;
	// 0 means any registration that has the key.
	Incarnation uint32
}

// Lookup finds a region by the name under which it is published. It fails with
// ErrNoRegion when there is none.
func (p *Peer) Lookup(ctx context.Context, name string) (RemoteRegion, error) {
	if len(name) == 0 || len(name) > wire.MaxNameLen {
		return RemoteRegion{}, fmt.Errorf("xdpfab: region name of %d bytes: want 1..%d: %w", len(name), wire.MaxNameLen, ErrLength)
	}
	r, _, err := p.entry(ctx, call{verb: wire.VerbLookup, count: uint32(len(name)), operand: []byte(name)})
	return r, err
}

// Regions lists the peer's catalogue.
func (p *Peer) Regions(ctx context.Context) ([]RemoteRegion, error) {
	var list []RemoteRegion
	for total := uint32(1); uint32(len(list)) < total; {
		r, n, err := p.entry(ctx, call{verb: wire.VerbList, count: uint32(len(list))})
		if errors.Is(err, ErrNoRegion) {
			break // an empty catalogue, or one that shrank meanwhile
		}
		if err != nil {
			return nil, err
		}
		list, total = append(list, r), n
	}
	return list, nil
}

// Lookup finds a region of the peer at an address of the endpoint's address vector, as
// Peer.Lookup does, on the session that the endpoint's operations take. It waits first
// for room among the operations under way and in the completion queue, and then for the
// answer. It makes no completion, and no counter counts it.
func (ep *Endpoint) Lookup(ctx context.Context, dest Address, name string) (RemoteRegion, error) {
	p, err := ep.asPeer(dest)
	if err != nil {
		return RemoteRegion{}, err
	}
	for {
		r, err := p.Lookup(ctx, name)
		if !errors.Is(err, ErrAgain) {
			return r, err
		}
		select {
		case <-ctx.Done(): // the next attempt returns the error
		case <-time.After(drainPoll):
		}
	}
}

// asPeer returns an address of the address vector as a peer whose calls the endpoint
// itself posts. It must not be closed: the address vector holds the session.
func (ep *Endpoint) asPeer(a Address) (*Peer, error) {
	if !ep.ready() {
		return nil, ep.unready()
	}
	if _, err := ep.peer(a); err != nil {
		return nil, err
	}
	n := (*ep.peers.Load())[a].name
	if n == nil {
		return nil, fmt.Errorf("xdpfab: address %d was removed: %w", a, ErrUnknownPeer)
	}
	return &Peer{ep: ep, use: n, peer: n.peer, name: n.addr.String(), cookie: asked}, nil
}

// entry asks for one catalogue entry. It also returns the number of entries.
func (p *Peer) entry(ctx context.Context, c call) (RemoteRegion, uint32, error) {
	var (
		b [wire.EntryLen]byte
		e wire.Entry
	)
	c.result = b[:]
	if err := p.do(ctx, c); err != nil {
		return RemoteRegion{}, 0, err
	}
	if r := e.Parse(b[:]); r != wire.ReasonOK {
		return RemoteRegion{}, 0, fmt.Errorf("xdpfab: %s: catalogue entry: %v: %w", p.name, r, ErrProtocol)
	}
	return RemoteRegion{Name: e.NameString(), Key: e.Key, Size: e.Size, Base: e.Base, Access: mr.Access(e.Access),
		Incarnation: e.Incarnation}, e.Total, nil
}
