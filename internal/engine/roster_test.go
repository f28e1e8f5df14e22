// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"testing"

	"github.com/xdpfab/xdpfab/internal/session"
)

// A peer is found by its id until it is removed; then the id means nothing, also when
// another peer has the place.
func TestRosterFinds(t *testing.T) {
	var r roster
	if p := r.find(0); p != nil {
		t.Errorf("an empty roster has a peer %#x of id 0", p.id)
	}
	first := &Peer{}
	if err := r.add(first); err != nil || first.id == 0 || r.find(first.id) != first {
		t.Fatalf("id %#x, error %v: the first peer is not found", first.id, err)
	}
	for _, id := range []PeerID{0, first.id + 1, first.id + maxPeers, first.id % maxPeers, ^PeerID(0)} {
		if p := r.find(id); p != nil {
			t.Errorf("id %#x is nobody's, and finds the peer %#x", id, p.id)
		}
	}
	former := first.id
	r.remove(first)
	for range 100 {
		p := &Peer{}
		if err := r.add(p); err != nil {
			t.Fatal(err)
		}
		if p.id == former || r.find(former) != nil {
			t.Fatalf("the id %#x of a closed peer finds another one", former)
		}
		if r.find(p.id) != p {
			t.Fatalf("peer %#x is not found", p.id)
		}
		r.remove(p)
	}
}

// An id does not come back soon, however few peers there are, and places are used again,
// however often peers come and go.
func TestRosterIDsLast(t *testing.T) {
	var r roster
	held := make([]*Peer, 10)
	for i := range held {
		held[i] = &Peer{}
		_ = r.add(held[i])
	}
	const rounds = 20000
	seen := map[PeerID]bool{}
	for i := range rounds {
		p := &held[i%len(held)]
		r.remove(*p)
		*p = &Peer{}
		if err := r.add(*p); err != nil {
			t.Fatal(err)
		}
		if seen[(*p).id] {
			t.Fatalf("id %#x came back after at most %d others", (*p).id, i)
		}
		seen[(*p).id] = true
	}
	if n := len(*r.places.Load()); n > 4*len(held) {
		t.Errorf("%d places for %d peers after %d came and went", n, len(held), rounds)
	}
}

// An operation that was published by the id of a peer fails when that is closed
// before the engine has seen it, and does not reach the peer that gets its place.
func TestEntryOfClosedPeer(t *testing.T) {
	for _, direct := range []bool{false, true} {
		c := newCable(t, session.Config{})
		p, q := c.peer(ethernet()), c.peer(ethernet())
		c.write(p, 9, 1)
		p.Close()
		q.Close()
		// More than half of the places are free, so the next peers get them.
		heirs := []*Peer{c.peer(ethernet()), c.peer(ethernet())}
		r := c.submit(p, direct, func(*Submission) {})
		if got := c.done(r); got != closedHere {
			t.Errorf("directly: %t: %+v, want %+v", direct, got, closedHere)
		}
		if c.word(0) != 0 {
			t.Errorf("directly: %t: it ran", direct)
		}
		for _, heir := range heirs {
			if heir.ID()%maxPeers == p.ID()%maxPeers {
				c.write(heir, 9, 2)
				heirs = nil
			}
		}
		if heirs != nil {
			t.Fatal("nobody got the place")
		}
	}
}

// However many peers come and go, none has id 0, and none is found by the id of the one
// before it.
func TestRosterIDs(t *testing.T) {
	var r roster
	var former PeerID
	for i := range 3 * (1 << 32 / maxPeers) {
		p := &Peer{}
		if err := r.add(p); err != nil {
			t.Fatal(err)
		}
		if p.id == 0 || p.id == former || r.find(p.id) != p || r.find(former) != nil || r.find(0) != nil {
			t.Fatalf("peer %d has id %#x after %#x, which finds %p; that of the former finds %p", i, p.id, former, r.find(p.id), r.find(former))
		}
		r.remove(p)
		former = p.id
	}
}
