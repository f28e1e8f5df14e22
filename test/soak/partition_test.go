// SPDX-License-Identifier: Apache-2.0

//go:build linux

package soak

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/internal/testnet/faultwire"
	"github.com/xdpfab/xdpfab/xdpfab"
)

// A partition shorter than the give-up time is nothing but a delay.
func TestShortPartitions(t *testing.T) {
	w := newWorld(t, setting{seed: 3, client: xdpfab.DomainAttr{GiveUp: lively}})
	rnd := rand.New(rand.NewPCG(3, 3))
	before := survived.count("completed ok")
	c := w.hire(plan{actors: 3, depth: 32, limit: 3000, seed: 3, pace: 100 * time.Microsecond}).start()
	for range 5 {
		partition(w, rnd, 80*time.Millisecond)
		time.Sleep(30 * time.Millisecond)
	}
	c.finish(true)
	posted := 0
	for _, a := range c.actors {
		posted += len(a.posts)
	}
	if n := survived.count("completed ok") - before; n != posted {
		t.Errorf("%d of %d operations succeeded", n, posted)
	}
}

// A partition longer than the give-up time leaves operations of unknown outcome; when it
// has healed, each outcome becomes known, and the sums are exact again: if requests were
// lost, none of those in flight ran, unless the kernel lost an answer, which the counts
// of packets show; if answers were lost, some did. A live peer answers within the
// give-up time on any machine, which makes it long, so the cases wait in parallel.
func TestResolveAfterPartition(t *testing.T) {
	for d, lost := range []string{"requests", "answers"} {
		for _, udp := range []bool{false, true} {
			t.Run(lost, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, setting{seed: 4, udp: udp, client: xdpfab.DomainAttr{GiveUp: 30 * time.Second}})
				c := w.hire(plan{actors: 3, depth: 100, limit: math.MaxInt, seed: 4, pace: 50 * time.Microsecond}).start()
				// Sessions are open when operations complete; then the partition begins.
				// However late that is, operations are in flight: the actors post until
				// they are told to stop.
				w.until(func(s *faultwire.Stats) bool { return s[faultwire.BtoA][faultwire.Received] > 50 })
				w.wire.Set(faultwire.Direction(d), faultwire.Faults{Cut: true})
				w.until(func(s *faultwire.Stats) bool { return s[d][faultwire.Cut] > 5 })
				c.halt()
				for _, a := range c.actors {
					a.drain() // gives up
				}
				missing, counts := w.missing()
				w.heal()
				survived.add("partitions", 1)
				c.finish(true)
				var n [numFates]int
				unresolved := 0
				for _, a := range c.actors {
					for _, p := range a.posts {
						n[p.fate]++
						if p.fate == unknown && !p.long() {
							unresolved++
						}
					}
				}
				// On a busy machine congestion control may leave one frame in flight, and
				// that may be of a long operation, whose outcome stays unknown.
				wrong := d == 0 && n[ran] != 0 && missing == 0
				if unresolved != 0 || n[[]fate{neverRan, ran}[d]]+n[unknown] == 0 || wrong {
					t.Errorf("unresolved %d, ran %d, never ran %d, long and unknown %d; %d packets of the server are missing: %s",
						unresolved, n[ran], n[neverRan], n[unknown], missing, counts)
				} else if d == 0 && n[ran] != 0 {
					t.Logf("%d operations ran, whose answers are among %d missing packets: %s", n[ran], missing, counts)
				}
			})
		}
	}
}

// missing returns how many packets of the server have not reached the client, and what
// each side and the wire have counted.
func (w *world) missing() (n uint64, counts string) {
	w.t.Helper()
	sent, err := w.server.Stats()
	must(w.t, err)
	received, err := w.client.Stats()
	must(w.t, err)
	return sent["packets_sent"] - received["packets_received"],
		fmt.Sprintf("the wire %v; the server %v; the client %v", w.wire.Stats(), sent, received)
}
