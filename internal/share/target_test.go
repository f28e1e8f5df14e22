// SPDX-License-Identifier: Apache-2.0

package share

import (
	"testing"

	"github.com/xdpfab/xdpfab/internal/engine"
)

// The end of an endpoint closes its peers, so many at a time, and nobody else's.
func TestCloseRingOfMany(t *testing.T) {
	w := newWorld(t)
	origin := w.host.NewOrigin(9)
	flights := engine.NewFlights(2, nil)
	var rings [3]*engine.Ring
	gone := map[uint32]bool{}
	s := newTargets()
	for i := range rings {
		rings[i] = engine.NewDirect(flights, engine.Contexts{})
		w.host.AddRing(rings[i], origin)
	}
	const peers = 10 // of each ring
	for n := range uint32(len(rings) * peers) {
		p, err := origin.NewPeer(link, 0, uint16(n))
		if err != nil {
			t.Fatal(err)
		}
		s.SetTarget(n, &Target{Ring: rings[n%3], Peer: p, Gone: func() { gone[n] = true }})
	}
	for _, n := range []uint32{0, 27, 12} { // the first, the last and one between them
		if s.close(s.target(n)); s.target(n) != nil || !gone[n] {
			t.Errorf("peer %d is not forgotten", n)
		}
	}
	for _, c := range []struct{ ring, most, left int }{{1, 4, 23}, {0, 100, 16}, {0, 100, 16}, {1, 6, 10}, {2, 0, 10}, {2, 10, 0}} {
		more := s.CloseRing(rings[c.ring], c.most)
		if left := s.Peers(); left != c.left || more != (s.first[rings[c.ring]] != nil) {
			t.Errorf("closing %d peers of ring %d: %d are left, more: %t; want %d", c.most, c.ring, left, more, c.left)
		}
		for n := range uint32(len(rings) * peers) {
			if (s.target(n) == nil) != gone[n] {
				t.Errorf("peer %d is there: %t, and gone: %t", n, s.target(n) != nil, gone[n])
			}
		}
	}
	if len(s.first) != 0 || len(gone) != len(rings)*peers {
		t.Errorf("%d rings are left, and %d peers gone", len(s.first), len(gone))
	}
}
