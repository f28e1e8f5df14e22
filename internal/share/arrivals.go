// SPDX-License-Identifier: Apache-2.0

package share

import (
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"

	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// What peers send to a guest's endpoints, messages and events, goes through a third ring:
// of bytes, in records that the host writes and the guest reads. A message comes in
// parts, as it does from the network; the guest matches it with its receives. As long as
// the guest does not read, the ring is full, and senders wait as they do for an endpoint
// without room.

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
	_        [56]byte
}

// Kinds of records.
const (
	kindBegin    = 1 + iota // a message begins; the bytes are its first part
	kindPart                // the next part
	kindDrop                // there are no more parts
	kindEnd                 // the session has ended
	kindEvent               // an operation with data has been executed
	kindAnnounce            // a message wants to be matched before it comes
)

// Flags of records.
const (
	flagTagged   = 1 << iota // a tagged message
	flagData                 // it has data
	flagMatched              // it was announced, and has been admitted
	flagReturns              // of an event: see wire.Notice
	flagTransfer             // likewise
)

const recordLen = 128

// spanOf returns the bytes that a record with n bytes takes.
func spanOf(n int) uint64 { return uint64(recordLen+n+63) &^ 63 }

// Arrivals is the host's end of the ring. The threads of all engines of the host write.
type Arrivals struct {
	area *Area
	bell *Bell
	turn func(error) // tells that the guest has broken the rules

	mu       sync.Mutex
	written  uint64   // bytes since the beginning
	read     uint64   // by the guest, as far as it is known here
	reserved uint64   // for events
	sessions uint64   // numbers given out
	late     []record // without bytes, for which there was no room
	ended    bool
	refused  atomic.Bool        // something waits for room
	open     map[uint64]*inflow // by number
}

// NewArrivals returns the host's end. turnedOut is called when the guest has broken a
// rule, on the thread of any engine.
func NewArrivals(a *Area, bell *Bell, turnedOut func(error)) *Arrivals {
	return &Arrivals{area: a, bell: bell, turn: turnedOut, open: map[uint64]*inflow{}}
}

// Refused reports, once, whether something has waited for room since the last call.
func (a *Arrivals) Refused() bool { return a.refused.Load() && a.refused.Swap(false) }

// End says that the guest gets nothing any more, and has the area no longer.
func (a *Arrivals) End() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ended = true
}

// fits reports whether there is room for n bytes, beside what is reserved and what is
// late. If there is not, the guest is asked to tell when it has read. a.mu is held.
func (a *Arrivals) fits(n uint64) bool {
	if a.ended {
		return false
	}
	size := uint64(len(a.area.arrivals))
	n += uint64(len(a.late))*spanOf(0) + a.reserved
	if a.written-a.read+n <= size {
		return true
	}
	a.refused.Store(true)
	a.area.h.hostWaits.Store(1)
	read := a.area.h.read.Load()
	if a.written-read > a.written-a.read {
		a.ended = true
		a.turn(fmt.Errorf("arrivals: the guest has read %d bytes of %d, and %d before: want a position that only grows", read, a.written, a.read))
		return false
	}
	a.read = read
	return a.written-a.read+n <= size
}

// put writes a record, for which there is room. a.mu is held.
func (a *Arrivals) put(r *record, part []byte) {
	r.Bytes = uint32(len(part))
	a.copy(a.written, bytesOfRecord(r))
	a.copy(a.written+recordLen, part)
	a.written += spanOf(len(part))
}

// copy copies bytes to a position of the ring.
func (a *Arrivals) copy(at uint64, b []byte) {
	ring := a.area.arrivals
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
		a.put(&r, nil)
	}
	h := a.area.h
	if h.arrived.Load() == a.written {
		return
	}
	h.arrived.Store(a.written)
	if h.guestSleeps.Load() != 0 && h.guestSleeps.Swap(0) != 0 {
		a.bell.Ring()
	}
}

