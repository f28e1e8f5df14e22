// SPDX-License-Identifier: Apache-2.0

package share

import (
	"testing"

	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// Of a guest's operations one at a time is timed, from its entry to its completion, and
// the engine has the times of all guests. What waits for somebody else is not timed.
func TestTiming(t *testing.T) {
	w := newWorld(t)
	w.region(1, 1<<16)
	a := &flooder{entry: word(), reads: true}
	b := &flooder{entry: array(64), reads: true}
	idle := &flooder{entry: engine.Entry{Peer: 1, Verb: engine.VerbWatch}}
	all := []*flooder{a, b, idle}
	for _, f := range all {
		f.guest = w.guest(Sizes{Entries: fairEntries, Arena: 1 << 20, Arrivals: MinArrivals})
	}
	const round, rounds = 1000, 400 // ns
	a.post()
	b.post()
	idle.guestRing.segment.entries[0] = idle.entry
	idle.guestRing.segment.h.posted.Store(1)
	for range rounds {
		a.post()
		b.post()
		w.host.Step()
		w.target.Step()
		w.now += round
	}
	var sum session.Latencies
	for _, f := range all[:2] {
		c := f.hostRing.Times
		if c.Timed == 0 || c.Timed > rounds || c.Took < c.Timed*round || c.Took > rounds*round {
			t.Errorf("timed %d of %d operations, which took %d ns in %d rounds of %d", c.Timed, f.hostRing.Counts.Completed, c.Took, rounds, round)
		}
		sum.Sum += c.Took
		sum.Buckets[0] += c.Timed
	}
	if c := idle.hostRing.Times; idle.hostRing.Counts.Taken != 1 || c.Timed != 0 || idle.hostRing.timing {
		t.Errorf("a watch was timed: %+v", c)
	}
	var counted uint64
	_, _, times := w.host.Latencies()
	for _, n := range times.Buckets {
		counted += n
	}
	if counted != sum.Buckets[0] || times.Sum != sum.Sum {
		t.Errorf("the engine has %d times of %d ns, the rings %d of %d", counted, times.Sum, sum.Buckets[0], sum.Sum)
	}
}

// An operation whose outcome stays unknown does not keep others from being timed.
func TestTimingOfOpen(t *testing.T) {
	w := newWorld(t)
	w.region(1, 1<<16)
	g := w.guest(Sizes{Entries: 64, Arena: 1 << 20, Arrivals: MinArrivals})
	f := &HostRing{ops: g.hostRing.ops, free: g.hostRing.free, segment: g.theirs, eng: w.host}
	o := f.toTime()
	f.segment.entries[0] = engine.Entry{Verb: wire.VerbFetch}
	f.use()
	o.peer, f.taken = &Target{Peer: w.peer}, 1
	f.time(o, 0)
	if !f.timing || f.toTime() != nil {
		t.Fatal("the operation is not timed")
	}
	w.now += 5000
	w.host.Step()
	f.timed(o) // as keep does
	if f.timing || f.toTime() == nil || f.Times.Timed != 1 || f.Times.Took != 5000 {
		t.Errorf("%+v", f.Times)
	}
	f.done(o)
	if f.Times.Timed != 1 {
		t.Errorf("counted again: %+v", f.Times)
	}
}
