// SPDX-License-Identifier: Apache-2.0

package engine

import "github.com/xdpfab/xdpfab/internal/wire"

// Flights are the places of the operations that one or more rings can have in flight.
// They belong to the engine's thread.
type Flights struct {
	free      []*flight // not in use; the one used last is used next
	spare     int       // those that may still be made
	following int       // followers in flight; for each a free flight is kept back
	made      int
	afford    func(bytes int) bool
	afforded  int           // bytes
	lists     int           // how many more flights may keep a long list of extents
	batch     []*Submission // scratch
}

// maxFlights is the most entries of a ring; each takes some 700 bytes.
const maxFlights = 1 << 20

// FlightsAtOnce is how many flights are made at a time.
const FlightsAtOnce = 64

// FlightLen is the memory that a flight takes, bytes, with memory for a short list of
// extents, which it keeps between operations. ListLen is that of a long list, which at
// most MostLists flights keep.
const (
	FlightLen = 2 << 10
	ListLen   = 6 << 10
	MostLists = 4 * FlightsAtOnce
)

// NewFlights returns room for so many operations. All but the first ones are made when
// they are needed; before that afford, if it is not nil, is asked for so many bytes of
// memory. If it says no, operations wait until others are over. It is asked once more for
// a flight that has had a long list of extents. If it says no then, no other flight keeps
// one.
func NewFlights(size int, afford func(bytes int) bool) *Flights {
	x := newFlights(size)
	x.afford = afford
	x.make(min(size, FlightsAtOnce))
	return x
}

func newFlights(size int) *Flights {
	return &Flights{spare: size, lists: MostLists, batch: make([]*Submission, min(size, wire.MaxOps))}
}

// make makes so many of the spare flights.
func (x *Flights) make(n int) {
	all := make([]flight, n)
	for i := range all {
		x.free = append(x.free, &all[n-1-i])
	}
	x.spare -= n
	x.made += n
}

// room reports whether another operation can be taken.
func (x *Flights) room() bool { return len(x.free) > x.following || x.spare > 0 && x.grow() }

// grow makes some more flights, if that can be afforded.
func (x *Flights) grow() bool {
	n := min(x.spare, FlightsAtOnce)
	if !x.affords(n * FlightLen) {
		return false
	}
	x.make(n)
	return true
}

func (x *Flights) affords(bytes int) bool {
	if x.afford != nil && !x.afford(bytes) {
		return false
	}
	x.afforded += bytes
	return true
}

// keepList drops the memory for a long list of extents if the flight cannot keep it.
func (x *Flights) keepList(f *flight) {
	if f.long || f.own == nil || cap(*f.own) <= shortList {
		return
	}
	if f.long = x.lists > 0 && x.affords(ListLen); !f.long {
		f.own, x.lists = nil, 0
		return
	}
	x.lists--
}

// get takes a free flight. The caller knows that there is one.
func (x *Flights) get() *flight {
	f := x.free[len(x.free)-1]
	x.free = x.free[:len(x.free)-1]
	return f
}

// under is how many are in use.
func (x *Flights) under() int { return x.made - len(x.free) }

// Afforded is how many bytes afford has given. Engine's thread.
func (x *Flights) Afforded() int { return x.afforded }
