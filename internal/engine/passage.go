// SPDX-License-Identifier: Apache-2.0

package engine

import "sync/atomic"

// parcel is a packet that was passed on.
type parcel struct {
	packet   []byte
	passedOn bool // by an engine that knows better: it goes no further
}

// passage is the ring by which one engine of a group passes packets to another one, or
// to itself. Each end has one thread. A parcel keeps its memory, so nothing is allocated
// once every place has been in use.
type passage struct {
	put   atomic.Uint64 // parcels that have been put in; written by the engine that passes
	_     [56]byte
	taken atomic.Uint64 // those that have been taken out; written by the other one
	_     [56]byte
	slots [passing]parcel
}

// send puts a copy of a packet in, if there is room.
func (x *passage) send(packet []byte, passedOn bool) bool {
	at := x.put.Load()
	if at-x.taken.Load() == passing {
		return false
	}
	p := &x.slots[at%passing]
	if cap(p.packet) < len(packet) {
		p.packet = make([]byte, max(len(packet), packetLen))
	}
	p.packet, p.passedOn = p.packet[:copy(p.packet[:cap(p.packet)], packet)], passedOn
	x.put.Store(at + 1)
	return true
}

// packetLen is room for the packets of most interfaces, bytes.
const packetLen = 2048

// crowded reports whether half of the places are in use. The thread is that of the engine
// that passes.
func (x *passage) crowded() bool { return x.put.Load()-x.taken.Load() >= passing/2 }

// take hands out the parcels that are there, and returns how many there were.
func (x *passage) take(f func(p *parcel)) int {
	from, to := x.taken.Load(), x.put.Load()
	for at := from; at != to; at++ {
		f(&x.slots[at%passing])
	}
	x.taken.Store(to)
	return int(to - from)
}
