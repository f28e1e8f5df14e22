// SPDX-License-Identifier: Apache-2.0

package calls

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/node"
)

// Route is how calls reach a peer.
type Route struct {
	Poster    Poster
	Node      *node.Node
	Stepper   *node.Stepper
	Ring      *engine.Ring
	Peer      *engine.Peer
	Allotment *Allotment
	Name      string        // of the peer, in errors
	Cookie    uint64        // of the operations
	GiveUp    time.Duration // silence of the peer after which operations are given up
	Alone     bool          // the program makes no two calls at a time on the domain
	// Beside opens the way of requests; nil if there is none.
	Beside func(context.Context) (*Peer, error)
	Leave  func() // ends this use of the peer; nil for a peer that Close is not called for
}

// Peer is an endpoint of another node. Any number of goroutines may call it.
type Peer struct {
	Route
	closed atomic.Bool
	heard  atomic.Bool          // it has answered when it was dialled
	caller atomic.Pointer[Peer] // for requests: see Caller
	open   context.Context      // ends with Close, which ends the watches
	end    context.CancelFunc
}

// NewPeer returns the peer at the end of a route.
func NewPeer(r Route) *Peer {
	p := &Peer{Route: r}
	p.open, p.end = context.WithCancel(context.Background())
	return p
}

// Close ends this use of the peer: later calls fail, and watches end. Closing twice is no
// error.
func (p *Peer) Close() error {
	if p.closed.Swap(true) {
		return nil
	}
	p.end()
	p.Leave()
	if c := p.caller.Load(); c != nil {
		return c.Close()
	}
	return nil
}

// Closed reports whether this use of the peer has ended.
func (p *Peer) Closed() bool { return p.closed.Load() }

func (p *Peer) errClosed() error {
	return errno.Refuse(errno.Closed, "xdpfab: peer %s is closed: dial it again", p.Name)
}

// AfterClose calls f with the error of a closed peer when the peer is closed, unless
// stop is called before.
func (p *Peer) AfterClose(f func(error)) (stop func() bool) {
	return context.AfterFunc(p.open, func() { f(p.errClosed()) })
}

// Watch waits until the session to the peer has ended, and returns the reason.
func (p *Peer) Watch(ctx context.Context) error {
	if err := errno.NoContext(ctx); err != nil {
		return err
	}
	// Close ends a watch in any state: while it waits for room, in the queue, or in
	// place.
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer p.AfterClose(cancel)()
	return p.Do(ctx, Call{Verb: engine.VerbWatch})
}

// Do posts an operation and waits for its end.
func (p *Peer) Do(ctx context.Context, c Call) error {
	w, err := p.Start(ctx, c)
	if err != nil {
		return err
	}
	return p.Await(ctx, c, w)
}
