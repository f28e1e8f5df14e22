// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"iter"
	"sync"
	"sync/atomic"
)

// PeerID names a peer in entries. It is an index into the table of its origin, together
// with the number of times that the index was given out before, so that an entry that
// names a closed peer does not reach another one. No peer has id 0.
type PeerID uint32

// maxPeers is the most peers of one origin.
const maxPeers = 1 << 20

func (id PeerID) index() int { return int(id % maxPeers) }

// roster is the table of an origin's peers. Places are given out again in the order in
// which they came free, so that it takes long until an id comes back.
type roster struct {
	places atomic.Pointer[[]*place] // only grows; stored under mu

	mu   sync.Mutex
	free []int // indexes
}

type place struct {
	peer atomic.Pointer[Peer]
	next PeerID // of the next peer here; under mu
}

var errManyPeers = errors.New("engine: 1048576 peers of one endpoint are open: close some")

// add gives a peer its id. Any goroutine may call it.
func (t *roster) add(p *Peer) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	var places []*place
	if old := t.places.Load(); old != nil {
		places = *old
	}
	var at *place
	switch {
	case len(t.free) > len(places)/2: // not sooner, so that it takes long until an id comes back
		at, t.free = places[t.free[0]], t.free[1:]
	case len(places) == maxPeers && len(t.free) > 0:
		at, t.free = places[t.free[0]], t.free[1:]
	case len(places) == maxPeers:
		return errManyPeers
	default:
		at = &place{next: PeerID(maxPeers + len(places))}
		places = append(places, at)
		t.places.Store(&places)
	}
	p.id = at.next
	if at.next += maxPeers; at.next == 0 { // after 4095 peers, at index 0
		at.next = maxPeers
	}
	at.peer.Store(p)
	return nil
}

// remove takes the peer out: find no longer returns it.
func (t *roster) remove(p *Peer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	(*t.places.Load())[p.id.index()].peer.Store(nil)
	t.free = append(t.free, p.id.index())
}

// all goes through the peers.
func (t *roster) all() iter.Seq[*Peer] {
	return func(yield func(*Peer) bool) {
		places := t.places.Load()
		if places == nil {
			return
		}
		for _, x := range *places {
			if p := x.peer.Load(); p != nil && !yield(p) {
				return
			}
		}
	}
}

// find returns the peer of that id, or nil.
func (t *roster) find(id PeerID) *Peer {
	places := t.places.Load()
	if places == nil || id.index() >= len(*places) {
		return nil
	}
	if p := (*places)[id.index()].peer.Load(); p != nil && p.id == id {
		return p
	}
	return nil
}
