// SPDX-License-Identifier: Apache-2.0

//go:build linux

package share

import "github.com/xdpfab/xdpfab/internal/engine"

// An operation whose outcome is unknown, and may become known later, has two completions:
// the first, with engine.CompletedOpen, says so, and the second tells the outcome, or
// that it will never be known. In between the operation is open: it keeps its tag, and
// the guest keeps the place of its result, so what is open is bounded. The first
// completion takes the place in the ring that was promised when the entry was taken; the
// second one waits for room, since the guest may not have read the first.

// openings are a host ring's operations that are open.
type openings struct {
	n     int   // operations
	bytes int   // of the arena, that the guest keeps for their results
	known []*op // those whose second completion waits for room
}

// keeps reports whether an operation whose outcome may become known can stay open. Half
// of the tags, and half of the arena, are left to other operations: a block of the arena
// is less than twice as long as what it holds.
func (f *HostRing) keeps(o *op) bool {
	return f.open.n < len(f.ops)/2 && f.open.bytes+o.keeps() <= len(f.segment.arena)/4
}

// keeps is how many bytes of the arena the guest keeps for results that may still come.
func (o *op) keeps() int {
	switch {
	case o.stream != nil && o.stream.head.Verb.Returns() && o.stream.hi > o.stream.lo:
		return int(o.stream.hi - o.stream.lo)
	case o.result != nil:
		return o.held
	}
	return 0
}

// keep tells the guest that the outcome of an operation is unknown, and will tell it the
// outcome when it is known.
func (f *HostRing) keep(o *op, c *engine.Completion, later *engine.Later) {
	f.open.n++
	f.open.bytes += o.keeps()
	f.lists.bytes -= o.list
	o.list = 0
	f.waitEnds(o)
	first := *c
	first.Flags |= engine.CompletedOpen
	f.put(o, &first)
	f.timed(o)
	f.follow(o, later)
}

// follow has the outcome told when it is known. It may turn out that another one has to
// be waited for: that of what took the operation's place.
func (f *HostRing) follow(o *op, later *engine.Later) {
	later.Then(func() {
		r, data := later.Outcome()
		if r.Later != nil {
			f.follow(o, r.Later)
			return
		}
		o.outcome, o.data, o.more = r, data, true
		f.open.known = append(f.open.known, o)
		f.tell()
	})
}

// tells reports whether there is an outcome to tell, and room for it. The places of
// operations that are under way and not open are promised.
func (f *HostRing) tells() bool {
	if len(f.open.known) == 0 || f.broken {
		return false
	}
	n := uint64(len(f.ops))
	promised := n - uint64(len(f.free)) - uint64(f.open.n) + uint64(len(f.aside))
	return f.completed-f.seen+promised < n || f.look() && f.completed-f.seen+promised < n
}

// tell writes the outcomes that have become known to the ring until it is full.
func (f *HostRing) tell() {
	told := 0
	for ; f.tells(); told++ {
		o := f.open.known[0]
		f.open.known = f.open.known[1:]
		c := f.second(o)
		f.open.n--
		f.open.bytes -= o.keeps()
		if o.stream != nil {
			f.drop(o)
		}
		f.write(o, &c)
	}
	if told > 0 {
		f.Flush()
	}
}

// second returns the second completion of an operation, and puts the result where the
// guest has a place for it.
func (f *HostRing) second(o *op) engine.Completion {
	if o.ready != nil {
		return *o.ready
	}
	o.spread()
	c := engine.Completion{Outcome: o.outcome.Outcome, Status: o.outcome.Status, Reason: o.outcome.Reason,
		Length: uint64(len(o.data))}
	if o.result != nil {
		copy(o.result, o.data)
	} else {
		copy(c.Inline[:], o.data)
	}
	return c
}
