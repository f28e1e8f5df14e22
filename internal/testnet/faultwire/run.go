// SPDX-License-Identifier: Apache-2.0

//go:build linux

package faultwire

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// burst is how many frames of one side are handled before the other's turn.
	burst = 64
	// maxSleep bounds a sleep: a lost wake-up would cost this, not a hang.
	maxSleep = time.Second
	// retry is the sleep while the kernel refuses frames (interface down).
	retry = time.Millisecond
)

// run moves frames until the wire is closed.
func (w *Wire) run() {
	defer close(w.done)
	for !w.stop.Load() {
		if w.step() > 0 {
			continue
		}
		if err := w.sleep(); err != nil {
			w.err = fmt.Errorf("forwarder: %w", err)
			return
		}
	}
}

// step moves the frames that can be moved, and returns how many there were.
func (w *Wire) step() (n int) {
	now := w.now()
	for d := range w.lanes {
		l := &w.lanes[d]
		n += l.release(now)
		n += l.from.receive(burst, func(frame []byte) { l.take(now, frame) })
		l.to.flush()
		if l.to.drops > 0 {
			l.counts[Dropped].Add(uint64(l.to.drops))
			l.to.drops = 0
		}
	}
	return n
}

// sleep waits until a frame arrives or falls due.
func (w *Wire) sleep() error {
	wait := maxSleep
	for d := range w.lanes {
		if at, ok := w.lanes[d].queue.due(); ok {
			wait = min(wait, time.Duration(at-w.now()))
		}
		if w.lanes[d].to.unsent > 0 {
			wait = min(wait, retry)
		}
	}
	if wait <= 0 {
		return nil
	}
	others := [2]unix.PollFd{
		{Fd: int32(w.ports[1].sock.FD()), Events: unix.POLLIN},
		{Fd: int32(w.wake), Events: unix.POLLIN},
	}
	_, err := w.ports[0].sock.Poll(wait, others[:])
	return err
}

// now returns the time since the wire was opened, ns.
func (w *Wire) now() int64 { return int64(time.Since(w.start)) }
