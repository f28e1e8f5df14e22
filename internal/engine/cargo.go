// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"iter"
	"slices"

	"github.com/xdpfab/xdpfab/internal/session"
)

// cargo is what a request frame carries, while it is under construction or in flight.
type cargo struct {
	frags     []fragment
	followers []Follower // those of the first fragment that has any, then those of the next, and so on
	// each is the length in bytes of every record's value, 0 or a multiple of 4, if each
	// fragment is a simple operation and all values have one length; otherwise it is
	// mixed.
	each int
	// messages means that the frame is one of messages; told is how many of them have
	// succeeded, and left frags, before the frame is answered.
	messages bool
	told     int
	quiets   []*quiet // flushes that wait for the frame
}

// mixed is the length of values that have different ones.
const mixed = -1

// Follower is a simple operation that follows another one of its kind, the leader, in the
// run of a frame. It has no flight of its own: what is not said here is as in the
// leader's. Nearly all operations that are posted one word at a time are followers.
// Anything but their success together makes flights of them first: see expand.
type Follower struct {
	Context any
	Result  *[8]byte // nil if there is no value
	Offset  uint64   // as in Entry
}

// ops returns the number of operations, if all are simple.
func (g *cargo) ops() int { return len(g.frags) + len(g.followers) }

// returns reports whether a record of the frame returns a value.
func (g *cargo) returns() bool {
	if g.each == 0 {
		return false
	}
	for i := range g.frags {
		if g.frags[i].resultLen() > 0 {
			return true
		}
	}
	return false
}

// expand gives each follower a flight and a fragment.
func (g *cargo) expand() {
	if len(g.followers) == 0 {
		return
	}
	at, n := g.ops(), len(g.frags)
	g.frags = slices.Grow(g.frags, at-n)[:at]
	for i := n - 1; i >= 0; i-- { // from the end on, so that each fragment moves to a place that is free
		s := g.frags[i]
		first := len(g.followers) - int(s.followers)
		for j := len(g.followers) - 1; j >= first; j-- {
			at--
			g.frags[at] = fragment{f: s.f.ring.promote(s.f, &g.followers[j]), count: 1, records: 1}
		}
		clear(g.followers[first:])
		g.followers, s.followers = g.followers[:first], 0
		at--
		g.frags[at] = s
	}
}

// expanded goes through the cargoes of the frames in flight. It detaches the followers of
// all of them before it yields the first one: otherwise a flight that is recycled
// meanwhile could become the flight of a follower.
func (c *conn) expanded() iter.Seq[*cargo] {
	return func(yield func(*cargo) bool) {
		for _, g := range c.frames {
			if g != nil {
				g.expand()
			}
		}
		for _, g := range c.frames {
			if g != nil && !yield(g) {
				return
			}
		}
	}
}

// promote gives a follower a flight.
func (r *Ring) promote(leader *flight, w *Follower) *flight {
	r.following--
	f := r.begin()
	f.Entry = leader.Entry
	f.Context, f.Result, f.Offset = w.Context, nil, w.Offset
	if w.Result != nil {
		f.Result = w.Result[:]
	}
	f.sent, f.pending = 1, 1
	return f
}

// cargoOf returns the cargo of a frame in flight.
func (c *conn) cargoOf(psn uint32) *cargo { return c.frames[psn%session.MaxWindow] }

// release removes the cargo of psn from the window. Its followers are still without
// flights: unless every operation of the frame has succeeded, the caller has to call
// expand first.
func (c *conn) release(psn uint32) *cargo {
	at := &c.frames[psn%session.MaxWindow]
	g := *at
	*at = nil
	return g
}

// load and discard recycle cargoes.
func (e *Engine) load() *cargo {
	if n := len(e.cargoes); n > 0 {
		g := e.cargoes[n-1]
		e.cargoes = e.cargoes[:n-1]
		return g
	}
	return &cargo{frags: make([]fragment, 0, 64)}
}

func (e *Engine) drop(g *cargo) {
	if len(g.quiets) > 0 {
		g.settleQuiets()
	}
	clear(g.frags)
	clear(g.followers)
	g.frags, g.followers = g.frags[:0], g.followers[:0]
	g.messages, g.told = false, 0
	e.cargoes = append(e.cargoes, g)
}
