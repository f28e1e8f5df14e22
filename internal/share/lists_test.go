// SPDX-License-Identifier: Apache-2.0

package share

import (
	"testing"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// A guest cannot have the engine copy one list of extents for each of many operations.
func TestListsFitTheArena(t *testing.T) {
	w := newWorld(t)
	g := w.guest(Sizes{Entries: 16, Arena: MinArena, Arrivals: MinArrivals})
	before := g.feed.Counts.Refused
	for i := range 2 {
		x := engine.Entry{Cookie: uint64(i), Peer: 1, Verb: wire.VerbAtomic, Opcode: uint8(atomic.Sum), Datatype: uint8(atomic.Uint64), Count: 8,
			Flags: engine.FlagOutside | engine.FlagExtents}
		*placesOf(&x) = places{ExtentCount: MinArena * 3 / 4 / extentLen}
		g.theirs.entries[i] = x
	}
	g.theirs.h.posted.Store(2)
	g.feed.Take(1 << 20)
	if n := g.feed.Counts.Refused - before; n != 1 {
		t.Errorf("%d of 2 operations were refused, want one: both lists together exceed the arena", n)
	}
	if most := uint64(MinArena); g.feed.listed > most {
		t.Errorf("copies of %d bytes, want at most %d", g.feed.listed, most)
	}
}
