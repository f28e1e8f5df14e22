// SPDX-License-Identifier: Apache-2.0

//go:build linux

package port

import (
	"encoding/binary"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// stallRetry is how long Wait sleeps at most while packets wait to be sent:
	// nothing tells when the device has room again.
	stallRetry = time.Millisecond
	// brokenRetry is the same while poll(2) claims that packets are there and none
	// is: the interface is down or gone. It keeps the caller from spinning.
	brokenRetry = 10 * time.Millisecond
)

// Wait sleeps until a packet can be received, Wake is called or the time is over;
// it may return early. Other goroutines run meanwhile.
func (q *Queue) Wait(timeout time.Duration) {
	if q.stalled {
		_ = q.push() // what is wrong will be told by the next Flush
	}
	if q.stalled {
		timeout = min(timeout, stallRetry)
	}
	if timeout <= 0 || q.rx.Available() > 0 || q.awake() {
		return
	}
	// The call also wakes a driver that waits for fill entries.
	ready, err := q.sock.Poll(timeout, q.extra[:])
	if q.awake() || !ready && err == nil || q.rx.Available() > 0 {
		return
	}
	ms := int(min(timeout, brokenRetry).Milliseconds())
	_, _ = unix.Poll(q.extra[:], max(ms, 1))
	q.awake()
}

// awake consumes a pending wake-up. The eventfd is emptied before the flag is
// lowered: the other way round, a Wake in between would be emptied away while the
// flag keeps all later ones from writing.
func (q *Queue) awake() bool {
	if !q.woken.Load() {
		return false
	}
	var count [8]byte
	_, _ = unix.Read(q.event, count[:]) // empty if Wake has not written yet; its write ends the next Wait early
	q.woken.Store(false)
	return true
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

// one is what eventfd(2) wants to be written.
var one = binary.NativeEndian.AppendUint64(nil, 1)
