// SPDX-License-Identifier: Apache-2.0

//go:build linux

package share

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/wire"
	"github.com/xdpfab/xdpfab/mr"
)

// Magic and Version begin the segment.
const (
	Magic   = 0x66706478 // "xdpf"
	Version = 3
)

// header is the first page of the segment. Each position counts entries since the
// beginning, and has a cache line of its own, since its reader and its writer spin on it.
//
// A side that moves a position and then looks whether the other one sleeps moves it by
// Swap, and so does a side that says that it sleeps and then looks once more. Store would
// do by the memory model, but in memory that is not Go's the race detector makes a plain
// store of it, which the CPU may delay beyond the load: neither side would see the other.
type header struct {
	magic, version, entries, _ uint32
	arena                      uint64
	_                          [40]byte
	posted                     atomic.Uint64 // submission ring: entries that are filled in; written by the guest
	_                          [56]byte
	taken                      atomic.Uint64 // those that the host has copied; written by the host
	_                          [56]byte
	completed                  atomic.Uint64 // completion ring: entries that are filled in; written by the host
	_                          [56]byte
	seen                       atomic.Uint64 // those that the guest has copied; written by the guest
	_                          [56]byte
	// the host has to be woken after a post; set by the host, cleared by the guest that
	// wakes it
	hostSleeps atomic.Uint32
	_          [60]byte
	// the guest has to be woken after a completion; set by the guest, cleared by the
	// host that wakes it
	guestSleeps atomic.Uint32
	_           [60]byte
	arrived     atomic.Uint64 // bytes written to the ring of arrivals; written by the host
	_           [56]byte
	read        atomic.Uint64 // bytes that the guest has copied; written by the guest
	_           [56]byte
	// the host has to be woken when the guest has read; set by the host, cleared by the
	// guest
	hostWaits atomic.Uint32
	_         [60]byte
}

// Segment is shared memory as one side has mapped it.
type Segment struct {
	mem      *mr.Memory
	h        *header
	entries  []engine.Entry
	done     []engine.Completion
	arena    []byte
	arrivals []byte
}

// NewSegment makes and seals a segment; its FD is for the other side.
func NewSegment(s Sizes) (*Segment, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	m, err := mr.Memfd("xdpfab rings", s.Len())
	if err != nil {
		return nil, err
	}
	a := &Segment{mem: m}
	a.h, a.entries, a.done, a.arena, a.arrivals = parts(m.Bytes(), s)
	a.h.magic, a.h.version, a.h.entries, a.h.arena = Magic, Version, uint32(s.Entries), uint64(s.Arena)
	return a, nil
}

// FD is the memfd, which stays the segment's.
func (a *Segment) FD() int { return a.mem.FD() }

// Map maps a segment that a guest has made. It refuses memory that the guest could take
// away.
func (s Sizes) Map(fd int) (*Segment, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	m, err := mr.Shared(fd, s.Len()+page)
	if err != nil {
		return nil, err
	}
	if len(m.Bytes()) < s.Len() {
		return nil, errors.Join(fmt.Errorf("shared memory of %d bytes: want %d for rings and arena", len(m.Bytes()),
			s.Len()), m.Close())
	}
	a := &Segment{mem: m}
	a.h, a.entries, a.done, a.arena, a.arrivals = parts(m.Bytes(), s)
	return a, nil
}

// Close unmaps the segment.
func (a *Segment) Close() error {
	mem := a.mem
	*a = Segment{}
	return mem.Close()
}

// Local verbs of the submission ring, in addition to engine.VerbConnect,
// engine.VerbWatch and engine.VerbFlush.
const (
	VerbForget = wire.VerbLocal + 2 // the guest needs the peer no more; has no completion
	VerbLeave  = wire.VerbLocal + 3 // ends the watch whose Cookie is in Key; has no completion
	// the next part of the operation whose Cookie is in Key: Count elements, which lie
	// where places says; its completion says that they have been taken
	VerbFeed  = wire.VerbLocal + 5
	VerbSever = wire.VerbLocal + 6 // no other part of the operation whose Cookie is in Key comes; has no completion
	// the message that the session in Key has announced may come, or there is more
	// credit: see Admission; likewise
	VerbAdmit = wire.VerbLocal + 4
	// answers the ticket in Cookie of the session in Key with Count bytes; likewise
	VerbAnswer = wire.VerbLocal + 7
	// replies to the request of the psn in Cookie of the session in Key, with Count bytes
	// of a reply of Offset bytes, whose kind is in Opcode, and the status of the call in
	// Datatype; likewise
	VerbReply = wire.VerbLocal + 9
)

// places describes where in the arena the parts of an operation are that its entry has no
// room for. With engine.FlagOutside it takes the place of Entry.Inline; without, only the
// result of a lookup is in the arena, at Entry.Offset.
type places struct {
	Operand, Compare, Result uint64 // offsets; compare operands follow the operands
	Extents                  uint64
	ExtentCount              uint32
}

// catalogue reports whether a verb asks for an entry of the catalogue of regions.
func catalogue(v wire.Verb) bool { return v == wire.VerbLookup || v == wire.VerbList }
