// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/xdpfab"
)

// QueueBytes returns the size of a Queue with room for the given number of values.
func QueueBytes(room int) int { return bytesOf(queueHead + 2*room) }

const (
	takenWord = bodyWord + iota
	putWord
	queueHead = 8
)

// mostPause is how long those who wait for a queue, a barrier or a countdown pause.
const mostPause = time.Millisecond

// Queue is a first-in, first-out queue of values with bounded room, for any number of
// producers and consumers.
//
//	word 2                 how many values were taken, at least
//	word 3                 how many were put, at least
//	words 8 + 2i, 9 + 2i   cell i: a value, and a count: 16 bytes that change together
//
// Value number p passes through cell p mod room, in lap p div room of that cell. The
// count of a cell is 2 * lap while the cell waits for the value, and 2 * lap + 1 while it
// holds it.
//
// Invariant: the count of a cell grows by one at a time, together with the value. Cell p
// is filled after cell p - 1, and emptied after it. So no program can block another, at
// whatever point it dies. A value is taken once; if the program that took it dies, the
// value is gone. Words 2 and 3 are hints where to look first.
type Queue struct {
	*part
	room uint64
	told uint64 // the epoch of the memory that the program was told of
}

// NewQueue returns the queue at a place, with room for the given number of values. All
// programs must name the same room.
func NewQueue(ctx context.Context, at Place, room int) (*Queue, error) {
	if room < 1 || room > mostWords {
		return nil, errno.Refuse(ErrParameter, "xdpfab: NewQueue with room for %d values: want 1 to %d", room,
			mostWords)
	}
	p, err := newPart(ctx, at, kindQueue, queueHead+2*uint64(room), uint64(room))
	if err != nil {
		return nil, err
	}
	return &Queue{part: p, room: uint64(room), told: p.epoch}, nil
}

// Put waits until there is room, and puts a value. Its errors are those of TryPut.
func (q *Queue) Put(ctx context.Context, v uint64) (err error) {
	if err := q.there(); err != nil {
		return err
	}
	defer q.named("Put", &err)
	full := func() string {
		return fmt.Sprintf("the queue was full, at its room of %d: have a program take some, or %s", q.room, moreTime)
	}
	return q.until(ctx, mostPause, full, func() (bool, error) { return q.TryPut(ctx, v) })
}

// Take waits until there is a value, and takes the oldest. Its errors are those of
// TryTake.
func (q *Queue) Take(ctx context.Context) (v uint64, err error) {
	if err := q.there(); err != nil {
		return 0, err
	}
	defer q.named("Take", &err)
	empty := func() string { return "the queue was empty: have a program put a value, or " + moreTime }
	err = q.until(ctx, mostPause, empty, func() (ok bool, err error) {
		v, ok, err = q.TryTake(ctx)
		return ok, err
	})
	return v, err
}

// TryPut puts a value if there is room, and reports whether there was. If the error wraps
// ErrOutcomeUnknown, the value may have been put. If the error wraps ErrMemoryLost, the
// home has lost all values of the queue; TryPut reports each loss once, and has not put
// the value unless the error also wraps ErrOutcomeUnknown.
func (q *Queue) TryPut(ctx context.Context, v uint64) (ok bool, err error) {
	if err := q.there(); err != nil {
		return false, err
	}
	defer q.named("TryPut", &err)
	_, ok, err = q.pass(ctx, putWord, func(was xdpfab.U128, lap uint64) (to xdpfab.U128, state int) {
		return xdpfab.U128{Hi: 2*lap + 1, Lo: v}, cmp.Compare(was.Hi, 2*lap)
	})
	return ok, err
}

// TryTake takes the oldest value if there is one, and reports whether there was. If the
// error wraps ErrOutcomeUnknown, v is a value that was taken or is still in the queue.
// ErrMemoryLost is as for TryPut.
func (q *Queue) TryTake(ctx context.Context) (v uint64, ok bool, err error) {
	if err := q.there(); err != nil {
		return 0, false, err
	}
	defer q.named("TryTake", &err)
	return q.pass(ctx, takenWord, func(was xdpfab.U128, lap uint64) (to xdpfab.U128, state int) {
		return xdpfab.U128{Hi: 2 * (lap + 1)}, cmp.Compare(was.Hi, 2*lap+1)
	})
}

// step tells what becomes of a cell in a lap, and whether it is ready for that (0), not
// yet (-1), or no more (1).
type step func(was xdpfab.U128, lap uint64) (to xdpfab.U128, state int)

// errValuesLost is the loss of the memory.
var errValuesLost = fmt.Errorf("%w, and with it the values of the queue: put those again that are needed",
	ErrMemoryLost)

// pass runs attempts, until one of them was not ended by a restart of the home.
func (q *Queue) pass(ctx context.Context, hint uint64, s step) (v uint64, ok bool, err error) {
	for {
		m, err := q.memory(ctx)
		if err != nil {
			return 0, false, err
		}
		if q.anew(&q.told, m) {
			return 0, false, errValuesLost
		}
		v, ok, changes, err := q.attempt(ctx, m, hint, s)
		unknown := changes && !errors.Is(err, xdpfab.ErrNotExecuted)
		switch restarted := q.restarted(m, err); {
		case err == nil:
			return v, ok, nil
		case unknown:
			err = certain(ctx, err, xdpfab.ErrOutcomeUnknown)
		default: // a look that failed changes nothing, whether it ran or not
			if err = certain(ctx, err, xdpfab.ErrNotExecuted); !restarted {
				return 0, false, err
			}
		}
		now, failure := q.memory(ctx)
		switch {
		case failure != nil:
			if unknown { // of the change, whatever is known of this look
				failure = certain(ctx, failure, xdpfab.ErrOutcomeUnknown)
			}
			return v, false, errno.Also(failure, err)
		case now.epoch != m.epoch:
			q.anew(&q.told, now)
			lost := errValuesLost
			if unknown {
				lost = fmt.Errorf("%w: %w", xdpfab.ErrOutcomeUnknown, lost)
			}
			return v, false, errno.Also(lost, err) // the remedies of err are for handles
		case unknown:
			return v, false, err
		}
	}
}

// attempt goes from cell to cell, from the one that a hint names, until it changes one,
// or finds one that is not ready. It returns the value that was in the cell, and, of an
// error, whether it is that of the change.
func (q *Queue) attempt(ctx context.Context, m *memory, hint uint64, s step) (v uint64, ok, changes bool, err error) {
	p, err := m.at(hint).Load(ctx)
	for err == nil {
		cell := m.cell(queueHead/2 + p%q.room)
		was, err := cell.Load(ctx)
		if err != nil {
			return 0, false, false, err
		}
		to, state := s(was, p/q.room)
		switch state {
		case -1:
			return 0, false, false, nil
		case 1:
			p++
			continue
		}
		now, _, err := cell.CompareAndExchange(ctx, was, to)
		if now, err = xdpfab.Settle(ctx, now, err); err != nil {
			return was.Lo, false, true, err
		}
		if now == was { // otherwise another program was faster: look at the cell again
			m.at(hint).StartApply(ctx, atomic.Max, p+1)
			return was.Lo, true, false, nil
		}
	}
	return 0, false, false, err
}
