// SPDX-License-Identifier: Apache-2.0

package fi

import (
	"context"
	"fmt"
	"math"

	"github.com/xdpfab/xdpfab/internal/progress"
)

// Wait returns when at least n completions, with or without errors, can be read
// (fi_cq_sread with a threshold), with ErrSignalled after Signal, or with the context's
// error. With manual progress the call makes progress. Any number of goroutines may wait;
// a completion that one of them has read is gone for the others, who wait again.
func (q *CompletionQueue) Wait(ctx context.Context, n int) error {
	if err := q.there(); err != nil {
		return err
	}
	if err := q.mayWait(n); err != nil {
		return err
	}
	err := q.sleepers.wait(ctx, q, uint64(n), 0)
	return early(ctx, err, "%d completions, of which %d can be read,", n, q.readable())
}

// mayWait checks a wait for n completions.
func (q *CompletionQueue) mayWait(n int) error {
	if n < 1 || int64(n) > q.size {
		return fmt.Errorf("xdpfab: wait for %d completions: want 1..%d, the size of the queue", n, q.size)
	}
	return q.sleepers.refuse(q.what)
}

func (q *CompletionQueue) park(ctx context.Context, sig *progress.Signal) error {
	return q.sleepers.step(ctx, q.what, q.owner.Load(), sig)
}

// satisfied reports whether as many completions can be read as w wants. It reads the head
// first: the head cannot pass a tail that is read afterwards.
func (q *CompletionQueue) satisfied(w *sleeper) bool {
	n := q.own()
	return n >= w.want || n+q.arrivals.Load().shown(w.want-n) >= w.want
}

// own returns how many completions of the endpoints' operations can be read, and readable
// counts those of peers as well.
func (q *CompletionQueue) own() uint64 {
	head := q.head.Load()
	return q.tail.Load() - head + uint64(q.failures.shown.Load())
}

func (q *CompletionQueue) readable() uint64 {
	return q.own() + q.arrivals.Load().shown(math.MaxUint64)
}

// Signal ends every Wait under way with ErrSignalled, and makes the file descriptor
// readable if it is armed (fi_cq_signal). Without a waiter, it ends the next Wait or
// TryWait, so that it is never too early. A queue that was made with WaitNone has no use
// for it.
func (q *CompletionQueue) Signal() error {
	if err := q.there(); err != nil {
		return err
	}
	if err := q.sleepers.refuse(q.what); err != nil {
		return err
	}
	if err := q.ended(); err != nil {
		return err
	}
	q.sleepers.call()
	q.rouse()
	return nil
}

// rouse wakes a caller that waits and is asleep in the port.
func (q *CompletionQueue) rouse() {
	if st := q.owner.Load(); st != nil {
		st.Eng.Wake()
	}
}

// FD returns the file descriptor of a queue that was made with WaitFD (FI_GETWAIT). Its
// owner is the queue, which closes it. It is armed by TryWait, and then becomes readable
// when the completions that TryWait named are there, after Signal, and when the queue or
// its domain ends. It is not to be read from or written to.
//
// With automatic progress the poller raises it. With manual progress some goroutine has
// to make progress meanwhile.
func (q *CompletionQueue) FD() (int, error) {
	if err := q.there(); err != nil {
		return 0, err
	}
	return q.sleepers.descriptor(q.what)
}

// TryWait arms the file descriptor for n completions, with or without errors
// (fi_trywait). After nil it is safe to sleep in epoll, once. ErrAgain means that the
// completions can be read already, or that Signal was called: read, and try again. Any
// other error is that of Wait. One goroutine uses the file descriptor.
func (q *CompletionQueue) TryWait(n int) error {
	if err := q.there(); err != nil {
		return err
	}
	if err := q.mayWait(n); err != nil {
		return err
	}
	if st := q.owner.Load(); st != nil {
		st.Start() // nothing that was posted with FlagMore is left lying
	}
	return q.arm(q, uint64(n), 0)
}
