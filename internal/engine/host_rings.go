// SPDX-License-Identifier: Apache-2.0

package engine

import "github.com/xdpfab/xdpfab/internal/session"

// HostRing is another process whose operations this engine takes to their targets. Its
// methods are called on the engine's thread, and must not block.
type HostRing interface {
	// Take posts operations of the other process, by Begin and Submit, until they have
	// cost as much as the credit (see [Entry.Cost]) or no other one can be posted. The
	// last one may cost more than is left. It returns what they have cost.
	Take(credit int) (spent int)
	// Rest is called when the engine is about to sleep: the other process has to wake it
	// from now on. It reports whether something waits to be taken already.
	Rest() bool
	// Rise is called when the engine is awake.
	Rise()
}

// hostRings are the processes that an engine serves. They take turns, by deficit round
// robin: in each round the credit of each grows by its quantum, it spends what it has,
// and what its last operation costs beyond that is a debt, during which it has no turn.
// So over some rounds each that always has something waiting spends as much as its weight
// says, whether its operations are long or short.
type hostRings struct {
	all  []*ringShare
	turn int // the ring that has the first choice in the next round
}

// ringShare is one of these processes, and what it uses of the engine.
type ringShare struct {
	HostRing
	quantum  int // bytes, as Cost counts
	credit   int // likewise; a debt if it is negative
	buffers  *session.Share
	sessions int // in the table
}

// quantum is the credit of a round for a weight of 1: a whole frame of simple operations.
const quantum = 182 * simpleCost

// AddHostRing makes the engine take the operations of another process, which has a share
// of the engine in proportion to its weight, 1 or more. Engine's thread only.
func (e *Engine) AddHostRing(f HostRing, weight int) {
	e.guests.all = append(e.guests.all,
		&ringShare{HostRing: f, quantum: weight * quantum, buffers: session.NewShare(e.reqs)})
}

// Charge says whose operations the origin is the source of, before it has peers: they may
// use no more buffers and sessions than a share that leaves room for others. Engine's
// thread only.
func (o *Origin) Charge(f HostRing) {
	for _, x := range o.e.guests.all {
		if x.HostRing == f {
			o.payer, o.buffers = x, x.buffers
		}
	}
}

// RemoveHostRing undoes AddHostRing. Engine's thread only.
func (e *Engine) RemoveHostRing(f HostRing) {
	for i, x := range e.guests.all {
		if x.HostRing == f {
			e.guests.all = append(e.guests.all[:i:i], e.guests.all[i+1:]...)
			return
		}
	}
}

// take takes operations from all rings, a share from each, and returns their cost.
func (s *hostRings) take() (spent int) {
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

// skip passes over the rounds in which debts would keep all from taking: the engine
// would be idle.
func (s *hostRings) skip() {
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

// rest tells the host rings that the engine is about to sleep, and reports whether it
// must not.
func (s *hostRings) rest() (waiting bool) {
	for _, f := range s.all {
		waiting = f.Rest() || waiting
	}
	return waiting
}

// rise tells the host rings that the engine is awake.
func (s *hostRings) rise() {
	for _, f := range s.all {
		f.Rise()
	}
}

// mayConnect reports whether the host ring that an origin belongs to, if any, may have
// another session: as long as it has fewer than are left for all others.
func (o *Origin) mayConnect() bool {
	return o.payer == nil || o.payer.sessions < o.e.table.left()
}

// count counts a session of the origin in or out.
func (o *Origin) count(n int) {
	if o.payer != nil {
		o.payer.sessions += n
	}
}
