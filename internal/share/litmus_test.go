// SPDX-License-Identifier: Apache-2.0

package share

import (
	"sync/atomic"
	"testing"

	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/testnet/lockstep"
)

// A guest posts while its host goes to sleep. Either the host sees the entry, and all
// that is in it, or the guest sees that the host sleeps, and wakes it.
func TestPostMeetsSleep(t *testing.T) {
	sizes := Sizes{Entries: MinEntries, Arena: MinArena, Arrivals: MinArrivals}
	guests, err := NewSegment(sizes)
	if err != nil {
		t.Fatal(err)
	}
	defer guests.Close()
	hosts, err := sizes.Map(guests.FD())
	if err != nil {
		t.Fatal(err)
	}
	defer hosts.Close()
	doorbell, other, err := NewDoorbells()
	if err != nil {
		t.Fatal(err)
	}
	defer doorbell.Close()
	defer other.Close()
	c := &GuestRing{segment: guests, doorbell: doorbell, alive: true}
	f := NewHostRing(hosts, other, nil, func(err error) { t.Error(err) })

	var stale atomic.Uint64
	seen := false
	missed := uint64(0)
	lockstep.Run(func() {
		c.note(engine.Entry{Verb: VerbForget, Key: c.posted + 1})
		c.Flush()
	}, func() {
		seen = f.Rest()
		if seen {
			if x := &f.segment.entries[f.taken&c.mask()]; x.Key != f.taken+1 {
				stale.Store(f.taken + 1)
			}
		}
	}, func(round uint64) {
		if !seen && hosts.h.hostSleeps.Load() != 0 { // who wakes the host lowers it
			missed = round
		}
		f.Rise()
		f.taken++
		hosts.h.taken.Store(f.taken)
	})
	if missed != 0 {
		t.Errorf("entry %d: the host slept, and the guest did not wake it", missed)
	}
	if n := stale.Load(); n != 0 {
		t.Errorf("entry %d was seen before it was written", n)
	}
}
