// SPDX-License-Identifier: Apache-2.0

package calls

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/matching"
	"github.com/xdpfab/xdpfab/internal/node"
	"github.com/xdpfab/xdpfab/internal/progress"
)

// BoxAttr are the attributes of a mailbox, as EndpointAttr has them.
type BoxAttr struct {
	Number, Receives, Buffered int
	TrafficClass               uint16
	AuthKey                    []byte
}

// Receiver is the endpoint of a mailbox.
type Receiver interface {
	Number() uint16
	Name() string
	Close() error
	// Dial opens a session from the endpoint.
	Dial(ctx context.Context, addr string) (*Peer, error)
	// Receives returns the queue to post receives to, as long as the endpoint is open.
	Receives() (*matching.Queue, error)
	// Posted returns the error for one of the queue.
	Posted(error) error
	// Cause returns the error for the reason of a receive that failed.
	Cause(matching.Reason) error
}

// Box receives messages for calls that wait.
type Box struct {
	Receiver
	stepper *node.Stepper
	places  chan struct{} // holds one token for each call in the queue of receives
}

// NewBox returns the mailbox of an endpoint whose receives go to [ReceiveCalls], and
// whose queue takes so many.
func NewBox(r Receiver, st *node.Stepper, receives int) *Box {
	return &Box{Receiver: r, stepper: st, places: make(chan struct{}, receives)}
}

// receiveCall is a call of Receive that waits: the context of its receive, and the place
// of the completion.
type receiveCall struct {
	progress.Signal
	done matching.Done // set before the signal is raised
}

var freeReceiveCalls = sync.Pool{New: func() any { return &receiveCall{Signal: progress.NewSignal()} }}

func (l *receiveCall) recycle() {
	l.done = matching.Done{} // it refers to what the caller has
	freeReceiveCalls.Put(l)
}

// ReceiveCalls is where the receives of a mailbox complete. It implements matching.Sink:
// the place of a completion is in its receive call, so there is always one.
type ReceiveCalls struct{ Stepper *node.Stepper }

// Take implements matching.Sink.
func (ReceiveCalls) Take() bool { return true }

// Return implements matching.Sink.
func (ReceiveCalls) Return() {}

// Deliver runs on the engines' threads, and on those of callers that post, cancel or
// close. The caller that waits may have recycled the receive call as soon as the signal
// is raised, and may be about to sleep in the port of another engine than the one that
// delivers.
func (ls ReceiveCalls) Deliver(d *matching.Done) {
	l := d.Context.(*receiveCall)
	l.done = *d
	l.Raise()
	ls.Stepper.Eng.Alert()
}

// Receive receives one message into buf, and returns the completion of the receive. It
// is empty if no message was taken.
func (b *Box) Receive(ctx context.Context, m matching.Match, buf []byte) (d matching.Done, err error) {
	began := time.Now()
	if err := b.enter(ctx, began); err != nil {
		return d, err
	}
	defer func() { <-b.places }()
	q, err := b.Receives()
	if err != nil {
		return d, err
	}
	l := freeReceiveCalls.Get().(*receiveCall)
	defer l.recycle()
	l.Reset()
	if err := q.Post(&matching.Receive{Match: m, Context: l, Buf: buf}); err != nil {
		return d, b.Posted(err)
	}
	if !l.Ready() && b.stepper.Wait(ctx, &l.Signal) != nil {
		b.takeBack(q, l)
	}
	return b.open(ctx, began, l, buf)
}

// enter waits for a place in the queue of receives. The calls that have the places make
// progress meanwhile.
func (b *Box) enter(ctx context.Context, began time.Time) error {
	if err := errno.NoContext(ctx); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return b.nothing(ctx, began)
	}
	select {
	case b.places <- struct{}{}:
		return nil
	case <-ctx.Done():
		return b.nothing(ctx, began)
	}
}

// nothing returns the error of a call whose context ended.
func (b *Box) nothing(ctx context.Context, began time.Time) error {
	return fmt.Errorf("xdpfab: mailbox %d: waited %v, and no message was taken: have a peer send one, or give the "+
		"context more time: %w", b.Number(), time.Since(began).Round(time.Millisecond), context.Cause(ctx))
}

// takeBackPoll is the time between two attempts to take back a receive into which a
// message is going.
const takeBackPoll = time.Millisecond

// takeBack completes a receive whose caller waits no longer: as cancelled or, if a
// message is going into it, when that is complete or its session has ended, as it does
// when the message stalls.
func (b *Box) takeBack(q *matching.Queue, l *receiveCall) {
	for !q.Cancel(l) && !l.Ready() {
		ctx, cancel := context.WithTimeout(context.Background(), takeBackPoll)
		_ = b.stepper.Wait(ctx, &l.Signal) // the loop looks at what has become of it
		cancel()
	}
}

// open returns the end of a receive.
func (b *Box) open(ctx context.Context, began time.Time, l *receiveCall, buf []byte) (matching.Done, error) {
	switch d := &l.done; {
	case d.Reason == matching.Received:
		return *d, nil
	case d.Atomic:
		return *d, fmt.Errorf("xdpfab: mailbox %d: tagged atomic on %d bytes from %v, which does not fit the buffer "+
			"of %d and changed nothing: %w",
			b.Number(), d.Length, d.From, len(buf), b.Cause(d.Reason))
	case d.Reason == matching.Truncated:
		return *d, errno.Refuse(b.Cause(d.Reason),
			"xdpfab: mailbox %d: message of %d bytes from %v is longer than the buffer of %d: give a longer one",
			b.Number(), d.Length, d.From, len(buf))
	case ctx.Err() != nil:
		return matching.Done{}, b.nothing(ctx, began)
	}
	return matching.Done{}, fmt.Errorf("xdpfab: mailbox %d: %w", b.Number(), b.stepper.End.Closed("make another one"))
}
