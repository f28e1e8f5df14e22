// SPDX-License-Identifier: Apache-2.0

package engine

import "github.com/xdpfab/xdpfab/internal/session"

// Feed is another process whose operations this engine takes to their targets. Its
// methods are called on the engine's thread, and must not block.
type Feed interface {
	// Take posts operations of the other process, by Begin and Submit, until they have
	// cost as much as the credit (see [Entry.Cost]) or no other one can be posted. The
	// last one may cost more than is left. It returns what they have cost.
	Take(credit int) (spent int)
	// Rest says that the engine is about to sleep: the other process has to wake it from
	// now on. It reports whether something waits to be taken already.
	Rest() bool
	// Rise says that the engine is awake.
	Rise()
}

// feeds are the processes that an engine serves. They take turns, by deficit round robin:
// in each round the credit of each grows by its quantum, it spends what it has, and what
// its last operation costs beyond that is a debt, during which it has no turn. So over
// some rounds each that always has something waiting spends as much as its weight says,
// whether its operations are long or short.
type feeds struct {
	all  []*feeder
	turn int // the feed that has the first choice in the next round
}

// feeder is one of these processes, and what it uses of the engine.
type feeder struct {
	Feed
	quantum  int // bytes, as Cost counts
	credit   int // likewise; a debt if it is negative
	buffers  *session.Share
	sessions int // in the table
}

// quantum is the credit of a round for a weight of 1: a whole frame of simple operations.
const quantum = 182 * simpleCost

// AddFeed makes the engine take the operations of another process, which has a share of
// the engine in proportion to its weight, 1 or more. Engine's thread only.
func (e *Engine) AddFeed(f Feed, weight int) {
	e.feeds.all = append(e.feeds.all, &feeder{Feed: f, quantum: weight * quantum, buffers: session.NewShare(e.reqs)})
}

// Charge says whose operations the origin is the source of, before it has peers: they may
// use no more buffers and sessions than a share that leaves room for others. Engine's
// thread only.
func (o *Origin) Charge(f Feed) {
	for _, x := range o.e.feeds.all {
		if x.Feed == f {
			o.payer, o.buffers = x, x.buffers
		}
	}
}

// RemoveFeed undoes AddFeed. Engine's thread only.
func (e *Engine) RemoveFeed(f Feed) {
	for i, x := range e.feeds.all {
		if x.Feed == f {
			e.feeds.all = append(e.feeds.all[:i:i], e.feeds.all[i+1:]...)
			return
		}
	}
}

// take takes operations from all feeds, a share from each, and returns their cost.
func (s *feeds) take() (spent int) {
	all := s.all
	if s.turn++; s.turn >= len(all) {
		s.turn = 0
	}
	debts := false
	for i := range all {
		at := s.turn + i
		if at >= len(all) {
			at -= len(all)
		}
		x := all[at]
		x.credit = min(x.credit+x.quantum, x.quantum) // credit is not saved up
		if x.credit <= 0 {
			debts = true
			continue
		}
		n := x.Take(x.credit)
		x.credit -= n
		spent += n
	}
	if debts && spent == 0 {
		s.skip()
	}
	return spent
}

// skip passes over the rounds in which nobody could take anything, for debts: the engine
// would be idle.
func (s *feeds) skip() {
	rounds := -1
	for _, x := range s.all {
		if n := -x.credit / x.quantum; x.credit <= 0 && (rounds < 0 || n < rounds) {
			rounds = n
		}
	}
	for _, x := range s.all {
		x.credit = min(x.credit+rounds*x.quantum, x.quantum)
	}
}

// rest says that the engine is about to sleep, and reports whether it must not.
func (s *feeds) rest() (waiting bool) {
	for _, f := range s.all {
		waiting = f.Rest() || waiting
	}
	return waiting
}

// rise says that the engine is awake.
func (s *feeds) rise() {
	for _, f := range s.all {
		f.Rise()
	}
}

// mayConnect reports whether the feed that an origin belongs to, if any, may have another
// session: as long as it has fewer than are left for all others.
func (o *Origin) mayConnect() bool {
	return o.payer == nil || o.payer.sessions < len(o.e.table.free)
}

// count counts a session of the origin in or out.
func (o *Origin) count(n int) {
	if o.payer != nil {
		o.payer.sessions += n
	}
}
