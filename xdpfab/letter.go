// SPDX-License-Identifier: Apache-2.0

package xdpfab

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/xdpfab/xdpfab/internal/matching"
	"github.com/xdpfab/xdpfab/internal/progress"
)

// letter is a call of Mailbox.Receive that waits: the context of its receive, and the
// place of the completion.
type letter struct {
	progress.Signal
	done matching.Done // set before the signal is raised
}

var spareLetters = sync.Pool{New: func() any { return &letter{Signal: progress.NewSignal()} }}

func (l *letter) recycle() {
	l.done = matching.Done{} // it refers to what the caller has
	spareLetters.Put(l)
}

// letters is the endpoint of a mailbox as the queue of its receives knows it. It
// implements matching.Sink: the place of a completion is in its letter, so there is
// always one.
type letters Endpoint

func (*letters) Take() bool { return true }

func (*letters) Return() {}

// Deliver runs on the engines' threads, and on those of callers that post, cancel or
// close. The caller that waits may have recycled the letter as soon as the signal is
// raised, and may be about to sleep in the port of another engine than the one that
// delivers.
func (ls *letters) Deliver(d *matching.Done) {
	l := d.Context.(*letter)
	l.done = *d
	l.Raise()
	ls.stepper.Eng.Alert()
}

// receive receives one message.
func (b *Mailbox) receive(ctx context.Context, m matching.Match, buf []byte) (Received, error) {
	if err := b.enter(ctx); err != nil {
		return Received{}, err
	}
	defer func() { <-b.places }()
	in, err := b.ep.receiving()
	if err != nil {
		return Received{}, err
	}
	l := spareLetters.Get().(*letter)
	defer l.recycle()
	l.Reset()
	if err := in.posted(in.queue.Post(&matching.Receive{Match: m, Context: l, Buf: buf})); err != nil {
		return Received{}, err
	}
	if !l.Ready() && b.ep.stepper.Wait(ctx, &l.Signal) != nil {
		b.takeBack(in.queue, l)
	}
	return b.open(ctx, l, buf)
}

// enter waits for a place in the queue of receives. The calls that have the places make
// progress meanwhile.
func (b *Mailbox) enter(ctx context.Context) error {
	if ctx.Err() != nil {
		return b.nothing(ctx)
	}
	select {
	case b.places <- struct{}{}:
		return nil
	case <-ctx.Done():
		return b.nothing(ctx)
	}
}

// nothing returns the error of a call whose context has ended.
func (b *Mailbox) nothing(ctx context.Context) error {
	return fmt.Errorf("xdpfab: mailbox %d: no message was taken: %w", b.ep.number, context.Cause(ctx))
}

// takeBackPoll is the time between two attempts to take back a receive into which a
// message is going.
const takeBackPoll = time.Millisecond

// takeBack completes a receive whose caller waits no longer: as cancelled or, if a
// message is going into it, when that is complete or its session has ended, as it does
// when the message stalls.
func (b *Mailbox) takeBack(q *matching.Queue, l *letter) {
	for !q.Cancel(l) && !l.Ready() {
		ctx, cancel := context.WithTimeout(context.Background(), takeBackPoll)
		_ = b.ep.stepper.Wait(ctx, &l.Signal) // the loop looks at what has become of it
		cancel()
	}
}

// open returns the end of a receive in the form for callers.
func (b *Mailbox) open(ctx context.Context, l *letter, buf []byte) (Received, error) {
	switch d := &l.done; {
	case d.Reason == matching.Received:
		return received(d, buf), nil
	case d.Atomic:
		return received(d, buf), fmt.Errorf("xdpfab: mailbox %d: tagged atomic on %d bytes from %v, which does not fit the buffer of %d and changed nothing: %w",
			b.ep.number, d.Length, d.From, len(buf), receiveErrors[d.Reason])
	case d.Reason == matching.Truncated:
		return received(d, buf), fmt.Errorf("xdpfab: mailbox %d: message of %d bytes from %v, buffer of %d: give a longer one: %w",
			b.ep.number, d.Length, d.From, len(buf), ErrTruncated)
	case ctx.Err() != nil:
		return Received{}, b.nothing(ctx)
	}
	return Received{}, fmt.Errorf("xdpfab: mailbox %d: %w", b.ep.number, b.ep.dom.node.End.Closed())
}
