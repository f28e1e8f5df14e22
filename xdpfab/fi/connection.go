// SPDX-License-Identifier: Apache-2.0

package fi

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/xdpfab/xdpfab/internal/calls"
	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// connection is the part of an endpoint that only a connected one (FI_EP_MSG) has: one
// peer, which it meets by Connect or Accept. Each side has a session to the other one and
// watches it. Two operations of its own drive it, by their completions: one that
// connects, and one that watches.
type connection struct {
	ep     *endpoint
	ring   *engine.Ring  // for the two operations
	admits atomic.Uint64 // the origin whose sessions the endpoint accepts; 0 as long as it is not known
	met    atomic.Bool   // it has accepted one of them: to the peer, there is a connection
	phase  atomic.Uint32 // stored under mu

	inquiry *engine.Inquiry // of the side that asks; engine's thread

	mu     sync.Mutex // never held while an engine or a queue is called
	queue  *EventQueue
	places int // of the queue, for events to come
	addr   wire.Addr
	link   wire.Link
	stop   func() // ends the watch of the way to the peer
	target *engine.Peer
	param  []byte // of the peer's answer
	cause  error  // of the end

	// Of a guest: the goroutine that waits for the answer, and what ends it.
	asks sync.WaitGroup
	left context.Context
	quit context.CancelFunc
}

// Phases of a connection.
const (
	unconnected = iota
	asking      // the request has not been answered
	joining     // the session to the peer is being opened
	connected
	parted // or it was never connected
)

func newConnection(ep *endpoint) (*connection, error) {
	ring, err := engine.NewRing(2, engine.Contexts{})
	c := &connection{ep: ep, ring: ring}
	c.left, c.quit = context.WithCancel(context.Background())
	return c, err
}

// begin enables the endpoint and takes places for two events: that it is connected, or
// not, and that the connection has ended.
func (c *connection) begin(phase uint32, a wire.Addr, link wire.Link) error {
	ep := c.ep
	q := ep.eventQueue()
	if q == nil {
		return fmt.Errorf("xdpfab: endpoint %d: %w: bind one to it or to its domain", ep.number, ErrNoEQ)
	}
	if err := ep.handle.Enable(); err != nil {
		return err
	}
	if err := c.reserve(q, phase); err != nil {
		return err
	}
	c.mu.Lock()
	c.addr, c.link = a, link
	c.mu.Unlock()
	stop := ep.dom.node.Dev.Follow(a, link, c.moved)
	c.mu.Lock()
	c.stop = stop
	c.mu.Unlock()
	if ep.phase.Load() == shutOff { // Close may have come before there was anything to stop
		c.free()
		return ep.unready()
	}
	return nil
}

// reserve begins the life of the connection.
func (c *connection) reserve(q *EventQueue, phase uint32) error {
	if err := q.promise(2); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.phase.Load() != unconnected {
		q.release(2)
		return fmt.Errorf("xdpfab: endpoint %d: %w", c.ep.number, ErrConnected)
	}
	c.queue, c.places = q, 2
	c.phase.Store(phase)
	q.drive(c.ep.dom)
	return nil
}

// eventQueue returns the queue for the events of the endpoint, which may be its domain's,
// or nil.
func (ep *endpoint) eventQueue() *EventQueue {
	ep.mu.Lock()
	q := ep.events.queue
	ep.mu.Unlock()
	if q != nil {
		return q
	}
	ep.dom.mu.Lock()
	defer ep.dom.mu.Unlock()
	return ep.dom.events.queue
}

// moved takes a new way to the peer.
func (c *connection) moved(l wire.Link) {
	c.mu.Lock()
	c.link = l
	p := c.target
	c.mu.Unlock()
	if p != nil {
		_ = p.SetLink(c.ep.marked(l)) // the encapsulation is the same, so this does not fail
	}
}

// answered takes the answer to the request. Engine's thread.
func (c *connection) answered(answer wire.Connection, why session.Reason) {
	if why != session.Alive {
		cause := c.ep.whySilent(causeOfReason[why], c.peer(), new(engine.Submission))
		c.fail(fmt.Errorf("xdpfab: connect to %s: %w", c.peer(), cause), answer.Bytes())
		return
	}
	c.mu.Lock()
	if c.phase.Load() != asking { // of a guest, which has parted meanwhile
		c.mu.Unlock()
		return
	}
	c.param = bytes.Clone(answer.Bytes())
	c.phase.Store(joining)
	to := c.addr
	c.mu.Unlock()
	c.admits.Store(answer.Origin)
	to.Endpoint = answer.Endpoint
	c.join(to)
}

// join opens the session to the endpoint of the peer.
func (c *connection) join(to wire.Addr) {
	c.mu.Lock()
	p, err := c.ep.origin.NewPeer(c.ep.marked(c.link), to.Lane, to.Endpoint)
	c.addr, c.target = to, p
	c.mu.Unlock()
	if err != nil {
		c.fail(fmt.Errorf("xdpfab: connect to %v: %w", to, err), nil)
		return
	}
	c.post(engine.VerbConnect)
}

// post posts one of the two operations. Each is posted once, so that there is room.
func (c *connection) post(verb wire.Verb) {
	s := c.ring.Claim()
	s.Peer, s.Verb, s.Context = c.target.ID(), verb, c
	s.Publish()
	c.ep.stepper.Eng.Notify()
}

