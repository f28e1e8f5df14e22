// SPDX-License-Identifier: Apache-2.0

package fi

import (
	"math"
	"sync/atomic"

	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// arrivals is the part of a completion queue for what peers do: the events of their
// operations (FI_REMOTE_CQ_DATA), and their messages. Peers may reach an endpoint through
// any engine, so that there are many writers, and one reader. An operation takes its
// place before it is executed, and a receive when it is posted, so that there is room
// when it is needed.
type arrivals struct {
	cells []arrival
	mask  uint64
	// events and receives are the places in use by operations and by receives: given
	// away, and not yet read. Each kind has as many as the queue has, so that receives
	// which are posted leave places for events.
	events, receives quota
	tail             atomic.Uint64 // tickets drawn; writers
	head             atomic.Uint64 // events read; the reader
}

// arrival is one completion, or room for one.
type arrival struct {
	seq  atomic.Uint64 // the ticket plus one, once the completion is written
	from wire.Addr     // the peer's endpoint
	done Completion    // without its Source
}

// newArrivals returns room for so many of either kind, a power of two.
func newArrivals(size int) *arrivals {
	a := &arrivals{cells: make([]arrival, 2*size), mask: uint64(2*size - 1)}
	a.events.size, a.receives.size = int64(size), int64(size)
	return a
}

// quota is the places of one kind.
type quota struct {
	size  int64
	taken atomic.Int64
}

// take takes a place. It fails only if there is none: a caller that hears so is told
// when there is one, which must not have happened before.
func (p *quota) take() bool {
	for {
		n := p.taken.Load()
		if n >= p.size {
			return false
		}
		if p.taken.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// free gives places back.
func (p *quota) free(n int64) {
	if n > 0 {
		p.taken.Add(-n)
	}
}

// put writes a completion, for which a place has been taken. So the cell has been read.
func (a *arrivals) put(from *wire.Addr, done *Completion) {
	ticket := a.tail.Add(1) - 1
	c := &a.cells[ticket&a.mask]
	c.from, c.done = *from, *done
	c.seq.Store(ticket + 1)
}

// shown returns how many completions, up to most, can be read. Any goroutine may ask.
func (a *arrivals) shown(most uint64) (n uint64) {
	if a == nil {
		return 0
	}
	head := a.head.Load()
	for n < most && a.cells[(head+n)&a.mask].seq.Load() == head+n+1 {
		n++
	}
	return n
}

// read moves completions without errors into c, and returns their number, or
// ErrErrorPending if the first one has an error.
func (a *arrivals) read(c []Completion) (int, error) {
	n, head, messages := a.shown(uint64(len(c))), a.head.Load(), int64(0)
	for i := range n {
		cell := &a.cells[(head+i)&a.mask]
		source := cell.source()
		if cell.done.Err != nil || cell.strange(source) {
			if i == 0 {
				return 0, ErrErrorPending
			}
			n = i
			break
		}
		cell.take(&c[i], source)
		if c[i].Flags&CompletionRecv != 0 {
			messages++
		}
	}
	if n > 0 {
		a.head.Store(head + n)
		a.events.free(int64(n) - messages)
		a.receives.free(messages)
	}
	return int(n), nil
}

// readErr takes the next completion, if it has an error.
func (a *arrivals) readErr() (c Completion, ok bool) {
	if a.shown(1) == 0 {
		return c, false
	}
	head := a.head.Load()
	cell := &a.cells[head&a.mask]
	source := cell.source()
	if cell.strange(source) && cell.done.Err == nil {
		cell.done.Err = &OpError{Op: "arrival", Peer: cell.from.String(), Cause: ErrUnknownPeer}
	}
	if cell.done.Err == nil {
		return c, false // its source has been inserted meanwhile
	}
	cell.take(&c, source)
	a.head.Store(head + 1)
	if c.Flags&CompletionRecv != 0 {
		a.receives.taken.Add(-1)
	} else {
		a.events.taken.Add(-1)
	}
	return c, true
}

// take moves the completion into c.
func (x *arrival) take(c *Completion, source Address) {
	*c = x.done
	c.Source = source
	x.done = Completion{}
}

// source looks up where the completion came from.
func (x *arrival) source() Address {
	if x.from != (wire.Addr{}) {
		if av := x.done.Endpoint.sources(); av != nil {
			return av.source(x.from)
		}
	}
	return NoAddress
}

// strange reports whether the source has to be known and is not (FI_SOURCE_ERR).
func (x *arrival) strange(source Address) bool {
	return source == NoAddress && x.from != (wire.Addr{}) && x.done.Endpoint.attr.SourceErr
}

// completion returns the entry for an event.
func (ep *endpoint) completion(e *engine.Event) Completion {
	c := Completion{
		Endpoint: &ep.handle, Flags: CompletionAtomic | CompletionRemoteCQData | CompletionRemoteWrite,
		Bytes: int(min(e.Length, math.MaxInt)), Data: e.Data,
	}
	if e.Transfer {
		c.Flags ^= CompletionAtomic | CompletionRMA
	}
	if e.Returns {
		c.Flags ^= CompletionRemoteWrite | CompletionRemoteRead
	}
	return c
}

// receiver is the endpoint as the engines know it that serve its peers. It implements
// engine.Events, on their threads.
type receiver endpoint

func (r *receiver) Take() bool { return r.recv.arrivals.Load().events.take() }

func (r *receiver) Return() { r.recv.arrivals.Load().events.taken.Add(-1) }

func (r *receiver) Deliver(e *engine.Event) {
	c := (*endpoint)(r).completion(e)
	r.recv.arrived(&e.From, &c)
}

// arrived shows a completion from a peer, for which a place has been taken. Any thread.
func (q *CompletionQueue) arrived(from *wire.Addr, c *Completion) {
	q.arrivals.Load().put(from, c)
	if q.sleepers.count.Load() == 0 {
		return
	}
	q.sleepers.raise(q)
	q.owner.Load().Eng.Alert() // a caller that waits may be asleep in the port of another engine
}

// learn enters an address into the index, unless an earlier one is the same. av.mu is
// held.
func (av *AddressVector) learn(a Address) {
	av.latest = sourceName{}
	key := av.entries[a].addr
	key.Lane = 0 // a matter of the way there
	if _, known := av.index[key]; !known {
		av.index[key] = a
	}
}

// unlearn takes an address that was removed out of the index; the next one that is
// the same takes its place. av.mu is held.
func (av *AddressVector) unlearn(a Address) {
	av.latest = sourceName{}
	key := av.entries[a].addr
	key.Lane = 0
	if !av.entries[a].known || av.index[key] != a {
		return
	}
	delete(av.index, key)
	for i := range av.entries {
		if e := &av.entries[i]; e.known && !e.removed && e.addr.MAC == key.MAC && e.addr.IP == key.IP &&
			e.addr.Endpoint == key.Endpoint {
			av.index[key] = Address(i)
			return
		}
	}
}
