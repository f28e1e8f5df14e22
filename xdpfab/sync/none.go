// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"context"

	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/xdpfab"
)

// made returns a part, or none with the error of its constructor.
func made[T any](part *T, err error) (*T, error) {
	if err != nil {
		return nil, err
	}
	return part, nil
}

// none is the error of a call on a part that is nil or a zero value, unless there is one.
// Most often the program has not looked at the error of the constructor.
func none(there bool, what, makes string) error {
	if there {
		return nil
	}
	return errno.Unsent(errno.Refuse(xdpfab.ErrClosed, "xdpfab: the %s is nil or a zero value: want one of %s, whose "+
		"error says why there is none", what, makes))
}

// there returns an error if nothing is held.
func (h *Held) there() error {
	return none(h != nil && h.ctx != nil, "Held", "a lock or a semaphore")
}

// closed is the context of what is not held.
func closed(err error) context.Context {
	ctx, end := context.WithCancelCause(context.Background())
	end(err)
	return ctx
}

// Each of these returns an error if the part is none.
func (m *Mutex) there() error { return none(m != nil && m.part != nil, "Mutex", "NewMutex") }
func (s *Semaphore) there() error {
	return none(s != nil && s.queue != nil, "Semaphore", "NewSemaphore")
}
func (m *RWMutex) there() error { return none(m != nil && m.readers != nil, "RWMutex", "NewRWMutex") }
func (s *Sequencer) there() error {
	return none(s != nil && s.part != nil, "Sequencer", "NewSequencer")
}
func (q *Queue) there() error   { return none(q != nil && q.part != nil, "Queue", "NewQueue") }
func (b *Barrier) there() error { return none(b != nil && b.part != nil, "Barrier", "NewBarrier") }
func (c *Countdown) there() error {
	return none(c != nil && c.part != nil, "Countdown", "NewCountdown")
}
func (l *Limiter) there() error  { return none(l != nil && l.part != nil, "Limiter", "NewLimiter") }
func (o *Once) there() error     { return none(o != nil && o.m != nil, "Once", "NewOnce") }
func (e *Election) there() error { return none(e != nil && e.m != nil, "Election", "NewElection") }
func (c *Counter) there() error  { return none(c != nil && c.shards != nil, "Counter", "NewCounter") }
func (h *Histogram) there() error {
	return none(h != nil && h.part != nil, "Histogram", "NewHistogram")
}
func (b *Board) there() error { return none(b != nil && b.part != nil, "Board", "NewBoard") }
