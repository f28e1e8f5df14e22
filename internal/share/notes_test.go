// SPDX-License-Identifier: Apache-2.0

package share

import (
	"testing"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// A note for which there was no room goes before what is posted later: by then its tag
// may be another operation's.
func TestNotesAreNotOvertaken(t *testing.T) {
	w := newWorld(t)
	g := w.guest(Sizes{Entries: MinEntries, Arena: MinArena, Arrivals: MinArrivals})
	c := g.guestRing
	s := &engine.Submission{Entry: engine.Entry{Verb: wire.VerbFetch, Opcode: uint8(atomic.Sum),
		Datatype: uint8(atomic.Uint64), Count: 1, Key: 1}}
	for tag := range uint32(MinEntries) {
		if !c.Post(tag, 1, s) {
			t.Fatalf("no room for entry %d", tag)
		}
	}
	c.Leave(3)
	c.Leave(4)
	if c.Post(5, 1, s) {
		t.Fatal("there is room in a full ring")
	}
	c.Flush()
	w.host.Step()
	if !c.Post(3, 1, s) {
		t.Fatal("no room")
	}
	for i, want := range []wire.Verb{VerbLeave, VerbLeave, wire.VerbFetch} {
		if got := c.segment.entries[i].Verb; got != want {
			t.Errorf("entry %d behind the first ones is %v, want %v", i, got, want)
		}
	}
	if posted := c.segment.h.posted.Load(); posted < MinEntries+2 || len(c.notes) > 0 {
		t.Errorf("%d entries are shown, and %d notes left: want at least %d, and none", posted, len(c.notes), MinEntries+2)
	}
}