// inflow is the messages of one session. It implements session.Inflow.
type inflow struct {
	a         *Arrivals
	head      record // of this session
	has       uint64
	lacks     uint64
	message   record // that was admitted, whose first part follows
	begins    bool
	announced bool // a message that must be matched
	admitted  atomic.Bool
	told      bool // the guest has had a record of the session
}

// NewInflow returns the messages that come from an address to an endpoint of the guest.
func (a *Arrivals) NewInflow(endpoint uint16, from wire.Addr) session.Inflow {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sessions++
	in := &inflow{a: a, head: record{Endpoint: endpoint, Session: a.sessions}}
	in.head.from(from)
	a.open[a.sessions] = in
	return in
}

// Admitted says that the guest has found a receive for the message that was announced.
func (a *Arrivals) Admitted(number uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if in := a.open[number]; in != nil && in.announced {
		in.admitted.Store(true)
		a.refused.Store(true)
	}
}

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

func (in *inflow) InProgress() (has, lacks uint64) { return in.has, in.lacks }
func (in *inflow) Begin()                          { in.a.mu.Lock() }

func (in *inflow) End() {
	in.a.show()
	in.a.mu.Unlock()
}

// Admit implements session.Inflow. A message that must be matched is announced, and comes
// when the guest has found a receive for it.
func (in *inflow) Admit(m *wire.Message) bool {
	if m.Atomic.Form != 0 {
		return true // Combine refuses it
	}
	r := in.head
	r.Kind, r.Length, r.Tag, r.Data, r.Source = kindBegin, m.Length, m.Tag, m.Data, m.Source
	if m.Tagged {
		r.Flags |= flagTagged
	}
	if m.HasData {
		r.Flags |= flagData
	}
	if !in.a.fits(spanOf(len(m.Part))) {
		return false
	}
	if m.Match {
		if !in.announced {
			in.announced = true
			r.Kind = kindAnnounce
			in.told = true
			in.a.put(&r, nil)
			return false
		}
		if !in.admitted.Load() {
			return false
		}
		in.announced = false
		in.admitted.Store(false)
		r.Flags |= flagMatched
	}
	in.message, in.begins, in.has, in.lacks = r, true, 0, m.Length
	return true
}

// Fits implements session.Inflow.
func (in *inflow) Fits(n int) bool { return in.a.fits(spanOf(n)) }

// Put implements session.Inflow.
func (in *inflow) Put(part []byte) {
	part = part[:min(uint64(len(part)), in.lacks)]
	r := in.head
	if r.Kind = kindPart; in.begins {
		r, in.begins = in.message, false
	}
	in.has, in.lacks = in.has+uint64(len(part)), in.lacks-uint64(len(part))
	if in.lacks == 0 {
		in.has = 0
	}
	if !in.a.ended {
		in.told = true
		in.a.put(&r, part)
	}
}

// Combine implements session.Inflow: the host has no receives of the guest's.
func (in *inflow) Combine(*wire.Message, []byte) wire.Status { return wire.StatusUnsupported }

// Drop implements session.Inflow.
func (in *inflow) Drop() {
	if in.lacks > 0 {
		in.has, in.lacks = 0, 0
		in.note(kindDrop)
	}
}

// note writes a record without bytes, now or when there is room.
func (in *inflow) note(kind uint8) {
	r := in.head
	r.Kind = kind
	in.a.late = append(in.a.late, r)
}

// Close implements session.Inflow. The guest is told of the end only of a session that it
// knows of: otherwise peers that come and go would fill memory while it does not read.
func (in *inflow) Close() {
	in.a.mu.Lock()
	defer in.a.mu.Unlock()
	if in.a.open[in.head.Session] == in && in.told && !in.a.ended {
		in.note(kindEnd)
		in.a.show()
	}
	delete(in.a.open, in.head.Session)
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
	e.a.put(&r, nil)
	e.a.show()
}
