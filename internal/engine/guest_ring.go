// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"sync/atomic"

	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// GuestRing takes operations to their targets in place of an engine's own sessions:
// another process has the interface, and its engine has the sessions. What callers see of
// operations stays the same. NewPeer may be called by any goroutine, the rest by the
// engine's thread alone.
type GuestRing interface {
	// NewPeer returns a number, not 0, for the peer at the end of a link, to which the
	// operations of an origin go.
	NewPeer(origin uint64, link wire.Link, lane uint8, endpoint uint16) (uint32, error)
	// ReleasePeer gives the number of a peer back: its session ends.
	ReleasePeer(peer uint32)
	// Tags is how many operations and parts can be in the guest ring at a time.
	Tags() int
	// Way reports how the guest ring takes an operation.
	Way(s *Submission) PostWay
	// Post takes an operation whole; the buffers stay untouched until its completion
	// comes back with the same tag. It returns false if there is no room for it at
	// present.
	Post(tag, peer uint32, s *Submission) bool
	// Begin is Post for an operation that follows in parts.
	Begin(tag, peer uint32, s *Submission) bool
	// Feed takes the next part, from an element on, of the operation that has begun with
	// a tag, and returns its number of elements, 0 if there is no room for it at present.
	// Its completion has a tag of its own: then its memory is free for another part, its
	// result has come, and the operation's outcome is still open.
	Feed(tag, of uint32, s *Submission, first uint32) (count uint32)
	// EndParts is called when no other part of such an operation comes. It completes with
	// what is known of it.
	EndParts(tag uint32)
	// Leave asks for the end of a watch, or of an operation that waits at the target,
	// which was posted with the tag.
	Leave(tag uint32)
	// Waits reports whether operations that wait at the target are taken. Any goroutine.
	Waits() bool
	// Alive reports whether there is another process: it may end, and another one may
	// take its place, by which peers have other numbers (see Peer.Renumber).
	Alive() bool
	// Flush lets the other process see what has been posted.
	Flush()
	// Receive takes completions as long as there are any, at most one burst, and passes
	// each on with the bytes of its result, which are valid during the call. life names
	// the process of the target as it is known to the other process, 0 if it is not. One
	// with CompletedOpen leaves the tag to the guest ring until the next one comes.
	Receive(done func(tag uint32, c *Completion, life uint64, result []byte)) int
}

// PostWay is how a guest ring takes an operation.
type PostWay uint8

// The ways.
const (
	PostWhole PostWay = iota
	PostParts
	PostNever // it cannot be taken at all
)

// ringClient is what an engine with a guest ring knows of the operations in the guest
// ring's hands. It belongs to the engine's thread.
type ringClient struct {
	GuestRing
	parts []ringPart // by tag
	free  []uint32   // tags
	// operations with parts still to be handed over
	fed    []*ringStream
	posted bool                                                        // since the last Flush
	lives  atomic.Uint32                                               // other processes that have ended
	done   func(tag uint32, c *Completion, life uint64, result []byte) // completed

	head, tail *flight // operations for which there was no room, in posting order
}

// ringPart is what the host has under one tag: an operation, or a part of one.
type ringPart struct {
	f     *flight     // nil: the tag is free
	of    *ringStream // nil: the whole operation was posted
	first uint32      // element
}

func newRingClient(c GuestRing) *ringClient {
	if c == nil {
		return nil
	}
	g := &ringClient{GuestRing: c, parts: make([]ringPart, c.Tags())}
	for tag := range g.parts {
		g.free = append(g.free, uint32(len(g.parts)-1-tag))
	}
	g.done = g.completed
	return g
}

// send has the guest ring take an operation for a peer, now or behind those that wait.
func (g *ringClient) send(f *flight, p *Peer) {
	f.by = p.atHost.number
	if !g.Alive() || p.atHost.life != g.lives.Load() {
		f.unposted(session.HostLost)
		f.finish()
		return
	}
	if g.head == nil && f.Short() && g.handWord(f) {
		return
	}
	if g.Way(&f.Submission) == PostNever {
		f.fail(Result{Outcome: NotExecuted, Status: wire.StatusBadCount})
		f.finish()
		return
	}
	if g.head == nil && g.hand(f) {
		return
	}
	g.wait(f)
}

