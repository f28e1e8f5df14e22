// SPDX-License-Identifier: Apache-2.0

//go:build linux

package port

import (
	"encoding/binary"
	"time"

	"golang.org/x/sys/unix"
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
		q.drain()
	case (ready || err != nil) && q.rx.Available() == 0:
		q.nap(min(timeout, brokenRetry))
	}
}

// nap sleeps for d, or until Wake.
func (q *Queue) nap(d time.Duration) {
	ts := unix.NsecToTimespec(int64(d))
	if n, _ := unix.Ppoll(q.extra[:], &ts, nil); n > 0 {
		q.drain()
	}
}

// drain consumes a wake-up, once the eventfd says that there is one. The eventfd
// is emptied before the flag is lowered: in the other order the write of a Wake in
// between would be lost, while its flag kept all later ones from writing.
func (q *Queue) drain() {
	_, _ = unix.Read(q.event, q.count[:])
	q.woken.Store(false)
}

// Wake ends the current or the next Wait. Any goroutine may call it, also after
// Close. It costs a system call only when no wake-up is pending.
func (q *Queue) Wake() {
	if q.woken.Swap(true) {
		return
	}
	q.wakeMu.Lock()
	defer q.wakeMu.Unlock()
	if q.event >= 0 {
		_, _ = unix.Write(q.event, one)
	}
}

// one is the value that is written to the eventfd.
var one = binary.NativeEndian.AppendUint64(nil, 1)
