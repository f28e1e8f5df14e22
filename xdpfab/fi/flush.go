// SPDX-License-Identifier: Apache-2.0

package fi

import (
	"context"
	"errors"
	"time"

	"github.com/xdpfab/xdpfab/internal/calls"
	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/errno"
)

// Flush makes a completion, with the context given and without flags, once all operations
// have ended that the endpoint posted before it to dest, or, with NoAddress, to any peer.
// libfabric has no such call. An operation that failed has ended, too, so a flush
// succeeds whatever became of them: their own completions come first. One of unknown
// outcome, which OpError.Open may still find out, has ended as well. A message that waits
// for a receive has not, and an operation with a Trigger counts once that has fired.
//
// A flush puts nothing on the wire, and holds up nothing that is posted behind it. It
// makes its entry also in a queue that was bound with BindSelective, and no counter
// counts it. It takes a place among the operations under way, and fails with ErrAgain as
// they do; without a completion queue it is refused with ErrNoCQ.
func (ep *Endpoint) Flush(dest Address, context any) error {
	if err := ep.there(); err != nil {
		return err
	}
	switch {
	case ep.ended.Load():
		return ep.errEnded()
	case !ep.ready():
		return ep.unready()
	case ep.cq == nil:
		return errno.Refuse(ErrNoCQ,
			"xdpfab: endpoint %d: a flush is told of by a completion alone: bind a completion queue, "+
				"or wait for the counters", ep.number)
	}
	peer := engine.PeerID(0) // all
	if dest != NoAddress {
		var err error
		if peer, err = ep.peer(dest); err != nil {
			return err
		}
	}
	s, err := ep.claim(0)
	if err != nil {
		ep.stepper.Start()
		return err
	}
	(&Msg{Context: context, Dest: dest}).describe(s.Submission, engine.VerbFlush, peer, 0, 0)
	ep.hand(s)
	ep.stepper.Notify()
	return nil
}

// Quiet waits until everything has ended that the domain's endpoints have posted.
func (d asDialer) Quiet(ctx context.Context) error {
	if err := d.Err(); err != nil {
		return errno.Unsent(err)
	}
	d.mu.Lock()
	eps := make([]*endpoint, 0, len(d.endpoints))
	for _, ep := range d.endpoints {
		eps = append(eps, ep)
	}
	d.mu.Unlock()
	var quiets []func() error
	for _, ep := range eps {
		p := ep.anyPeer()
		if p == nil {
			continue
		}
		w, err := startFlush(ctx, p)
		if err != nil {
			return errno.Join(err, d.Err())
		}
		quiets = append(quiets, func() error { return p.Await(ctx, flushAll, w) })
	}
	for _, wait := range quiets {
		if err := wait(); err != nil {
			return err
		}
	}
	return nil
}

// flushAll is a flush of all peers of an endpoint.
var flushAll = calls.Call{Verb: engine.VerbFlush, All: true}

// startFlush begins a flush, and waits for room if there is none.
func startFlush(ctx context.Context, p *calls.Peer) (*calls.Waiter, error) {
	for {
		w, err := p.Start(ctx, flushAll)
		if !errors.Is(err, ErrAgain) {
			return w, err
		}
		select {
		case <-ctx.Done(): // the next attempt returns the error
		case <-time.After(drainPoll):
		}
	}
}

// anyPeer returns a peer of the endpoint for calls, or nil if it has none.
func (ep *endpoint) anyPeer() *calls.Peer {
	ep.mu.Lock()
	defer ep.mu.Unlock()
	if !ep.ready() {
		return nil
	}
	for _, n := range ep.names {
		r := ep.route(n, n.addr.String())
		if !ep.attr.dials {
			r.Cookie = asked
		}
		return &calls.Peer{Route: r} // not to be closed: the endpoint holds the name
	}
	return nil
}

// drained waits until no operation is published or in flight.
func (ep *endpoint) drained(ctx context.Context) error {
	for ep.origin != nil && ep.phase.Load() == draining {
		empty := true
		ep.stepper.Call(func() {
			for _, r := range ep.rings() { // what completes in the first may start what is in the second
				empty = empty && r.Empty()
			}
		})
		if empty {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(drainPoll):
		}
	}
	return nil
}

// drainPoll is the time between two looks of Shutdown whether everything has completed.
const drainPoll = 100 * time.Microsecond
