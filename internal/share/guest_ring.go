// SPDX-License-Identifier: Apache-2.0

//go:build linux

package share

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// Peers asks the host for a peer, and returns its number: see engine.GuestRing.
type Peers func(origin uint64, link wire.Link, lane uint8, endpoint uint16) (uint32, error)

// GuestRing is the guest's half: the engine's guest ring, which posts into the rings. It
// belongs to the engine's thread, but for NewPeer and the port's Wake.
type GuestRing struct {
	segment  *Segment
	doorbell *Doorbell
	wake     int // eventfd: ends a wait of this side
	peers    Peers
	alive    bool // the host

	posted, taken, seen uint64 // positions as this side knows them; see header
	space               *space
	held                []block      // by tag
	entry               engine.Entry // scratch
	completion          engine.Completion
	noted               bool           // an admission was posted, and not shown yet
	notes               []engine.Entry // VerbForget and the like, for which there was no room
	in                  incoming
	answers             []answer                // whose blocks the host may still read
	tallies             atomic.Pointer[Tallies] // or nil
	waits               atomic.Bool             // the host has FeatureWaits
	// bytes that had arrived when this side last woke up: they may have to wait for room
	looked uint64
}

// block is the part of the arena that the operation of a tag has.
type block struct {
	at, len           int
	result, resultLen int
	window            *window // of an operation that goes part by part, and of each part
}

// NewGuestRing returns the guest ring over a segment that this side has made. Segment and
// doorbell are its own from then on.
func NewGuestRing(a *Segment, doorbell *Doorbell, peers Peers) (*GuestRing, error) {
	wake, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("eventfd: %w", err)
	}
	c := &GuestRing{wake: wake, peers: peers}
	c.Renew(a, doorbell)
	return c, nil
}

// Lose is called when the host has ended. The engine must have completed what it had.
func (c *GuestRing) Lose() error {
	if !c.alive {
		return nil
	}
	c.closeSessions()
	c.alive = false
	return errors.Join(c.doorbell.Close(), c.segment.Close())
}

// Renew puts a segment and a doorbell that belong to another host in the place of those
// of the one that was lost.
func (c *GuestRing) Renew(a *Segment, doorbell *Doorbell) {
	c.segment, c.doorbell, c.alive = a, doorbell, true
	c.posted, c.taken, c.seen, c.notes, c.answers = 0, 0, 0, nil, nil
	c.in.called.sessions = map[uint64]*calledSession{}
	c.in.read, c.in.sessions, c.in.waiting, c.in.cramped = 0, map[uint64]*incomingSession{}, nil, false
	c.space, c.held = newSpace(len(a.arena)), make([]block, len(a.entries))
}

// Agree tells which features the present host has, too. Any goroutine.
func (c *GuestRing) Agree(features []string) {
	c.waits.Store(slices.Contains(features, FeatureWaits))
}

// Tally has the engine look at tallies, which stay the caller's until Close.
func (c *GuestRing) Tally(t *Tallies) { c.tallies.Store(t) }

// Tallies returns those tallies, or nil. Any goroutine.
func (c *GuestRing) Tallies() *Tallies { return c.tallies.Load() }

// Alive implements engine.GuestRing.
func (c *GuestRing) Alive() bool { return c.alive }

// Close frees segment and doorbell. No method may be called afterwards.
func (c *GuestRing) Close() error { return errors.Join(unix.Close(c.wake), c.Lose()) }

// NewPeer implements engine.GuestRing.
func (c *GuestRing) NewPeer(origin uint64, link wire.Link, lane uint8, endpoint uint16) (uint32, error) {
	return c.peers(origin, link, lane, endpoint)
}

// Tags implements engine.GuestRing: an operation has a place in either ring.
func (c *GuestRing) Tags() int { return len(c.held) }

// Way implements engine.GuestRing. An operation of half the arena is still taken whole,
// unless it is long.
func (c *GuestRing) Way(s *engine.Submission) engine.PostWay {
	if s.Short() {
		return engine.PostWhole
	}
	operand, compare, result := s.Lens()
	whole := operand + compare + result + uint64(len(s.Extents))*extentLen
	switch {
	case whole <= min(part, uint64(c.space.largest())/2):
		return engine.PostWhole
	case s.Verb.Array() || s.Verb.Message() && !s.Verb.TaggedAtomic():
		return engine.PostParts
	}
	return engine.PostNever
}

// Post implements engine.GuestRing.
func (c *GuestRing) Post(tag, peer uint32, s *engine.Submission) bool {
	if !c.hasRoom() && !c.room() {
		return false
	}
	x := &c.segment.entries[c.posted&c.mask()]
	if s.Short() { // nearly always: one cache line goes to the host, and not two
		copyHead(x, &s.Entry)
		x.Cookie, x.Peer = uint64(tag), engine.PeerID(peer)
		c.posted++
		return true
	}
	e := &c.entry
	*e = s.Entry
	e.Cookie, e.Peer = uint64(tag), engine.PeerID(peer)
	e.Flags &^= engine.FlagPieces | engine.FlagOutside
	if !c.place(tag, e, s) {
		return false
	}
	*x = *e
	c.posted++
	return true
}

