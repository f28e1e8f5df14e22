// SPDX-License-Identifier: Apache-2.0

package xdpfab

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/progress"
	"github.com/xdpfab/xdpfab/internal/wire"
	"github.com/xdpfab/xdpfab/mr"
)

// Peer is an endpoint of another node that has been dialled. Its methods wait for the
// operation to end; any number of goroutines may call them.
type Peer struct {
	ep     *Endpoint
	use    *name // the name of the address dialled
	peer   *engine.Peer
	name   string // as dialled
	cookie uint64 // of its operations: asked, if the endpoint has other operations too
	closed atomic.Bool
	open   context.Context // ends with Close, which ends the watches
	end    context.CancelFunc
}

// Dial opens a session to the endpoint at addr: a MAC address for raw Ethernet or an IP
// address for UDP, each optionally with "/" and an endpoint number. It fails with
// ErrPeerSilent when there is no answer within the domain's GiveUp time, with ErrRefused
// when the node has no such endpoint, or with the context.
func (d *Domain) Dial(ctx context.Context, addr string) (*Peer, error) {
	ep, err := d.dialEndpoint()
	if err != nil {
		return nil, err
	}
	return d.dialFrom(ctx, ep, addr)
}

// dialFrom is Dial from one of the domain's own endpoints.
func (d *Domain) dialFrom(ctx context.Context, ep *Endpoint, addr string) (*Peer, error) {
	a, link, err := d.resolve(ctx, addr)
	if err != nil {
		return nil, err
	}
	use, err := ep.dial(a, link)
	if err != nil {
		return nil, err
	}
	p := newPeer(ep, use, addr)
	d.keep(p, "peer "+addr)
	if err := p.do(ctx, call{verb: engine.VerbConnect}); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

func newPeer(ep *Endpoint, use *name, addr string) *Peer {
	p := &Peer{ep: ep, use: use, peer: use.peer, name: addr}
	p.open, p.end = context.WithCancel(context.Background())
	return p
}

// dialEndpoint makes, at first use, the endpoint that dialled peers share.
func (d *Domain) dialEndpoint() (*Endpoint, error) {
	d.mu.Lock()
	ep := d.dialer
	d.mu.Unlock()
	if ep != nil {
		return ep, nil
	}
	ep, err := d.NewEndpoint(EndpointAttr{Number: AnyNumber, InitiateOnly: true, Size: 4096, dials: true})
	if err != nil {
		return nil, err
	}
	if err := ep.Enable(); err != nil {
		return nil, errors.Join(err, ep.Close())
	}
	d.mu.Lock()
	if d.dialer == nil {
		d.dialer = ep
	}
	mine := d.dialer
	d.mu.Unlock()
	if mine != ep { // another goroutine was faster
		return mine, ep.Close()
	}
	return ep, nil
}

// Addr returns the address that was dialled.
func (p *Peer) Addr() string { return p.name }

// Close ends this use of the peer: later calls fail with ErrClosed, and watches end. With
// the last use the session ends, and operations that wait complete with what is known of
// them; as long as another Dial uses the same endpoint, session and operations go on.
// Closing twice is no error.
func (p *Peer) Close() error {
	if p.closed.Swap(true) {
		return nil
	}
	p.end()
	p.ep.hangUp(p.use)
	p.ep.dom.forget(p)
	return nil
}

func (p *Peer) errClosed() error { return fmt.Errorf("xdpfab: peer %s: %w", p.name, ErrClosed) }

// Watch waits until the session to the peer has ended, and returns the reason: an error
// that wraps ErrPeerSilent (also when the peer has not answered probes for the give-up
// time), ErrPeerRestarted, ErrPeerClosed or ErrClosed. It returns ErrPeerRestarted also
// if the session goes on without the peer's process, because the kernel executes it:
// everything but the resident regions is lost then. It tells nothing of a region that
// is registered anew while the peer's process serves: Remote.Guard does. Without a
// watch, only the next operation notices a peer's end. If ctx ends first, its error is
// returned.
func (p *Peer) Watch(ctx context.Context) error {
	// Close ends a watch in any state: while it waits for room, in the queue, or in
	// place.
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(p.open, func() { cancel(p.errClosed()) })()
	return p.do(ctx, call{verb: engine.VerbWatch})
}

// call is an operation to be waited for. Its buffers may be on the caller's
// stack: they are copied in and out.
type call struct {
	verb             wire.Verb
	op, datatype     uint8
	count            uint32
	key, offset      uint64
	incarnation      uint32 // of the region meant; 0 means any region that has the key
	operand, compare []byte
	result           []byte
}

// waiter is a call under way. It owns the buffers that the engine reads and writes, so
// that a caller whose context ends can leave at once; the completion then recycles the
// waiter.
type waiter struct {
	progress.Signal
	mu       sync.Mutex // guards the fields that decide which side recycles the waiter
	finished bool
	outcome  *outcome // of an abandoned call
	err      error
	buf      []byte // long operands
	result   []byte // of the operation, in inline or in long
	long     []byte
	inline   [engine.InlineResult]byte
	p        *Peer
}

var waiters = sync.Pool{New: func() any { return &waiter{Signal: progress.NewSignal()} }}

// do posts an operation and waits for its end.
func (p *Peer) do(ctx context.Context, c call) error { return p.scatter(ctx, c, nil) }

// scatter is do for an operation on extents, which the operation owns from then on. They
// are no part of the call, since they are on the heap, and its buffers would have to be
// there too.
func (p *Peer) scatter(ctx context.Context, c call, extents []mr.Extent) error {
	w, err := p.start(ctx, c, extents)
	if err != nil {
		return err
	}
	return p.await(ctx, c, w)
}

// start posts an operation. The waiter returned is for await, once.
func (p *Peer) start(ctx context.Context, c call, extents []mr.Extent) (*waiter, error) {
	if p.closed.Load() {
		return nil, p.errClosed()
	}
	if ctx.Err() != nil {
		return nil, p.interrupted(ctx, c, nil)
	}
	w := waiters.Get().(*waiter)
	w.Reset()
	w.p, w.err, w.finished, w.outcome = p, nil, false, nil
	s, err := p.claim(ctx, c)
	if err != nil {
		waiters.Put(w)
		return nil, err
	}
	s.Peer, s.Cookie, s.Context = p.peer.ID(), p.cookie, w
	s.Key, s.Incarnation, s.Offset, s.Count = c.key, c.incarnation, c.offset, c.count
	s.Verb, s.Opcode, s.Datatype = c.verb, c.op, c.datatype
	if extents != nil {
		s.SetExtents(extents)
	}
	w.fill(s.Submission, c)
	p.ep.hand(s)
	p.ep.stepper.Eng.Notify()
	return w, nil
}

// await waits for the end of an operation that start has posted.
func (p *Peer) await(ctx context.Context, c call, w *waiter) error {
	err := p.ep.stepper.Wait(ctx, &w.Signal)
	if err != nil {
		p.letGo(w)
		if o := w.abandon(); o != nil { // no thread steps the engine any more
			return p.interrupted(ctx, c, o)
		}
		err = p.cancelled(ctx, c, w.err)
	} else {
		err = w.err
	}
	copy(c.result, w.result)
	w.recycle()
	return err
}

// keptBuffer is the most bytes that a waiter keeps memory for between calls.
const keptBuffer = 64 << 10

// recycle makes the waiter another call's.
func (w *waiter) recycle() {
	if cap(w.buf) > keptBuffer {
		w.buf = nil
	}
	if cap(w.long) > keptBuffer {
		w.long, w.result = nil, nil
	}
	waiters.Put(w)
}

// fill gives a submission the buffers of a call: copies, if they are short, and copies
// that the waiter owns, if they are long.
func (w *waiter) fill(s *engine.Submission, c call) {
	w.buf = w.buf[:0]
	if !s.SetInline(c.operand, c.compare) {
		w.buf = append(append(w.buf, c.operand...), c.compare...)
		n, m := len(c.operand), len(w.buf)
		s.SetOperands(w.buf[:n:n], w.buf[n:m:m])
	}
	w.result = w.inline[:0]
	if n := len(c.result); n > engine.InlineResult {
		w.long = slices.Grow(w.long[:0], n)[:n]
		clear(w.long) // of the call before
		w.result, s.Result = w.long, w.long
	}
}

// letGo completes the operation of a waiter at once, with what is known of it.
func (p *Peer) letGo(w *waiter) {
	p.ep.stepper.Call(func() {
		p.ep.stepper.Eng.Collect(p.ep.ring)
		if !p.peer.Cancel(w) {
			p.ep.ring.Withdraw(w)
		}
	})
}

// cancelled returns the error of a call whose context has ended, from the error of the
// operation that was abandoned.
func (p *Peer) cancelled(ctx context.Context, c call, err error) error {
	var oe *OpError
	if !errors.As(err, &oe) || oe.Cause != context.Canceled {
		return err // the operation ended for a reason of its own
	}
	if c.verb == engine.VerbWatch {
		return context.Cause(ctx)
	}
	oe.Cause = context.Cause(ctx)
	if !effect(c.verb) {
		oe.Certainty, oe.outcome = ErrNotExecuted, nil
	}
	return oe
}

// interrupted returns the error of a call whose context has ended: before the operation
// was posted, or with an outcome that is still to come. Of operations without effect
// nothing is unknown.
func (p *Peer) interrupted(ctx context.Context, c call, o *outcome) error {
	certainty := ErrOutcomeUnknown
	if o == nil || !effect(c.verb) {
		certainty, o = ErrNotExecuted, nil
	}
	cause := context.Cause(ctx)
	if cause == nil { // the domain has ended
		cause = p.ep.dom.node.End.Closed()
	}
	var s engine.Submission
	s.Verb, s.Opcode, s.Datatype, s.Count, s.Offset = c.verb, c.op, c.datatype, c.count, c.offset
	s.SetInline(c.operand, nil)
	return &OpError{Op: nameOf(&s), Peer: p.name, Certainty: certainty, Cause: cause, outcome: o, stepper: p.ep.stepper}
}

// claim gets a submission; it waits while the peer may not have another entry.
func (p *Peer) claim(ctx context.Context, c call) (claimed, error) {
	if err := p.use.berth.enter(ctx); err != nil {
		return claimed{}, p.interrupted(ctx, c, nil)
	}
	s, err := p.ep.claim(nil, p.cookie)
	if err != nil {
		p.use.berth.cancel()
	}
	return s, err
}

// Complete implements the engine's Completer. The signal is raised before the lock is
// given up, so that a caller that leaves at this very moment recycles the waiter only
// afterwards.
func (w *waiter) Complete(s *engine.Submission, c *engine.Completion, later *engine.Later) {
	w.p.use.berth.leave()
	var err error
	if c.Fate != engine.Success {
		err = errorOf(resultOf(s, c, later), nameOf(s), w.p.name).by(w.p.ep.stepper)
	}
	if s.Result == nil && c.Flags&(engine.CompletedWrite|engine.CompletedSend) == 0 { // Length is that of the operand otherwise
		w.inline = c.Inline
		w.result = w.inline[:min(c.Length, engine.InlineResult)]
	}
	w.mu.Lock()
	abandoned := w.outcome
	if abandoned == nil {
		w.err, w.finished = err, true
		w.Raise()
	}
	w.mu.Unlock()
	if abandoned != nil {
		abandoned.settle(c.Result(later), w.result)
		w.recycle()
	}
}

// abandon leaves the waiter to the completion, and returns the outcome that the
// completion will settle. It returns nil when the completion came first, and the waiter
// is still the caller's.
func (w *waiter) abandon() *outcome {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.finished {
		w.outcome = newOutcome()
	}
	return w.outcome
}