// wait puts an operation behind those that wait for room.
func (g *ringClient) wait(f *flight) {
	if g.head == nil {
		g.head = f
	} else {
		g.tail.next = f
	}
	g.tail = f
}

// handWord is hand for an operation on one word, of which any guest ring takes all at
// once.
func (g *ringClient) handWord(f *flight) bool {
	if len(g.free) == 0 {
		return false
	}
	tag := g.free[len(g.free)-1]
	if !g.Post(tag, f.by, &f.Submission) {
		return false
	}
	g.free = g.free[:len(g.free)-1]
	g.parts[tag] = ringPart{f: f}
	f.sent, f.pending, f.noted, g.posted = 1, 1, true, true
	return true
}

// hand gives an operation to the guest ring, and returns false if there was no room for
// it.
func (g *ringClient) hand(f *flight) bool {
	if g.Way(&f.Submission) == PostParts {
		return g.begin(f)
	}
	if !g.handWord(f) {
		return false
	}
	f.sent = f.elements()
	return true
}

// round serves the operations in the guest ring once.
func (g *ringClient) round() int {
	n := g.Receive(g.done)
	if len(g.fed) > 0 {
		g.feed()
	}
	for g.head != nil && g.hand(g.head) {
		f := g.head
		g.head, f.next = f.next, nil
		n++
	}
	if g.posted {
		g.posted = false
		g.Flush()
	}
	return n
}

// completed is called with the completion of a part.
func (g *ringClient) completed(tag uint32, c *Completion, life uint64, result []byte) {
	if int(tag) >= len(g.parts) || g.parts[tag].f == nil {
		return // no tag of ours: the other side is broken
	}
	f, of := g.parts[tag].f, g.parts[tag].of
	if of != nil && tag != of.tag {
		g.fedPart(tag, c, result)
		return
	}
	if c.Flags&CompletedOpen != 0 {
		g.open(tag, f, c.Reason)
		return
	}
	g.parts[tag] = ringPart{}
	if of == nil {
		g.free = append(g.free, tag)
	} else {
		g.end(of)
	}
	if f.ring != nil && life != 0 {
		if p := f.ring.find(f.Peer); p != nil {
			p.learn(life)
		}
	}
	if c.Outcome == Success {
		f.store(0, result[:min(len(result), f.resultLen())])
		f.ran = true
	} else {
		newVerb := f.Verb == VerbFlush || f.Verb == wire.VerbSignal || f.Verb == wire.VerbCall
		if newVerb && c.Status == wire.StatusBadCount {
			c.Status = wire.StatusUnsupported // by the host's release
		}
		f.fail(Result{Outcome: c.Outcome, Status: c.Status, Reason: c.Reason})
	}
	g.came(f, of)
}

// came counts a completion in, and finishes the operation when that was the last one.
func (g *ringClient) came(f *flight, of *ringStream) {
	if f.pending--; f.pending > 0 {
		return
	}
	if of != nil {
		g.free = append(g.free, of.tag, of.tags[0], of.tags[1])
	}
	f.finish()
}

// open completes an operation whose outcome is unknown, and may become known later.
func (g *ringClient) open(tag uint32, f *flight, why session.Reason) {
	if f.ring == nil {
		return // completed already: its stand-in keeps waiting
	}
	if of := g.parts[tag].of; of != nil {
		g.end(of)
	}
	g.release(tag, f, why)
}

// letGo completes the operations for which match is true. What waits for room was never
// executed; of what the host has, nothing is known until its completion comes.
func (g *ringClient) letGo(match func(f *flight) bool, why session.Reason) (any bool) {
	any = g.unpost(match, why)
	var flushes []uint32 // last, since all else ends before them
	for tag := range g.parts {
		f, of := g.parts[tag].f, g.parts[tag].of
		if f == nil || f.ring == nil || !match(f) {
			continue
		}
		any = true
		if f.Verb == VerbFlush {
			flushes = append(flushes, uint32(tag))
			continue
		}
		if of != nil && !of.over {
			g.end(of)
			g.EndParts(of.tag)
			g.posted = true
		}
		g.release(uint32(tag), f, why)
	}
	for _, tag := range flushes {
		g.release(tag, g.parts[tag].f, why)
	}
	return any
}

