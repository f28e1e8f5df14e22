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
	batch     []*Submission // scratch
}

// maxFlights is the most entries of a ring; each takes some 700 bytes.
const maxFlights = 1 << 20

// FlightsAtOnce is how many flights are made at a time.
const FlightsAtOnce = 64

// FlightLen is the memory that a flight takes, with the extents that it keeps memory for
// between operations, bytes.
const FlightLen = 2 << 10

// NewFlights returns room for so many operations. All but the first ones are made when
// they are needed; before that afford, if it is not nil, is asked for so many bytes of
// memory. If it says no, operations wait until others are over.
func NewFlights(size int, afford func(bytes int) bool) *Flights {
	x := newFlights(size)
	x.afford = afford
	x.make(min(size, FlightsAtOnce))
	return x
}

func newFlights(size int) *Flights {
	return &Flights{spare: size, batch: make([]*Submission, min(size, wire.MaxOps))}
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
	if x.afford != nil && !x.afford(n*FlightLen) {
		return false
	}
	x.make(n)
	return true
}

// get takes a free flight. The caller knows that there is one.
func (x *Flights) get() *flight {
	f := x.free[len(x.free)-1]
	x.free = x.free[:len(x.free)-1]
	return f
}

// under is how many are in use.
func (x *Flights) under() int { return x.made - len(x.free) }

// Grown is how many were asked for. Engine's thread.
func (x *Flights) Grown() int { return max(0, x.made-FlightsAtOnce) }
