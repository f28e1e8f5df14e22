// SPDX-License-Identifier: Apache-2.0

package share

import (
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// What a guest has in flight in a partition may become known later, as far as half of its
// tags and its arena go; when it has, the guest has all its tags again.
func TestKnownLater(t *testing.T) {
	const entries = 16
	for _, c := range []struct {
		name              string
		count, post, open int
		unread            bool // the guest reads nothing before everything is known
	}{
		{"words", 1, entries, entries / 2, false},
		{"unread", 1, entries, entries / 2, true},
		{"arrays", 200, 7, MinArena / 4 / (2 * 200 * 8), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			mem := w.region(1, 8*c.count)
			g := w.guest(Sizes{Entries: entries, Arena: MinArena, Arrivals: MinArrivals})
			operand := make([]byte, 8*c.count)
			for i := range c.count {
				operand[8*i] = 1
			}
			post := func() *outcome {
				o := &outcome{}
				s := g.Begin(g.ring)
				if s == nil {
					t.Fatal("no room")
				}
				s.Context, s.Result = o, make([]byte, 8*c.count)
				s.Entry = engine.Entry{Peer: g.peer.ID(), Key: 1, Verb: wire.VerbFetch, Opcode: uint8(atomic.Sum), Datatype: uint8(atomic.Uint64), Count: uint32(c.count)}
				s.SetOperands(operand, nil)
				g.Submit(g.ring)
				return o
			}
			until := func(what string, step time.Duration, cond func() bool) {
				t.Helper()
				for i := 0; !cond(); i++ {
					if w.step(); i > 100000 {
						t.Fatalf("still not: %s", what)
					}
					w.now += int64(step)
				}
			}
			first := post()
			until("a session", 0, func() bool { return first.n == 1 })
			w.cut = true
			var all []*outcome
			for range c.post {
				all = append(all, post())
			}
			if c.unread {
				until("taken", 0, func() bool { return g.hostRing.Counts.Taken == entries+1 })
				w.idle = true
				until("given up", 100*time.Millisecond, func() bool { return g.hostRing.open.n == c.open })
				w.cut = false
				until("known", 0, func() bool { return len(g.hostRing.open.known) == c.open })
				if n := g.hostRing.completed - g.hostRing.seen; n != entries {
					t.Errorf("%d completions in a ring of %d", n, entries)
				}
				w.idle = false
			}
			for i := range all {
				until("given up", 100*time.Millisecond, func() bool { return all[i].n == 1 })
			}
			w.cut = false
			open, ran := 0, uint8(1)
			for i, o := range all {
				if o.last.Outcome != engine.Unknown {
					t.Fatalf("operation %d: fate %d, want unknown", i, o.last.Outcome)
				}
				if o.later == nil {
					continue
				}
				open++
				until("known", 0, func() bool {
					select {
					case <-o.later.Done():
						return true
					default:
						return false
					}
				})
				r, data := o.later.Outcome()
				if r.Outcome == engine.Success {
					// Those before it that were not open may have run as well.
					if len(data) != 8*c.count || data[0] < ran || int(data[0]) > i+1 {
						t.Fatalf("operation %d: result %d of %d bytes, want %d to %d, of %d", i, data[0], len(data), ran, i+1, 8*c.count)
					}
					ran = data[0] + 1
				} else if r.Outcome != engine.NotExecuted {
					t.Errorf("operation %d: %+v, want an outcome that is known", i, r)
				}
			}
			if open != c.open {
				t.Errorf("%d operations were open, want %d", open, c.open)
			}
			if mem[0] < ran {
				t.Errorf("the word is %d, but %d operations ran for sure", mem[0], ran)
			}
			was := mem[0]
			for i := range entries {
				o := post()
				until("completed", 0, func() bool { return o.n == 1 })
				if o.last.Outcome != engine.Success || mem[0] != was+uint8(i)+1 {
					t.Fatalf("afterwards: %+v, word %d", o.last, mem[0])
				}
			}
			if n := len(g.hostRing.free); n != entries || g.hostRing.open.n != 0 || g.hostRing.open.bytes != 0 {
				t.Errorf("%d of %d operations are free at the host, %+v", n, entries, g.hostRing.open)
			}
		})
	}
}