// place puts operands and extents where the entry says they are, and takes memory for the
// result. It returns false if the arena is full.
func (c *GuestRing) place(tag uint32, e *engine.Entry, s *engine.Submission) bool {
	operand, compare, result := e.Lens()
	b := &c.held[tag]
	*b = block{}
	inline := operand+compare <= e.InlineRoom() && e.Flags&engine.FlagExtents == 0
	if catalogue(e.Verb) { // its name is in the entry
		if b.resultLen = int(result); !c.take(b, b.resultLen) {
			return false
		}
		b.result, e.Offset = b.at, uint64(b.at)
		return true
	}
	if inline && result <= engine.InlineResult {
		if s.Flags&(engine.FlagOutside|engine.FlagPieces) != 0 {
			s.CopyOperands(e.Inline[:], 0, e.Count)
		}
		return true
	}
	extents := s.Extents
	if e.Flags&engine.FlagExtents == 0 {
		extents = nil
	}
	operands := int(operand+compare+7) &^ 7
	list := len(extents) * extentLen
	if !c.take(b, operands+list+int(result)) {
		return false
	}
	b.result, b.resultLen = b.at+operands+list, int(result)
	s.CopyOperands(c.segment.arena[b.at:], 0, e.Count)
	copy(c.segment.arena[b.at+operands:], bytesOf(extents))
	e.Flags |= engine.FlagOutside
	*placesOf(e) = places{Operand: uint64(b.at), Compare: uint64(b.at) + operand, Result: uint64(b.result),
		Extents: uint64(b.at + operands), ExtentCount: uint32(len(extents))}
	return true
}

// take takes a block of the arena.
func (c *GuestRing) take(b *block, n int) bool {
	at, ok := c.space.get(n)
	if ok {
		b.at, b.len = int(at), n
	}
	return ok
}

func (c *GuestRing) mask() uint64 { return uint64(len(c.segment.entries) - 1) }

// room reports whether the submission ring has room for an entry behind the notes, which
// none overtakes: the tag of a VerbLeave may be another operation's by then.
func (c *GuestRing) room() bool {
	if c.hasRoom() {
		return true
	}
	c.taken = c.segment.h.taken.Load()
	c.tell()
	return c.hasRoom()
}

// hasRoom is room as far as this side knows. It is false as long as there are notes.
func (c *GuestRing) hasRoom() bool { return c.posted-c.taken < uint64(len(c.segment.entries)) }

// ReleasePeer implements engine.GuestRing.
func (c *GuestRing) ReleasePeer(peer uint32) {
	c.note(engine.Entry{Verb: VerbForget, Peer: engine.PeerID(peer)})
}

// Leave implements engine.GuestRing.
func (c *GuestRing) Leave(tag uint32) { c.note(engine.Entry{Verb: VerbLeave, Key: uint64(tag)}) }

func (c *GuestRing) note(e engine.Entry) {
	switch {
	case !c.alive:
	case c.room():
		c.segment.entries[c.posted&c.mask()] = e
		c.posted++
	default:
		c.notes = append(c.notes, e)
	}
}

// tell posts the notes until there is no room.
func (c *GuestRing) tell() {
	before := c.posted
	for len(c.notes) > 0 && c.hasRoom() {
		c.segment.entries[c.posted&c.mask()] = c.notes[0]
		c.posted++
		c.notes = c.notes[1:]
	}
	if c.posted != before {
		c.Flush()
	}
}

// Flush implements engine.GuestRing.
func (c *GuestRing) Flush() {
	if !c.alive {
		return
	}
	h := c.segment.h
	h.posted.Swap(c.posted)
	if h.hostSleeps.Load() != 0 && h.hostSleeps.Swap(0) != 0 {
		c.doorbell.Ring()
	}
}

// burst is the most completions that one Receive takes.
const burst = 256

// Receive implements engine.GuestRing.
func (c *GuestRing) Receive(done func(tag uint32, c *engine.Completion, life uint64, result []byte)) int {
	if !c.alive {
		return c.unpark() // events of the former host
	}
	if len(c.notes) > 0 {
		c.room()
	}
	if len(c.answers) > 0 {
		c.freeAnswers()
	}
	c.tallies.Load().Look()
	h := c.segment.h
	came := 0
	if len(c.in.waiting) > 0 {
		c.retry()
	}
	if (h.arrived.Load() != c.in.read || len(c.in.parked.of) > 0) && c.in.to != nil {
		came = c.arrive()
	}
	if c.in.called.any.Load() {
		c.reply()
	}
	c.showAdmissions()
	n := h.completed.Load() - c.seen
	if n == 0 {
		return came
	}
	n = min(n, burst)
	opened := false
	for range n {
		x := &c.completion
		*x = c.segment.done[c.seen&c.mask()]
		c.seen++
		if x.Cookie < uint64(len(c.held)) { // a tag of ours
			opened = x.Flags&engine.CompletedOpen != 0 || opened
			c.complete(x, done)
		}
	}
	h.seen.Store(c.seen)
	if opened { // the host may wait for room to tell what has become known
		c.Flush()
	}
	return came + int(n)
}

// complete passes a completion on, and frees the block of its operation.
func (c *GuestRing) complete(x *engine.Completion,
	done func(tag uint32, c *engine.Completion, life uint64, result []byte)) {
	tag, life := x.Cookie, x.Data
	x.Data = 0
	b := c.held[tag]
	if b.window != nil {
		c.completePart(&b, x, life, done)
		return
	}
	if b.len == 0 { // nearly always: all of it was in the entry
		done(uint32(tag), x, life, x.Inline[:min(x.Length, engine.InlineResult)])
		return
	}
	if x.Flags&engine.CompletedOpen != 0 && b.resultLen > 0 { // its result may still come
		done(uint32(tag), x, life, nil)
		return
	}
	c.held[tag] = block{} // the tag may be used again before done returns
	result := x.Inline[:min(x.Length, engine.InlineResult)]
	if b.resultLen > 0 {
		result = c.segment.arena[b.result:][:min(x.Length, uint64(b.resultLen))]
	}
	done(uint32(tag), x, life, result)
	if b.len > 0 {
		c.space.put(uint64(b.at), b.len)
	}
}
