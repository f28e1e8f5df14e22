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
	before := g.hostRing.Counts.Refused
	for i := range 2 {
		x := engine.Entry{Cookie: uint64(i), Peer: 1, Verb: wire.VerbAtomic, Opcode: uint8(atomic.Sum), Datatype: uint8(atomic.Uint64), Count: 8,
			Flags: engine.FlagOutside | engine.FlagExtents}
		*placesOf(&x) = places{ExtentCount: MinArena * 3 / 4 / extentLen}
		g.theirs.entries[i] = x
	}
	g.theirs.h.posted.Store(2)
	g.hostRing.Take(1 << 20)
	if n := g.hostRing.Counts.Refused - before; n != 1 {
		t.Errorf("%d of 2 operations were refused, want one: both lists together exceed the arena", n)
	}
	if most := uint64(MinArena); g.hostRing.lists.bytes > most {
		t.Errorf("copies of %d bytes, want at most %d", g.hostRing.lists.bytes, most)
	}
}

// What the copies take is asked for, once for as many at a time, and refused if it may
// not be had.
func TestListsAreAfforded(t *testing.T) {
	w := newWorld(t)
	g := w.guest(Sizes{Entries: 16, Arena: 4 * listStep, Arrivals: MinArrivals})
	left, asked := 2*listStep, 0
	g.hostRing.OnLists(func(bytes int) bool {
		asked++
		if bytes > left {
			return false
		}
		left -= bytes
		return true
	})
	for _, c := range []struct {
		more  uint64 // beside what is there
		may   bool
		asked int
		given int
	}{{100, true, 1, listStep}, {listStep, true, 1, listStep}, {listStep + 1, true, 2, 2 * listStep}, {2*listStep + 1, false, 3, 2 * listStep}} {
		if may := g.hostRing.mayList(c.more); may != c.may || asked != c.asked || g.hostRing.ListLen() != c.given {
			t.Errorf("%d bytes: %t after %d questions, %d given; want %+v", c.more, may, asked, g.hostRing.ListLen(), c)
		}
	}
}
