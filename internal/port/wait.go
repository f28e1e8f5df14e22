// SPDX-License-Identifier: Apache-2.0

//go:build linux

package port

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/wakeup"
)

const (
	// stallRetry is how long Wait sleeps while packets are left to be sent: there
	// is no notice when the device has room again.
	stallRetry = 100 * time.Microsecond
	// brokenRetry is how long Wait sleeps while poll(2) claims that there are
	// packets and there are none, because the interface is down or gone. It keeps
	// the caller from spinning.
	brokenRetry = 10 * time.Millisecond
)

// alarm makes the event by which Wake ends Wait.
func (q *Queue) alarm() (err error) {
	if q.event, err = wakeup.New(); err == nil {
		q.extra[0] = q.event.Poll()
	}
	return err
}

// Wait sleeps until a packet can be received, Wake is called or the time is over;
// it may return early. Other goroutines run meanwhile.
func (q *Queue) Wait(timeout time.Duration) {
	if q.stalled {
		_ = q.push() // the next Flush returns the error
	}
	switch {
	case timeout <= 0 || q.rx.Available() > 0:
		return
	case q.stalled:
		// Polling the socket would send as well, and not tell which packets got
		// lost.
		q.nap(min(timeout, stallRetry))
		return
	}
	// The call also wakes a driver that waits for fill entries.
	ready, err := q.sock.Poll(timeout, q.extra[:])
	switch {
	case q.extra[0].Revents != 0:
		q.event.Clear()
	case (ready || err != nil) && q.rx.Available() == 0:
		q.nap(min(timeout, brokenRetry))
	}
}

// WaitAny is Wait for all queues at once, which are one thread's: it sleeps until a
// packet can be received on any of them, or any of them is woken.
func (i *Interface) WaitAny(timeout time.Duration) { i.wait(timeout) }

// waiter are queues of one thread, which waits for any of them.
type waiter struct {
	queues []*Queue
	polled []unix.PollFd // scratch: the events, then the sockets
}

func (w *waiter) wait(timeout time.Duration) {
	stalled := false
	for _, q := range w.queues {
		if q.stalled {
			_ = q.push() // the next Flush returns the error
		}
		stalled = stalled || q.stalled
	}
	if timeout <= 0 || w.available() {
		return
	}
	n := len(w.queues)
	fds := w.descriptors()
	if stalled { // see Queue.Wait
		fds, timeout = fds[:n], min(timeout, stallRetry)
	}
	ready := poll(fds, timeout)
	if ready > 0 && !w.woken() && !w.available() { // as claimed by sockets that are broken
		poll(fds[:n], min(timeout, brokenRetry))
		w.woken()
	}
}

// available reports whether a packet can be received.
func (w *waiter) available() bool {
	for _, q := range w.queues {
		if q.rx.Available() > 0 {
			return true
		}
	}
	return false
}

// descriptors lists the events of the queues, and then their sockets.
func (w *waiter) descriptors() []unix.PollFd {
	w.polled = w.polled[:0]
	for _, q := range w.queues {
		w.polled = append(w.polled, q.event.Poll())
	}
	for _, q := range w.queues {
		w.polled = append(w.polled, unix.PollFd{Fd: int32(q.sock.FD()), Events: unix.POLLIN})
	}
	return w.polled
}

// poll sleeps until a descriptor is ready, and returns how many are.
func poll(fds []unix.PollFd, timeout time.Duration) int {
	ts := unix.NsecToTimespec(int64(timeout))
	n, _ := unix.Ppoll(fds, &ts, nil)
	return n
}

// woken consumes the wake-ups that poll has seen, and reports whether there were any.
func (w *waiter) woken() bool {
	any := false
	for at, q := range w.queues {
		if w.polled[at].Revents != 0 {
			q.event.Clear()
			any = true
		}
	}
	return any
}

// nap sleeps for d, or until Wake.
func (q *Queue) nap(d time.Duration) {
	ts := unix.NsecToTimespec(int64(d))
	if n, _ := unix.Ppoll(q.extra[:], &ts, nil); n > 0 {
		q.event.Clear()
	}
}

// Wake ends the current or the next Wait. Any goroutine may call it, also after
// Close. It costs a system call only when no wake-up is pending.
func (q *Queue) Wake() { q.event.Set() }
