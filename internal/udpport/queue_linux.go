// SPDX-License-Identifier: Apache-2.0

package udpport

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/wire"
)

// Queue is the engine's port on sockets of Linux. All methods but Wake and count belong
// to one thread.
type Queue struct {
	sockets []*socket
	in      intake
	out     outlet

	tally   tally
	faults  atomic.Pointer[disturber]
	polled  []unix.PollFd // the eventfd, then the sockets
	drained [8]byte       // read from the eventfd; never used
	woken   atomic.Bool   // a wake-up is pending; set by Wake, cleared by Wait
	wakeMu  sync.Mutex    // guards the eventfd's life against Wake
	event   int           // eventfd, -1 once closed
}

// newQueue returns the port of some sockets, which are its own from here on, also when
// it fails.
func newQueue(sockets []*socket, mtu int) (*Queue, error) {
	q := &Queue{sockets: sockets, event: -1}
	q.in.init(sockets, mtu)
	q.out.init(mtu)
	event, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("udp: %w", os.NewSyscallError("eventfd", err)), q.close())
	}
	q.event = event
	q.polled = append(q.polled, unix.PollFd{Fd: int32(event), Events: unix.POLLIN})
	for _, s := range sockets {
		q.polled = append(q.polled, unix.PollFd{Fd: int32(s.fd)})
	}
	return q, nil
}

func (q *Queue) close() error {
	q.wakeMu.Lock()
	q.woken.Store(true) // later calls of Wake return at once
	event := q.event
	q.event = -1
	q.wakeMu.Unlock()
	var errs []error
	if event >= 0 {
		errs = append(errs, unix.Close(event))
	}
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
		// The eventfd is emptied before the flag is lowered: in the other order the
		// write of a Wake in between would be lost, while its flag kept all later ones
		// from writing.
		_, _ = unix.Read(q.event, q.drained[:])
		q.woken.Store(false)
	}
}

// Wake implements the engine's port. It costs a system call only when no wake-up is
// pending.
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
