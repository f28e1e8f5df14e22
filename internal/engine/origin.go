// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// Origin is an endpoint as the source of operations. Targets know it by its id, which is
// random and never used again, whatever addresses its frames come from, so they can tell
// which of its sessions is the latest. From one origin to one endpoint of another node
// there is one session at a time.
type Origin struct {
	e        *Engine
	id       uint64
	endpoint uint16       // its number on this node
	key      *session.Key // of the endpoint; nil for none
	roster   roster
	buffers  session.Lender // for requests in flight
	payer    *ringShare     // whose origin it is; nil for the engine's own process
	// unordered means that its sessions need no order; see session.Params.
	unordered bool
	cfg       *session.Config // of its sessions; set before it has peers
	// The rest belongs to the engine's thread.
	serial  uint32 // of the session begun last
	units   uint32 // given out to frames; see conn.unit
	remotes map[identity]*remote
	quiets  []*quiet // flushes that wait
}

// identity tells an endpoint from all others, however it is addressed.
type identity struct {
	life     uint64 // of what outlives its process, or, if nothing does, of the process
	endpoint uint16
}

// NewOrigin returns a new source of operations: the endpoint of that number on this node.
// Any goroutine may call it.
func (e *Engine) NewOrigin(endpoint uint16) *Origin {
	return &Origin{e: e, id: e.cfg.Random(), endpoint: endpoint, cfg: &e.cfg.Session, remotes: map[identity]*remote{},
		buffers: e.reqs}
}

// NewUnorderedOrigin returns a new source of operations of which only the fenced ones
// keep an order: a frame that is lost holds up nothing but its own operations. Any
// goroutine may call it.
func (e *Engine) NewUnorderedOrigin(endpoint uint16) *Origin {
	o := e.NewOrigin(endpoint)
	o.unordered = true
	return o
}

// Assume makes the origin that of a former process, before it has peers:
// targets then know that its sessions follow those. serial is a number that no session of
// the former process has reached.
func (o *Origin) Assume(id uint64, serial uint32) { o.id, o.serial = id, serial }

// SetGiveUp gives the sessions a give-up time of their own, before the origin has peers.
func (o *Origin) SetGiveUp(after time.Duration) {
	own := *o.cfg
	own.GiveUp = after
	o.cfg = &own
}

// Serial is the number of the session begun last. Engine's thread only.
func (o *Origin) Serial() uint32 { return o.serial }

// SetKey gives the endpoint an authorization key, before it has peers.
func (o *Origin) SetKey(key *session.Key) { o.key = key }

// NewPeer returns the peer at the end of link. Nothing is sent. Any goroutine may
// call it.
func (o *Origin) NewPeer(link wire.Link, lane uint8, endpoint uint16) (*Peer, error) {
	t, err := wire.NewTemplate(link)
	if err != nil {
		return nil, err
	}
	p := &Peer{origin: o, kind: link.Kind, link: link, path: o.e.pathOf(t), lane: lane}
	p.r = newRemote(o, identity{endpoint: endpoint}, p)
	if c := o.e.viaHost; c != nil {
		if err := c.number(p, endpoint); err != nil {
			return nil, err
		}
	}
	if err := o.roster.add(p); err != nil {
		return nil, err
	}
	return p, nil
}

// NewPeer is [Origin.NewPeer] for the engine's own origin.
func (e *Engine) NewPeer(link wire.Link, lane uint8, endpoint uint16) (*Peer, error) {
	return e.origin.NewPeer(link, lane, endpoint)
}

// Peer is a destination of operations: one endpoint of one node, by one of its addresses.
// Peers that turn out to be addresses of the same endpoint share its session. The fields
// that change belong to the engine's thread.
type Peer struct {
	id     PeerID
	closed bool // by Close: operations fail from then on
	// retired is set once entries no longer find it.
	retired bool
	r       *remote
	origin  *Origin
	kind    wire.Kind // the encapsulation of link and path; never changes
	link    wire.Link
	path    path
	lane    uint8
	life    atomic.Uint64  // of the process that answered last; written by the engine's thread
	atHost  hostPeer       // the host's number of the peer
	narrow  session.Narrow // what the session before has found out of the path
	asked   *remote        // asks the target at a new path for its identity; nil when nothing is asked
	silence atomic.Pointer[Silence]
}

// ID returns the id by which entries name the peer.
func (p *Peer) ID() PeerID { return p.id }

// Link returns the present way to the peer. Engine's thread only.
func (p *Peer) Link() wire.Link { return p.link }

// Life names the life of the target's process that answered last, 0 as long as none
// has. Any goroutine may call it.
func (p *Peer) Life() uint64 { return p.life.Load() }

// learn records which life has answered: nearly always the same, and an atomic store
// costs twenty times what a load does. Engine's thread only.
func (p *Peer) learn(life uint64) {
	if p.life.Load() != life {
		p.life.Store(life)
	}
}

// Close makes later operations fail, and completes those that wait; sinks are flushed
// when it returns. It ends the sessions to the endpoint, unless another peer is an
// address of the same endpoint: then everything in flight continues. Engine's thread
// only.
func (p *Peer) Close() {
	if p.closed {
		return
	}
	p.Retire()
	p.closed = true
	p.askNoMore()
	if c := p.origin.e.viaHost; c != nil {
		c.drop(p)
	} else {
		p.r.leave(p)
	}
	p.origin.e.say()
}

// Retire makes operations that are taken later fail, and leaves alone those that wait.
// Close is to follow. Engine's thread only.
func (p *Peer) Retire() {
	if !p.retired {
		p.retired = true
		p.origin.roster.remove(p)
	}
}

// SetLink changes the way to the peer, when its next hop or the address of this node has
// changed. The encapsulation must stay the same. Any goroutine may call it.
func (p *Peer) SetLink(link wire.Link) error {
	if link.Kind != p.kind {
		return fmt.Errorf("engine: a link of encapsulation %v for a peer that is reached by %v", link.Kind, p.kind)
	}
	t, err := wire.NewTemplate(link)
	if err != nil {
		return err
	}
	e := p.origin.e
	e.moves.leave(move{p, link, e.pathOf(t)})
	e.mail.Store(true)
	e.Wake()
	return nil
}
