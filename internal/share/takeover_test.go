// SPDX-License-Identifier: Apache-2.0

package share

import (
	"testing"

	"github.com/xdpfab/xdpfab/internal/engine"
)

// A watch for which the engine has no room at present is none yet: it stays in the ring,
// and nothing of it moves to another host.
func TestWatchWithoutRoom(t *testing.T) {
	w := newWorld(t)
	g := w.guest(Sizes{Entries: 16, Arena: MinArena, Arrivals: MinArrivals})
	peer, err := w.host.NewPeer(link, 0, 9)
	if err != nil {
		t.Fatal(err)
	}
	none, err := engine.NewRing(16, g.hostRing) // which the engine does not have
	if err != nil {
		t.Fatal(err)
	}
	g.hostRing.SetTarget(77, &Target{Ring: none, Peer: peer, Gone: func() {}})
	if cost := g.hostRing.post(&engine.Entry{Verb: engine.VerbWatch, Peer: 77, Cookie: 5}); cost != 0 {
		t.Fatalf("it costs %d, want 0: there is no room", cost)
	}
	if !g.hostRing.Drained() {
		t.Error("an operation is under way that was not taken")
	}
	if s := g.hostRing.Export(); len(s.Watches) != 0 || s.Completed != 0 {
		t.Errorf("%d watches move, and %d completions: want none", len(s.Watches), s.Completed)
	}
}
