// SPDX-License-Identifier: Apache-2.0

package calls

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/progress"
	"github.com/xdpfab/xdpfab/internal/wire"
	"github.com/xdpfab/xdpfab/mr"
)

// Call is an operation to be waited for. Its buffers may be on the caller's
// stack: they are copied in and out.
type Call struct {
	Verb             wire.Verb
	Op, Datatype     uint8
	Count            uint32
	Key, Offset      uint64
	At               []uint64 // elements of the array at Offset, one of each; nil means Count from the first on
	Incarnation      uint32   // of the region meant; 0 means any region that has the key
	Operand, Compare []byte
	Result           []byte
	Signal           *wire.Signal
	All              bool // of a flush: it is one of all peers
}

// Waiter is a call under way. It owns the buffers that the engine reads and writes, so
// that a caller whose context ends can leave at once; the completion then recycles the
// waiter.
type Waiter struct {
	progress.Signal
	mu       sync.Mutex // guards the fields that decide which side recycles the waiter
	finished bool
	outcome  *Outcome // of an abandoned call
	err      error
	buf      []byte // long operands
	result   []byte // of the operation, in inline or in long
	long     []byte
	inline   [engine.InlineResult]byte
	p        *Peer
}

var waiters = sync.Pool{New: func() any { return &Waiter{Signal: progress.NewSignal()} }}

// Start posts an operation. The waiter returned is for Await, once.
func (p *Peer) Start(ctx context.Context, c Call) (*Waiter, error) {
	if p.closed.Load() {
		return nil, errno.Unsent(p.errClosed())
	}
	if ctx == nil {
		return nil, errno.NoContext(ctx)
	}
	if ctx.Err() != nil {
		return nil, p.interrupted(ctx, c, nil)
	}
	w := waiters.Get().(*Waiter)
	w.Reset()
	w.p, w.err, w.finished, w.outcome = p, nil, false, nil
	s, err := p.claim(ctx, c)
	if err != nil {
		waiters.Put(w)
		return nil, errno.Unsent(err)
	}
	s.Peer, s.Cookie, s.Context = p.Peer.ID(), p.Cookie, w
	if c.All {
		s.Peer = 0
	}
	s.Key, s.Incarnation, s.Offset, s.Count = c.Key, c.Incarnation, c.Offset, c.Count
	s.Verb, s.Opcode, s.Datatype = c.Verb, c.Op, c.Datatype
	if c.At != nil {
		scatter(s.MakeExtents(len(c.At)), c)
	}
	w.fill(s.Submission, c)
	if c.Verb == wire.VerbWait {
		s.SetLimit(limitOf(ctx))
	}
	if c.Signal != nil {
		s.SetSignal(c.Signal)
	}
	p.Poster.Hand(s)
	p.Stepper.Eng.Notify()
	return w, nil
}

// Await waits for the end of an operation that Start has posted.
func (p *Peer) Await(ctx context.Context, c Call, w *Waiter) error {
	err := p.Stepper.Wait(ctx, &w.Signal)
	if c.Verb == wire.VerbWait {
		if known, ended := p.outwait(ctx, c, w, err); ended {
			return known
		}
	}
	if err != nil {
		silence := p.letGo(w)
		if o := w.detach(); o != nil { // no thread steps the engine from now on
			return p.interrupted(ctx, c, o)
		}
		err = p.cancelled(ctx, c, w.err, silence)
	} else {
		err = w.err
	}
	if err == nil {
		copy(c.Result, w.result)
	}
	w.recycle()
	return err
}

// scatter writes the extents of a call's elements.
func scatter(extents []mr.Extent, c Call) {
	size := uint64(atomic.Datatype(c.Datatype).Size())
	for i, index := range c.At {
		extents[i] = mr.Extent{Offset: c.Offset + index*size, Key: c.Key, Count: 1}
	}
}

// keptBuffer is the most bytes that a waiter keeps memory for between calls.
const keptBuffer = 64 << 10

