// SPDX-License-Identifier: Apache-2.0

package udpport

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/wakeup"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// Queue is the engine's port on sockets of Linux. All methods but Wake and count belong
// to one thread.
type Queue struct {
	sockets []*socket
	in      intake
	out     outlet

	tally  tally
	faults atomic.Pointer[disturber]
	event  *wakeup.Event // set by Wake
	polled []unix.PollFd // the event, then the sockets
}

// newQueue returns the port of some sockets, which are its own from here on, also when
// it fails.
func newQueue(sockets []*socket, mtu int) (_ *Queue, err error) {
	q := &Queue{sockets: sockets}
	q.in.init(sockets, mtu)
	q.out.init(mtu)
	if q.event, err = wakeup.New(); err != nil {
		return nil, errors.Join(fmt.Errorf("udp: %w", err), q.close())
	}
	q.polled = append(q.polled, q.event.Poll())
	for _, s := range sockets {
		q.polled = append(q.polled, unix.PollFd{Fd: int32(s.fd)})
	}
	return q, nil
}

func (q *Queue) close() error {
	errs := []error{q.event.Close()}
	for _, s := range q.sockets {
		errs = append(errs, s.close())
	}
	return errors.Join(errs...)
}

// Receive implements the engine's port: one system call a burst, and none while packets
// of the last one are left.
func (q *Queue) Receive(packets [][]byte) int {
	if q.out.stalled {
		q.push()
	}
	return q.in.receive(packets, q.sockets, &q.tally)
}

// Release implements the engine's port: the memory is used again by the next Receive.
func (q *Queue) Release() {}

// Buffer implements the engine's port.
func (q *Queue) Buffer() []byte { return q.out.buffer() }

// Send implements the engine's port.
func (q *Queue) Send(n int) {
	if d := q.faults.Load(); d != nil {
		d.send(q.out.buffer()[:n], wire.WayLen, q.out.put)
		return
	}
	q.out.add(n)
}

func (q *Queue) disturb(d *disturber) { q.faults.Store(d) }

// Flush implements the engine's port. Packets that the kernel has no room for stay
// queued, and go with the next Flush, Receive or Wait.
func (q *Queue) Flush() error {
	q.push()
	return nil
}

func (q *Queue) push() { q.out.push(q.sockets, &q.tally) }

// Wait implements the engine's port.
func (q *Queue) Wait(timeout time.Duration) {
	if q.out.stalled {
		q.push()
	}
	if timeout <= 0 || q.in.left() {
		return
	}
	events := int16(unix.POLLIN)
	if q.out.stalled {
		events |= unix.POLLOUT
	}
	for i := range q.sockets {
		q.polled[1+i].Events = events
	}
	ts := unix.NsecToTimespec(int64(timeout))
	if n, _ := unix.Ppoll(q.polled, &ts, nil); n > 0 && q.polled[0].Revents != 0 {
		q.event.Clear()
	}
}

// Wake implements the engine's port.
func (q *Queue) Wake() { q.event.Set() }