// Complete implements the engine's Completer.
func (c *connection) Complete(s *engine.Submission, done *engine.Completion, later *engine.Later) {
	var err error
	if done.Outcome != engine.Success {
		err = errorOf(done.Result(later), calls.NameOf(s), c.peer()).by(c.ep, s)
	}
	switch {
	case s.Verb == engine.VerbWatch:
		c.parted(err)
	case err != nil:
		c.fail(err, nil)
	default:
		c.established()
	}
}

// established lets operations be posted, and watches the peer. Engine's thread.
func (c *connection) established() {
	c.mu.Lock()
	if c.phase.Load() != joining {
		c.mu.Unlock()
		return
	}
	c.phase.Store(connected)
	c.ep.peers.Store(&[]known{{c.target.ID(), &name{addr: c.addr, peer: c.target}}})
	e := Event{Kind: EventConnected, Param: c.param}
	c.mu.Unlock()
	c.post(engine.VerbWatch)
	c.tell(e)
}

// fail is called when there will be no connection or, if the peer had one to this side,
// when it has ended. Any thread.
func (c *connection) fail(err error, param []byte) {
	c.end(err, Event{Kind: EventConnected, Err: err, Param: bytes.Clone(param)})
}

// parted is called when the connection has ended. Engine's thread.
func (c *connection) parted(err error) {
	c.end(err, Event{Kind: EventShutdown})
}

// end ends the connection, unless it has ended already. The event follows when the peer
// cannot change anything here. Any thread.
func (c *connection) end(cause error, e Event) {
	c.mu.Lock()
	first := c.part(cause)
	if first && c.target != nil {
		c.target.Retire()
	}
	c.mu.Unlock()
	if !first {
		return
	}
	c.endSessions(func() {
		if e.Err != nil && c.met.Load() {
			c.tell(Event{Kind: EventConnected, Param: c.param}, Event{Kind: EventShutdown})
			return
		}
		c.tell(e)
	})
}

// endSessions ends the sessions that the peer has to this endpoint, at the host as well,
// and then calls a function. It does not wait. Any thread.
func (c *connection) endSessions(then func()) {
	d := c.ep.dom
	if d.node.End.Err() != nil { // all sessions end, and perhaps no thread steps the engines
		then()
		return
	}
	told := then
	then = func() { d.node.Dev.Async(func() { c.partAtHost(); told() }) }
	left := new(atomic.Int32)
	left.Store(int32(len(d.node.Steppers)))
	for _, st := range d.node.Steppers {
		st.Eng.Soon(func() {
			st.Eng.EndTargets(c.ep.number)
			if left.Add(-1) == 0 {
				then()
			}
		})
		st.Notify()
	}
}

// tell delivers events, unless the endpoint has been closed.
func (c *connection) tell(events ...Event) {
	c.mu.Lock()
	q := c.queue
	if q != nil {
		c.places -= len(events)
	}
	c.mu.Unlock()
	for _, e := range events {
		if e.Source, e.Context = &c.ep.handle, c.ep.attr.Context; q != nil {
			q.deliver(e)
		}
	}
}

// part refuses operations and sessions from now on. It returns false if it did so before.
// c.mu is held.
func (c *connection) part(cause error) bool {
	if c.phase.Load() == parted {
		return false
	}
	c.phase.Store(parted)
	c.cause = cause
	c.admits.Store(0)
	c.ep.peers.Store(&[]known{})
	c.quit()
	return true
}

// never ends a connection that has not begun, and whose caller is told so.
func (c *connection) never(err error) error {
	c.mu.Lock()
	c.part(err)
	c.mu.Unlock()
	c.endSessions(func() {})
	return err
}

// close ends the session to the peer. Engine's thread.
func (c *connection) close() {
	if c.inquiry != nil {
		c.inquiry.Cancel()
	}
	c.mu.Lock()
	p := c.target
	c.mu.Unlock()
	if p != nil {
		p.Close()
	}
}

// endQuietly ends the connection with its endpoint, without an event. Engine's thread.
func (c *connection) endQuietly(cause error) {
	c.mu.Lock()
	c.part(cause)
	c.mu.Unlock()
	c.close()
	c.ep.stepper.Eng.RemoveRing(c.ring)
}

// free gives back what the connection has used.
func (c *connection) free() {
	c.asks.Wait()
	c.mu.Lock()
	q, places, stop := c.queue, c.places, c.stop
	c.queue, c.places, c.stop = nil, 0, nil
	c.mu.Unlock()
	if q != nil {
		q.release(places)
		q.undrive(c.ep.dom)
	}
	if stop != nil {
		stop()
	}
}

// admit answers the hello of an origin. The peer may have been told of this endpoint
// before this one has been told of the peer: then it is to come again.
func (c *connection) admit(origin uint64) wire.HelloStatus {
	switch {
	case origin == c.admits.Load():
		return wire.HelloAccepted
	case c.phase.Load() == asking:
		return wire.HelloFull
	}
	return wire.HelloNoEndpoint
}

// unready returns why no operation can be posted. c.mu is held, or not needed.
func (c *connection) unready() error {
	if c.cause != nil {
		return fmt.Errorf("xdpfab: endpoint %d: %w any more: %w", c.ep.number, ErrNotConnected, c.cause)
	}
	return fmt.Errorf("xdpfab: endpoint %d: %w: wait for its EventConnected", c.ep.number, ErrNotConnected)
}

// peer returns the address of the peer.
func (c *connection) peer() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.addr.String()
}
