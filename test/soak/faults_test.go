// SPDX-License-Identifier: Apache-2.0

//go:build linux

package soak

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/internal/testnet/faultwire"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// kinds are the faults one at a time, each as bad as a network may get.
var kinds = []struct {
	name   string
	event  faultwire.Event
	faults faultwire.Faults
}{
	{"none", faultwire.Forwarded, faultwire.Faults{}},
	{"loss", faultwire.Lost, faultwire.Faults{Loss: 0.15}},
	{"duplicate", faultwire.Duplicated, faultwire.Faults{Duplicate: 0.3}},
	{"reorder", faultwire.Reordered, faultwire.Faults{Reorder: 0.3, ReorderBy: 3 * time.Millisecond}},
	{"corrupt", faultwire.Corrupted, faultwire.Faults{Corrupt: 0.15}},
	{"truncate", faultwire.Truncated, faultwire.Faults{Truncate: 0.15}},
	{"replay", faultwire.Replayed, faultwire.Faults{Replay: 0.5}},
	{"jitter", faultwire.Delayed, faultwire.Faults{Delay: 2 * time.Millisecond, Jitter: 5 * time.Millisecond}},
	{"late", faultwire.Delayed, faultwire.Faults{Delay: 40 * time.Millisecond}},
	{"clog", faultwire.Clogged, faultwire.Faults{Clog: 0.02, ClogTime: 30 * time.Millisecond}},
}

// everything is all kinds at once.
var everything = faultwire.Faults{
	Loss: 0.05, Duplicate: 0.1, Reorder: 0.2, Corrupt: 0.05, Truncate: 0.03, Replay: 0.1,
	Clog: 0.005, Jitter: time.Millisecond,
}

// mixed draws a random set of faults; half of them are off.
func mixed(rnd *rand.Rand) faultwire.Faults {
	p := func(most float64) float64 { return max(0, 2*rnd.Float64()-1) * most }
	d := func(most time.Duration) time.Duration { return time.Duration(p(float64(most))) }
	return faultwire.Faults{
		Loss: p(0.25), Duplicate: p(0.4), Reorder: p(0.5), Corrupt: p(0.2), Truncate: p(0.2), Replay: p(0.4),
		Clog: p(0.02), Delay: d(10 * time.Millisecond), Jitter: d(10 * time.Millisecond), ReorderBy: d(20 * time.Millisecond),
	}
}

// partition cuts the wire one way or both for a while, and heals it.
func partition(w *world, rnd *rand.Rand, while time.Duration) {
	cut := faultwire.Faults{Cut: true}
	switch rnd.IntN(3) {
	case 0:
		w.wire.Set(faultwire.AtoB, cut)
	case 1:
		w.wire.Set(faultwire.BtoA, cut)
	default:
		w.wire.SetBoth(cut)
	}
	time.Sleep(while)
	w.heal()
	survived.add("partitions", 1)
}

// Each kind of fault alone, over either encapsulation, with several endpoints.
// The give-up time is long: every operation must succeed and every sum be exact.
func TestEachFault(t *testing.T) {
	for i, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			w := newWorld(t, setting{seed: uint64(i), udp: i%2 == 1, client: xdpfab.DomainAttr{GiveUp: lively}})
			w.wire.SetBoth(k.faults)
			before := survived.count("completed ok")
			c := w.hire(plan{actors: 3, depth: 64, limit: 300, seed: uint64(i)}).start()
			c.finish(false)
			if n := survived.count("completed ok") - before; n != 3*301 {
				t.Errorf("%d of %d operations succeeded", n, 3*301)
			}
			if s := w.wire.Stats(); s.Total(k.event) == 0 {
				t.Errorf("no frame was %v: %v", k.event, s)
			}
		})
	}
}

// All faults at once, both encapsulations, both kinds of progress, a window of
// one frame and of 64, and every core busy with something else.
func TestEverythingAtOnce(t *testing.T) {
	cases := []struct {
		udp    bool
		window int
		manual fi.ProgressMode
		hogs   int
	}{{false, 0, fi.ProgressAuto, 0}, {true, 1, fi.ProgressManual, 0}, {true, 2, fi.ProgressAuto, 2}}
	for i, c := range cases {
		t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) {
			attr := xdpfab.DomainAttr{GiveUp: lively, Window: c.window}
			client := attr
			client.Progress = c.manual
			w := newWorld(t, setting{seed: uint64(i), udp: c.udp, client: client, server: attr})
			defer hogs(t, c.hogs)()
			w.wire.SetBoth(everything)
			crew := w.hire(plan{actors: 4, depth: 32, limit: 300, seed: uint64(i)}).start()
			crew.finish(false)
		})
	}
}

// More frames at once than the server's ring holds: it overflows, and nothing
// worse happens. The clients post more than their queues hold as well.
func TestRingsOverflow(t *testing.T) {
	w := newWorld(t, setting{seed: 9, process: true, client: xdpfab.DomainAttr{GiveUp: lively}})
	w.wire.SetBoth(faultwire.Faults{Replay: 0.02, Storm: 300})
	c := w.hire(plan{actors: 8, depth: 1024, limit: 30000, seed: 9, size: 256, pace: 50 * time.Microsecond}).start()
	w.until(func(s *faultwire.Stats) bool { return s[faultwire.BtoA][faultwire.Received] > 200 })
	// The ring of a stopped process is not emptied.
	w.wire.Set(faultwire.AtoB, faultwire.Faults{Replay: 1, Storm: 1024})
	w.daemon.during(t, func() {
		before := w.wire.Stats()
		w.until(func(s *faultwire.Stats) bool {
			return s[faultwire.AtoB][faultwire.Replayed]-before[faultwire.AtoB][faultwire.Replayed] > 4*1024
		})
	})
	w.heal()
	c.finish(true)
	s, err := w.daemon.status(t)
	must(t, err)
	if s.Counters["xsk_rx_ring_full"]+s.Counters["xsk_rx_dropped"] == 0 {
		t.Errorf("nothing overflowed: %v", s.Counters)
	}
}
