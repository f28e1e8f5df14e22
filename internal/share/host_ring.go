// SPDX-License-Identifier: Apache-2.0

//go:build linux

package share

import (
	"fmt"

	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// HostRing is the host's half: it takes the guest's entries, posts them to the engine,
// and writes their completions. It implements engine.HostRing, and engine.Sink for the
// rings of the guest's endpoints. It belongs to the engine's thread.
//
// The guest may change any byte of the segment at any time. So the positions are kept
// here, an entry is copied before it is looked at, and whatever it says is checked
// against the copy. Operands and results may change under the engine's hands, which
// copies them and draws no conclusion from them.
type HostRing struct {
	segment  *Segment
	doorbell *Doorbell
	eng      *engine.Engine
	turn     func(error) // tells that the guest has broken the rules; called once

	admitted func(session uint64, x *Admission)                                 // or nil
	answered func(session, ticket uint64, answer []byte) error                  // or nil
	replied  func(session, psn uint64, status wire.Status, r *wire.Reply) error // likewise

	taken, completed, seen uint64
	ops                    []op
	free                   []*op
	targets
	broken          bool
	ended           bool // by the host
	held            bool // nothing is taken at present: see Hold
	taking, unshown bool // inside Take; completions wait for its end to be shown

	entry   engine.Entry // the copy of the current entry
	word    engine.Word  // scratch
	said    wire.Reply   // likewise
	open    openings
	aside   []engine.Entry
	streams map[uint64]*op // operations that come part by part, by tag
	lists   lists
	waits   int  // operations that wait at their targets
	timing  bool // an operation is timed
	Times   Times
	Counts  Counts
}

// Counts are what a host ring has counted. They belong to the engine's thread.
type Counts struct {
	Taken, Refused, Completed uint64 // entries; those that were no operation; completions
	Cost                      uint64 // of those that were taken, as engine.Entry.Cost counts
}

// NewHostRing returns the host ring of a segment. Segment and doorbell stay the caller's.
// turnedOut is called at most once, on the engine's thread, when the guest has broken a
// rule.
func NewHostRing(a *Segment, doorbell *Doorbell, e *engine.Engine, turnedOut func(error)) *HostRing {
	f := &HostRing{segment: a, doorbell: doorbell, eng: e, turn: turnedOut, ops: make([]op, len(a.entries)),
		targets: newTargets(),
		streams: map[uint64]*op{}}
	rests := make([]rest, len(f.ops))
	for i := range f.ops {
		f.ops[i].rest = &rests[i]
		f.free = append(f.free, &f.ops[i])
	}
	return f
}

// OnAdmit has a function called, on the engine's thread, with what the guest says of its
// room for messages: see Credit. The admission is valid during the call.
func (f *HostRing) OnAdmit(admitted func(session uint64, x *Admission)) { f.admitted = admitted }

// Rest implements engine.HostRing.
func (f *HostRing) Rest() bool {
	if f.broken || f.held && len(f.streams) == 0 {
		return false
	}
	f.segment.h.hostSleeps.Swap(1)
	return (f.segment.h.posted.Load() != f.taken || len(f.aside) > 0 && !f.held) && f.admits() || f.tells()
}

// Rise implements engine.HostRing.
func (f *HostRing) Rise() { f.segment.h.hostSleeps.Store(0) }

// admits reports whether there is a place for another completion: in the ring, and none
// that is promised already.
func (f *HostRing) admits() bool { return f.places() > 0 }

// places is how many such places there are, or some of them. It looks how far the guest
// has read only if there is none otherwise: the guest writes that cache line all the
// time.
func (f *HostRing) places() int {
	under := len(f.ops) - len(f.free) + len(f.aside)
	n := len(f.ops) - under - int(f.completed-f.seen)
	if n <= 0 && f.look() {
		n = len(f.ops) - under - int(f.completed-f.seen)
	}
	return n
}

// look looks how far the guest has read the completion ring, and returns false if it has
// broken the rules.
func (f *HostRing) look() bool {
	seen := f.segment.h.seen.Load()
	if f.completed-seen > f.completed-f.seen { // beyond the last completion, or backwards
		f.fail(
			fmt.Errorf(
				"completion ring: the guest has seen %d entries of %d, and %d before: want a position that only grows",
				seen, f.completed, f.seen))
		return false
	}
	f.seen = seen
	return true
}

// fail turns the guest out.
func (f *HostRing) fail(err error) {
	if !f.broken {
		f.broken = true
		f.turn(err)
	}
}

// Take implements engine.HostRing.
func (f *HostRing) Take(credit int) (spent int) {
	if f.held && len(f.streams) == 0 {
		return 0
	}
	if len(f.open.known) > 0 {
		f.tell()
	}
	posted := f.segment.h.posted.Load()
	if posted == f.taken && len(f.aside) == 0 || f.broken {
		return 0
	}
	if posted-f.taken > uint64(len(f.ops)) {
		f.fail(fmt.Errorf("submission ring: the guest has posted up to %d, of which %d are taken: want at most %d more",
			posted, f.taken, len(f.ops)))
		return 0
	}
	before, first := f.taken, f.toTime()
	f.taking = true
	if len(f.aside) > 0 {
		spent = f.retry(credit)
	}
	for places := 0; spent < credit && f.taken != posted; places-- { // each entry takes one at most
		if places == 0 {
			if places = f.places(); places <= 0 {
				break
			}
		}
		f.copy(&f.segment.entries[f.taken&uint64(len(f.ops)-1)])
		cost := f.take(&f.entry)
		if cost == 0 {
			break
		}
		spent += cost
		f.taken++
	}
	f.taking = false
	if took := f.taken - before; spent > 0 {
		f.segment.h.taken.Store(f.taken)
		f.Counts.Taken += took
		f.Counts.Cost += uint64(spent)
	}
	if first != nil {
		f.time(first, before)
	}
	if f.unshown {
		f.unshown = false
		f.Flush()
	}
	return spent
}

// copy copies an entry out of the segment: of a short one the cache line that says all.
func (f *HostRing) copy(x *engine.Entry) {
	if copyHead(&f.entry, x); !f.entry.Short() {
		f.entry = *x // whatever it says by now
	}
}

// post posts an entry, and returns what it has cost, 0 if the engine has no room for it
// at present.
func (f *HostRing) post(x *engine.Entry) (cost int) {
	p := f.target(uint32(x.Peer))
	switch x.Verb {
	case VerbAdmit:
		f.note(x, p)
		return engine.EntryCost
	case VerbForget, VerbLeave:
		f.note(x, p)
		return engine.EntryCost + len(f.ops) // it may look at each of them
	case VerbSever:
		f.endParts(f.streams[x.Key])
		return engine.EntryCost + len(f.ops) // likewise
	case VerbFeed:
		return f.next(x)
	}
	o := f.free[len(f.free)-1]
	o.tag, o.peer = x.Cookie, p
	if p == nil {
		f.refuse(o, session.ClosedHere, wire.StatusOK)
		return engine.EntryCost
	}
	if f.extend(o, x) {
		f.use()
		return x.Cost()
	}
	if x.Flags&engine.FlagStream != 0 {
		return f.begin(o, x)
	}
	in, ok := f.check(x)
	if !ok {
		f.refuse(o, session.Alive, wire.StatusBadCount)
		return engine.EntryCost
	}
	if !f.mayWait(o, x) {
		return engine.EntryCost
	}
	s := f.eng.Begin(p.Ring)
	if s == nil {
		return 0
	}
	if in.result != nil || in.extents != nil {
		o.list, o.more = uint64(len(in.extents)), true
		f.lists.bytes += o.list
		o.result, o.held = in.result, len(in.operand)+len(in.compare)+len(in.extents)+len(in.result)
	}
	f.fill(s, o, x, &in)
	o.watch = x.Verb == engine.VerbWatch // not before it is under way: see Drained and Export
	f.waitBegins(o, x)
	f.use()
	f.eng.Submit(p.Ring)
	return x.Cost() + len(in.extents)
}

// use takes the last of the free operations off their list.
func (f *HostRing) use() { f.free = f.free[:len(f.free)-1] }

// extend posts an operation on one word that is like the one before it.
func (f *HostRing) extend(o *op, x *engine.Entry) bool {
	if x.Flags != 0 || !x.Verb.Atomic() {
		return false
	}
	w := &f.word
	if !w.Set(x) {
		return false
	}
	w.Peer, w.Cookie = o.peer.Peer.ID(), 0
	follower := engine.Follower{Context: o, Offset: x.Offset}
	if x.Verb.Returns() {
		follower.Result = &o.value
	}
	return f.eng.Extend(o.peer.Ring, w, follower)
}

// guestFlags are the flags that a guest's entry may have.
const guestFlags = engine.FlagFence | engine.FlagOutside | engine.FlagExtents | engine.FlagData | engine.FlagMatch

// buffers are the parts of an operation that lie in the arena.
type buffers struct{ operand, compare, result, extents []byte }

// check finds the parts of an operation that lie in the arena, and reports whether there
// is such an operation. The engine checks the rest.
func (f *HostRing) check(x *engine.Entry) (in buffers, ok bool) {
	known := x.Verb.Array() || x.Verb.Message() && x.Verb != wire.VerbPart || catalogue(x.Verb) ||
		x.Verb == wire.VerbCall || x.Verb == wire.VerbWait || x.Verb == engine.VerbConnect ||
		x.Verb == engine.VerbWatch || x.Verb == engine.VerbFlush
	if !known || x.Flags&^guestFlags != 0 || x.Flags&(engine.FlagExtents|engine.FlagOutside) == engine.FlagExtents {
		return in, false
	}
	operand, compare, result := x.Lens()
	if catalogue(x.Verb) {
		in.result, ok = f.part(x.Offset, result)
		return in, ok && x.Flags == 0
	}
	if x.Flags&engine.FlagOutside == 0 {
		return in, operand+compare <= x.InlineRoom() && result <= engine.InlineResult
	}
	at := placesOf(x)
	var all [4]bool
	in.operand, all[0] = f.part(at.Operand, operand)
	in.compare, all[1] = f.part(at.Compare, compare)
	in.result, all[2] = f.part(at.Result, result)
	n := uint64(at.ExtentCount)
	if x.Flags&engine.FlagExtents == 0 {
		n = 0
	}
	in.extents, all[3] = f.part(at.Extents, n*extentLen)
	return in, all == [4]bool{true, true, true, true} && f.mayList(uint64(len(in.extents)))
}

// part returns n bytes of the arena.
func (f *HostRing) part(at, n uint64) ([]byte, bool) { return partOf(f.segment.arena, at, n) }

func partOf(arena []byte, at, n uint64) ([]byte, bool) {
	size := uint64(len(arena))
	if n == 0 {
		return nil, true
	}
	if n > size || at > size-n {
		return nil, false
	}
	return arena[at : at+n : at+n], true
}

// fill fills in the engine's submission.
func (f *HostRing) fill(s *engine.Submission, o *op, x *engine.Entry, in *buffers) {
	outside := x.Flags&engine.FlagOutside != 0
	s.Entry = *x
	s.Cookie, s.Peer, s.Context, s.Result = 0, o.peer.Peer.ID(), o, in.result
	s.Flags &^= engine.FlagOutside | engine.FlagExtents
	if outside {
		s.SetOperands(in.operand, in.compare)
	}
	if x.Flags&engine.FlagExtents != 0 {
		copy(bytesOf(s.MakeExtents(len(in.extents)/extentLen)), in.extents)
	}
	if in.result == nil && x.Verb.Atomic() && x.Verb.Returns() && s.Count == 1 && wire.ElemSize(s.Datatype) == 8 {
		s.Result = o.value[:]
	}
}

// refuse completes an entry that is no operation.
func (f *HostRing) refuse(o *op, why session.Reason, status wire.Status) {
	f.Counts.Refused++
	f.reject(o, why, status)
}

// reject completes an entry that is not posted.
func (f *HostRing) reject(o *op, why session.Reason, status wire.Status) {
	f.use()
	f.write(o, &engine.Completion{Outcome: engine.NotExecuted, Reason: why, Status: status})
	f.unshown = true
}

// End is called when the host no longer serves the guest: nothing more is taken. Engine's
// thread.
func (f *HostRing) End() { f.broken, f.ended = true, true }

// Close closes the peers, which completes the operations that are under way. Afterwards
// the rings can be removed, and nothing uses the segment. Engine's thread.
func (f *HostRing) Close() {
	f.End()
	for _, p := range f.peers {
		f.close(p)
	}
}