// unpost is letGo for what waits for room.
func (g *ringClient) unpost(match func(f *flight) bool, why session.Reason) (any bool) {
	waiting := g.head
	g.head, g.tail = nil, nil
	for f := waiting; f != nil; {
		next := f.next
		f.next = nil
		if !match(f) {
			g.wait(f)
		} else {
			any = true
			f.unposted(why)
			f.finish()
		}
		f = next
	}
	return any
}

// unposted records that the operation ends before the host has it. For a flush that is no
// failure, unless it was cancelled: with the host, everything has ended.
func (f *flight) unposted(why session.Reason) {
	if f.Verb != VerbFlush || why == session.Cancelled {
		f.fail(Result{Outcome: NotExecuted, Reason: why})
	}
}

// release completes an operation that the host has. A stand-in waits for its outcome.
func (g *ringClient) release(tag uint32, f *flight, why session.Reason) {
	in := standIn(f)
	in.pending = f.pending
	if of := g.parts[tag].of; of != nil {
		g.replace(of, f, in)
	} else {
		g.parts[tag].f = in
	}
	r := Result{Outcome: Unknown, Reason: why, Later: in.later}
	if f.Verb == VerbWatch || f.Verb == wire.VerbWait {
		g.leave(tag)
	}
	switch f.Verb {
	case VerbWatch, VerbConnect, wire.VerbLookup, wire.VerbList:
		r = Result{Outcome: NotExecuted, Reason: why}
	}
	if f.Verb == VerbFlush {
		f.unposted(why)
	} else {
		f.fail(r)
	}
	f.pending = 0
	f.finish()
}

// drop ends a peer, and completes its operations.
func (g *ringClient) drop(p *Peer) {
	g.letGo(func(f *flight) bool {
		return f.ring != nil && f.Peer == p.id && f.ring.origin == p.origin
	}, session.ClosedHere)
	g.releasePeer(p)
}

// releasePeer gives the number of a peer back, if the present process has given it.
func (g *ringClient) releasePeer(p *Peer) {
	if g.Alive() && p.atHost.life == g.lives.Load() {
		g.ReleasePeer(p.atHost.number)
		g.posted = true
	}
}

// hostPeer is the number of a peer in another process.
type hostPeer struct {
	number, life uint32 // how many such processes had ended before
}

// number asks for the number of a peer. Any goroutine.
func (g *ringClient) number(p *Peer, endpoint uint16) (err error) {
	p.atHost.life = g.lives.Load()
	p.atHost.number, err = g.NewPeer(p.origin.id, p.link, p.lane, endpoint)
	return err
}

// close completes everything, also the stand-ins, whose outcome stays unknown.
func (g *ringClient) close(why session.Reason) {
	g.letGo(all, why)
	for tag := range g.parts {
		in := g.parts[tag].f
		if g.parts[tag] = (ringPart{}); in == nil {
			continue
		}
		if in.pending--; in.pending == 0 {
			in.fail(Result{Outcome: Unknown, Reason: why})
			in.finish()
		}
	}
	g.fed = nil
}

// Lose completes everything that the host has or that waits for it, since the other
// process has ended: of what it had, nothing will become known. Engine's thread only.
func (e *Engine) Lose() {
	g := e.viaHost
	g.lives.Add(1)
	g.close(session.HostLost)
	g.free = g.free[:0]
	for tag := range g.parts {
		g.free = append(g.free, uint32(len(g.parts)-1-tag))
	}
	e.say()
}

// Renumber gives a peer its number in another process that has taken the place of the one
// that ended. If the peer has been closed meanwhile, the number is given back. Engine's
// thread only.
func (p *Peer) Renumber(number uint32) {
	g := p.origin.e.viaHost
	if p.atHost = (hostPeer{number, g.lives.Load()}); p.closed {
		g.releasePeer(p)
	}
}
