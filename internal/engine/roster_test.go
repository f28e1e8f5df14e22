// SPDX-License-Identifier: Apache-2.0

package engine

import "testing"

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
