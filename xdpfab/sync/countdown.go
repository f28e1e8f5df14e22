// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"context"
	"fmt"
	"math/bits"

	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/xdpfab"
)

// CountdownBytes returns the size of a Countdown of the given number of tasks.
func CountdownBytes(tasks int) int { return bytesOf(countdownWords(tasks)) }

func countdownWords(tasks int) int { return bodyWord + (tasks+63)/64 }

// Countdown lets programs wait until a number of tasks are done.
//
//	word 2 + i   bit b: task 64 i + b is done
//
// Invariant: a bit that is set stays set. So a task can be marked twice without harm:
// after an unknown outcome, or by another program that has taken it over.
type Countdown struct {
	*part
	tasks int
	told  uint64 // the epoch of the memory that the program was told of
}

// NewCountdown returns the countdown at a place. All programs must name the same number
// of tasks.
func NewCountdown(ctx context.Context, at Place, tasks int) (*Countdown, error) {
	if tasks < 1 || tasks > mostWords {
		return nil, errno.Refuse(ErrParameter, "xdpfab: NewCountdown with %d tasks: want 1 to %d", tasks, mostWords)
	}
	p, err := newPart(ctx, at, kindCountdown, uint64(countdownWords(tasks)), uint64(tasks))
	if err != nil {
		return nil, err
	}
	return &Countdown{part: p, tasks: tasks, told: p.epoch}, nil
}

// Done marks a task as done. Tasks are numbered from 0. After an error Done may be called
// again. It fails once with ErrMemoryLost if the home has lost its memory since the
// program was last told: see Wait. The task itself is marked then.
func (c *Countdown) Done(ctx context.Context, task int) (err error) {
	if err := c.there(); err != nil {
		return err
	}
	defer c.named("Done", &err)
	if task < 0 || task >= c.tasks {
		return errno.Unsent(errno.Refuse(xdpfab.ErrOutOfBounds, "task %d of %d: want 0 to %d", task, c.tasks,
			c.tasks-1))
	}
	return c.run(ctx, func(m *memory) error {
		was, err := xdpfab.SetBit(ctx, m.at(bodyWord+uint64(task)/64), task%64)
		if _, err = xdpfab.Settle(ctx, was, err); err == nil && c.anew(&c.told, m) {
			err = errMarksLost
		}
		return err
	})
}

// errMarksLost is the loss of the memory.
var errMarksLost = fmt.Errorf("%w: call Done again for each task that was done", ErrMemoryLost)

// Left returns how many tasks are not done.
func (c *Countdown) Left(ctx context.Context) (left int, err error) {
	if err := c.there(); err != nil {
		return 0, err
	}
	defer c.named("Left", &err)
	err = c.look(ctx, func(m *memory) error {
		left, err = c.count(ctx, m)
		return err
	})
	return left, err
}

// Wait waits until all tasks are done. It fails once with ErrMemoryLost if the home has
// lost its memory, before the call or meanwhile, unless Done has told of that. Then each
// program calls Done again for its tasks, which does no harm.
func (c *Countdown) Wait(ctx context.Context) (err error) {
	if err := c.there(); err != nil {
		return err
	}
	defer c.named("Wait", &err)
	first, err := c.memory(ctx)
	if err != nil {
		return err
	}
	left := 0
	open := func() string {
		return fmt.Sprintf("%d of %d tasks were not done: call Wait again, or %s", left, c.tasks, moreTime)
	}
	return c.until(ctx, mostPause, open, func() (bool, error) {
		err := c.run(ctx, func(m *memory) error {
			if c.anew(&c.told, m) || m.epoch != first.epoch {
				return errMarksLost
			}
			left, err = c.count(ctx, m)
			return err
		})
		return err == nil && left == 0, certain(ctx, again(ctx, err), xdpfab.ErrNotExecuted)
	})
}

// count returns how many bits are not set.
func (c *Countdown) count(ctx context.Context, m *memory) (left int, err error) {
	done := make([]uint64, c.size-bodyWord)
	err = m.words.LoadRange(ctx, m.first+bodyWord, done)
	left = c.tasks
	for _, w := range done {
		left -= bits.OnesCount64(w)
	}
	return left, err
}