// recycle makes the waiter another call's.
func (w *Waiter) recycle() {
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
func (w *Waiter) fill(s *engine.Submission, c Call) {
	w.buf = w.buf[:0]
	if !s.SetInline(c.Operand, c.Compare) {
		w.buf = append(append(w.buf, c.Operand...), c.Compare...)
		n, m := len(c.Operand), len(w.buf)
		s.SetOperands(w.buf[:n:n], w.buf[n:m:m])
	}
	w.result = w.inline[:0]
	if n := len(c.Result); n > engine.InlineResult {
		w.long = slices.Grow(w.long[:0], n)[:n]
		clear(w.long) // of the call before
		w.result, s.Result = w.long, w.long
	}
}

// letGo completes the operation of a waiter at once, with what is known of it. It returns
// what is known of the peer, if that seems to be silent.
func (p *Peer) letGo(w *Waiter) (silence *engine.Silence) {
	p.Stepper.Call(func() {
		silence = p.Peer.Troubled()
		p.Stepper.Eng.Collect(p.Ring)
		if !p.Peer.Cancel(w) {
			p.Ring.Withdraw(w)
		}
	})
	return silence
}

// cancelled returns the error of a call whose context ended, from the error of the
// operation that was abandoned.
func (p *Peer) cancelled(ctx context.Context, c Call, err error, silence *engine.Silence) error {
	if !errors.Is(err, context.Canceled) {
		return err // the operation ended for a reason of its own
	}
	if c.Verb == engine.VerbWatch {
		return context.Cause(ctx)
	}
	cause := context.Cause(ctx)
	if silence != nil {
		cause = &Silence{Cause: cause, Peer: p.Name, Node: p.Node, Known: silence}
	}
	return p.Poster.Left(err, cause, effect(c.Verb))
}

// interrupted returns the error of a call whose context ended: before the operation
// was posted, or with an outcome that is still to come. Of operations without effect
// nothing is unknown.
func (p *Peer) interrupted(ctx context.Context, c Call, o *Outcome) error {
	if !effect(c.Verb) {
		o = nil
	}
	cause := context.Cause(ctx)
	if cause == nil { // the domain has ended
		cause = p.Stepper.End.Closed("dial it again")
	}
	var s engine.Submission
	s.Verb, s.Opcode, s.Datatype, s.Count, s.Offset = c.Verb, c.Op, c.Datatype, c.Count, c.Offset
	s.SetInline(c.Operand, nil)
	if c.At != nil {
		scatter(s.MakeExtents(len(c.At)), c)
	}
	return p.Poster.Interrupted(NameOf(&s), p.Name, cause, o)
}

// claim gets a submission; it waits while the peer may not have another entry.
func (p *Peer) claim(ctx context.Context, c Call) (Claimed, error) {
	if err := p.Allotment.Enter(ctx); err != nil {
		return Claimed{}, p.interrupted(ctx, c, nil)
	}
	s, err := p.Poster.Claim(p.Cookie)
	if err != nil {
		p.Allotment.Cancel()
	}
	return s, err
}

// Complete implements the engine's Completer. The signal is raised before the lock is
// given up, so that a caller that leaves at this very moment recycles the waiter only
// afterwards.
func (w *Waiter) Complete(s *engine.Submission, c *engine.Completion, later *engine.Later) {
	w.p.Allotment.Leave()
	var err error
	switch {
	case c.Outcome != engine.Success:
		err = w.p.Poster.Failed(s, c, later, w.p.Name)
		if w.p.heard.Load() {
			HeardBefore(err)
		}
	case s.Verb == engine.VerbConnect:
		w.p.heard.Store(true)
	}
	// Length is that of the operand otherwise
	if s.Result == nil && c.Flags&(engine.CompletedWrite|engine.CompletedSend) == 0 {
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

// detach leaves the waiter to the completion, and returns the outcome that the
// completion will settle. It returns nil when the completion came first, and the waiter
// is still the caller's.
func (w *Waiter) detach() *Outcome {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.finished {
		w.outcome = newOutcome()
	}
	return w.outcome
}

// effect reports whether an operation changes anything at the peer.
func effect(v wire.Verb) bool {
	return v.Array() || v.Message() || v == wire.VerbCall || v == wire.VerbWait
}
