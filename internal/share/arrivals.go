// SPDX-License-Identifier: Apache-2.0

//go:build linux

package share

import (
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"

	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/matching"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// What peers send to a guest's endpoints, messages and events, goes through a third ring:
// of bytes, in records that the host writes and the guest reads. A message comes in
// parts, as it does from the network; the guest matches it with its receives. A message
// comes when the guest has room for it: see Credit. As long as the guest does not read,
// the ring is full, and senders wait as they do for an endpoint without room.

// record is what comes before the bytes of a part, and fills two cache lines.
type record struct {
	Kind     uint8
	Flags    uint8
	Endpoint uint16 // of the guest
	Bytes    uint32 // that follow
	Session  uint64 // which messages follow one another
	Length   uint64 // of the message, or of what the event is about
	Tag      uint64
	Data     uint64
	Source   uint16 // endpoint number of the sender
	_        [6]byte
	MAC      [6]byte // of the sender, if it has no IP
	HasIP    uint8
	_        [1]byte
	IP       [16]byte
	// Of a tagged atomic; the operand follows, and the compare operand behind it.
	Form, Op, Datatype uint8
	_                  [1]byte
	Count              uint32
	Offset             uint64
	Unused             matching.Room // of an announced message: the credit that is given back
	_                  [32]byte
}

// Kinds of records.
const (
	kindBegin    = 1 + iota // a message begins; the bytes are its first part
	kindPart                // the next part
	kindDrop                // there are no more parts
	kindEnd                 // the session has ended
	kindEvent               // an operation with data has been executed
	kindAnnounce            // a message wants to be admitted before it comes; perhaps again
	kindOperate             // operations for the guest to execute, and to answer: see operate.go
	kindRequest             // a request for a function of the guest: see callee.go
	kindRecall              // no function is to have the requests of a session that it does not have yet
)

// Flags of records.
const (
	flagTagged   = 1 << iota // a tagged message
	flagData                 // it has data
	flagMatched              // it was announced, and has been admitted
	flagReturns              // of an event: see wire.Notice
	flagTransfer             // likewise
	flagMatch                // of one that is announced: it must not be held
)

const recordLen = 128

// spanOf returns the bytes that a record with n bytes takes.
func spanOf(n int) uint64 { return uint64(recordLen+n+63) &^ 63 }

func (r *record) from(a wire.Addr) {
	r.MAC, r.Source = a.MAC, a.Endpoint
	if a.IP.IsValid() {
		r.HasIP, r.IP = 1, a.IP.As16()
	}
}

// addr is the address of the sender.
func (r *record) addr() wire.Addr {
	a := wire.Addr{MAC: r.MAC, Endpoint: r.Source}
	if r.HasIP != 0 {
		a.IP = netip.AddrFrom16(r.IP).Unmap()
	}
	return a
}

// Arrivals is the host's end of the ring. The threads of all engines of the host write.
type Arrivals struct {
	segment  *Segment
	doorbell *Doorbell
	turn     func(error) // tells that the guest has broken the rules

	mu       sync.Mutex
	written  uint64   // bytes since the beginning
	read     uint64   // by the guest, as far as it is known here
	reserved uint64   // for events
	sessions uint64   // numbers given out
	late     []record // without bytes, for which there was no room
	ended    bool
	refused  atomic.Bool        // something waits for room
	open     map[uint64]*inflow // by number
	callees  map[uint64]*callee // likewise
	away     int                // requests that the guest has

	attends map[uint64]*attendant // by number; likewise given out
	pairs   map[pairOf]*attended
	owed    int         // tickets that are not answered
	gone    atomic.Bool // the guest executes nothing from now on
	flat    []byte      // scratch
	rec     wire.Record // likewise
}

// NewArrivals returns the host's end. turnedOut is called when the guest has broken a
// rule, on the thread of any engine.
func NewArrivals(a *Segment, doorbell *Doorbell, turnedOut func(error)) *Arrivals {
	return &Arrivals{segment: a, doorbell: doorbell, turn: turnedOut, open: map[uint64]*inflow{},
		callees: map[uint64]*callee{}, attends: map[uint64]*attendant{}, pairs: map[pairOf]*attended{}}
}

// Refused reports, once, whether something has waited for room since the last call. If
// so, the guest sees what is late as far as there is room by now.
func (a *Arrivals) Refused() bool {
	if !a.refused.Load() || !a.refused.Swap(false) {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.ended {
		a.show()
	}
	return true
}

// End is called when the guest gets nothing from now on, and no longer has the segment.
func (a *Arrivals) End() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ended = true
	a.gone.Store(true)
}

// fits reports whether there is room for n bytes, after what is reserved and what is
// late. If there is not, fits asks the guest to say when it has read. a.mu is held.
func (a *Arrivals) fits(n uint64) bool {
	if a.ended {
		return false
	}
	size := uint64(len(a.segment.arrivals))
	n += uint64(len(a.late))*spanOf(0) + a.reserved
	if a.written-a.read+n <= size {
		return true
	}
	a.refused.Store(true)
	a.segment.h.hostWaits.Swap(1)
	read := a.segment.h.read.Load()
	if a.written-read > a.written-a.read {
		a.ended = true
		a.turn(fmt.Errorf("arrivals: the guest has read %d bytes of %d, and %d before: want a position that only grows",
			read, a.written, a.read))
		return false
	}
	a.read = read
	return a.written-a.read+n <= size
}

// put writes a record with the bytes that follow it, in two parts, for which there is
// room. a.mu is held.
func (a *Arrivals) put(r *record, part, more []byte) {
	n := len(part) + len(more)
	r.Bytes = uint32(n)
	a.copy(a.written, bytesOfRecord(r))
	a.copy(a.written+recordLen, part)
	a.copy(a.written+recordLen+uint64(len(part)), more)
	a.written += spanOf(n)
}

// copy copies bytes to a position of the ring.
func (a *Arrivals) copy(at uint64, b []byte) {
	ring := a.segment.arrivals
	n := copy(ring[at&uint64(len(ring)-1):], b)
	copy(ring, b[n:])
}

// show lets the guest see what has been written. a.mu is held.
func (a *Arrivals) show() {
	for len(a.late) > 0 {
		r := a.late[0]
		rest := a.late[1:]
		if a.late = rest; !a.fits(spanOf(0)) {
			a.late = append([]record{r}, rest...)
			break
		}
		a.put(&r, nil, nil)
	}
	h := a.segment.h
	if h.arrived.Load() == a.written {
		return
	}
	h.arrived.Swap(a.written)
	if h.guestSleeps.Load() != 0 && h.guestSleeps.Swap(0) != 0 {
		a.doorbell.Ring()
	}
}

// events is engine.Events for an endpoint of the guest.
type events struct {
	a        *Arrivals
	endpoint uint16
}

// Events returns what takes the events of an endpoint of the guest.
func (a *Arrivals) Events(endpoint uint16) engine.Events { return events{a, endpoint} }

func (e events) Take() bool {
	e.a.mu.Lock()
	defer e.a.mu.Unlock()
	if !e.a.fits(spanOf(0)) {
		return false
	}
	e.a.reserved += spanOf(0)
	return true
}

func (e events) Return() {
	e.a.mu.Lock()
	defer e.a.mu.Unlock()
	e.a.reserved -= spanOf(0)
}

func (e events) Deliver(x *engine.Event) {
	e.a.mu.Lock()
	defer e.a.mu.Unlock()
	e.a.reserved -= spanOf(0)
	if e.a.ended {
		return
	}
	r := record{Kind: kindEvent, Endpoint: e.endpoint, Length: x.Length, Data: x.Data}
	r.from(x.From)
	if x.Returns {
		r.Flags |= flagReturns
	}
	if x.Transfer {
		r.Flags |= flagTransfer
	}
	e.a.put(&r, nil, nil)
	e.a.show()
}
