// SPDX-License-Identifier: Apache-2.0

//go:build linux

package share

import "github.com/xdpfab/xdpfab/internal/engine"

// Target is a peer of one of the guest's endpoints.
type Target struct {
	Ring *engine.Ring
	Peer *engine.Peer
	As   Peer   // what the guest asked for
	Gone func() // is called, on the engine's thread, when the guest needs it no more

	number       uint32
	before, next *Target // of the same ring
}

// targets are a guest's peers, by number and by ring: a guest may have tens of thousands,
// and the end of an endpoint must not cost the engine a look at each. They belong to the
// engine's thread.
type targets struct {
	peers  map[uint32]*Target
	first  map[*engine.Ring]*Target
	last   *Target // the one looked up last, of that number; nil if it may be gone
	number uint32
}

func newTargets() targets {
	return targets{peers: map[uint32]*Target{}, first: map[*engine.Ring]*Target{}}
}

// SetTarget gives a peer its number. Engine's thread.
func (s *targets) SetTarget(number uint32, p *Target) {
	p.number, p.next = number, s.first[p.Ring]
	if p.next != nil {
		p.next.before = p
	}
	s.peers[number], s.first[p.Ring], s.last = p, p, nil
}

// target returns the peer of a number, or nil.
func (s *targets) target(number uint32) *Target {
	if s.last == nil || s.number != number {
		s.last, s.number = s.peers[number], number
	}
	return s.last
}

// Peers is how many peers the guest has. Engine's thread.
func (s *targets) Peers() int { return len(s.peers) }

// close closes a peer that the guest needs no more. Nil is allowed.
func (s *targets) close(p *Target) {
	if p == nil {
		return
	}
	switch {
	case p.before != nil:
		p.before.next = p.next
	case p.next != nil:
		s.first[p.Ring] = p.next
	default:
		delete(s.first, p.Ring)
	}
	if p.next != nil {
		p.next.before = p.before
	}
	p.before, p.next = nil, nil
	delete(s.peers, p.number)
	s.last = nil
	p.Peer.Close()
	p.Gone()
}

// CloseRing closes peers of one endpoint, at most so many, and reports whether there are
// more: others are served in between. Without them the endpoint's ring can be removed.
// Engine's thread.
func (s *targets) CloseRing(r *engine.Ring, most int) (more bool) {
	for ; s.first[r] != nil; most-- {
		if most == 0 {
			return true
		}
		s.close(s.first[r])
	}
	return false
}
