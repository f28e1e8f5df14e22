// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/xdpfab/xdpfab/internal/histogram"
)

// locker gets a lock, and returns what releases it.
type locker func(ctx context.Context) (unlock func() error, err error)

// lockLoop is the loop of a lock that nobody else wants: got and released.
func lockLoop(lock locker) loop {
	return each(1, func(ctx context.Context) error {
		unlock, err := lock(ctx)
		if err != nil {
			return err
		}
		return unlock()
	})
}

// handover is a lock that several clients want all the time. It records how long the lock
// was on its way: from before a release until the next client has it.
type handover struct {
	lockers []locker

	holders  atomic.Int32
	released atomic.Int64 // when the last release began, in nanoseconds since began; 0: not yet
	began    time.Time
}

func (o *handover) loop(ctx context.Context, end time.Time, h histogram.Histogram) error {
	var all sync.WaitGroup
	var mu sync.Mutex
	var failed error
	o.began = time.Now().Add(-1)
	o.released.Store(0)
	for _, lock := range o.lockers {
		all.Go(func() {
			if err := o.take(ctx, lock, end, h); err != nil {
				mu.Lock()
				defer mu.Unlock()
				failed = errors.Join(failed, err)
			}
		})
	}
	all.Wait()
	return failed
}

// take gets the lock again and again. The histogram is guarded by it.
func (o *handover) take(ctx context.Context, lock locker, end time.Time, h histogram.Histogram) error {
	for time.Now().Before(end) {
		unlock, err := lock(ctx)
		if err != nil {
			return err
		}
		if n := o.holders.Add(1); n != 1 {
			return fmt.Errorf("%d clients hold the lock", n)
		}
		if was := o.released.Load(); was > 0 {
			h.Record(time.Since(o.began)-time.Duration(was), 1)
		}
		o.holders.Add(-1)
		o.released.Store(int64(time.Since(o.began)))
		if err := unlock(); err != nil {
			return err
		}
	}
	return nil
}
