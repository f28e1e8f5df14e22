// SPDX-License-Identifier: Apache-2.0

//go:build linux

package xsk

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// KickResult is the kernel's answer to a Kick or WakeRX: 0 or an errno. The
// values that xsk_sendmsg and xsk_generic_xmit return have names; any other errno
// may appear too. It is a plain number, so that returning it costs nothing.
type KickResult uint16

const (
	// KickOK means that the kernel has taken over. In copy mode it has sent all
	// of TX.
	KickOK KickResult = 0
	// KickAgain means that entries are left in TX. TXBudget was used up, the
	// completion ring has no room, or SendBuffer is full. Reap completions and
	// kick again.
	KickAgain = KickResult(unix.EAGAIN)
	// KickLost means that the device dropped one frame, which was completed all the
	// same, as if it were lost on the wire. Entries after it are left in TX: kick
	// again.
	KickLost = KickResult(unix.EBUSY)
	// KickNoBuffers means that the kernel is out of memory for frames, or the
	// socket has no ring to serve. Entries are left in TX.
	KickNoBuffers = KickResult(unix.ENOBUFS)
	// KickDown means that the interface is down. Entries are left in TX.
	KickDown = KickResult(unix.ENETDOWN)
	// KickUnbound means that the interface was removed. The socket is of no more
	// use.
	KickUnbound = KickResult(unix.ENXIO)

	kickClosed = KickResult(unix.EBADF)
)

// Retry reports whether to kick again soon: TX still holds entries, and another
// kick may send them.
func (r KickResult) Retry() bool { return r == KickAgain || r == KickLost }

// kickErrors are the results that are not part of normal operation.
var kickErrors = map[KickResult]error{
	KickNoBuffers: ErrNoBuffers,
	KickDown:      ErrInterfaceDown,
	KickUnbound:   ErrUnbound,
	kickClosed:    ErrClosed,
}

// Err is nil for KickOK, KickAgain and KickLost, and for the rest an error that
// matches the sentinel and the errno.
func (r KickResult) Err() error {
	if r == KickOK || r.Retry() {
		return nil
	}
	errno := unix.Errno(r)
	if known := kickErrors[r]; known != nil {
		return fmt.Errorf("xsk: kick: %w: %w", known, errno)
	}
	return fmt.Errorf("xsk: kick: %w", errno)
}

// String is "ok" or the errno's text.
func (r KickResult) String() string {
	if r == KickOK {
		return "ok"
	}
	return unix.Errno(r).Error()
}

// Kick makes the kernel look at TX, by a system call if one is needed: always
// in copy mode (the frames are sent within the call), and when the driver
// sleeps. Call it once for each burst, after Submit.
//
// The call does not block, so it is made without telling the Go scheduler, which
// spares 60 ns; a garbage collection that stops the world waits for it to return.
func (s *Socket) Kick() KickResult {
	if !s.alwaysKick && !s.tx.NeedWakeup() {
		return KickOK
	}
	_, _, errno := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(s.fd), 0, 0, unix.MSG_DONTWAIT, 0, 0)
	return KickResult(errno)
}

// WakeRX makes the driver look at Fill, by a system call if one is needed: when
// the driver has run out of chunks and sleeps, and with busy polling. Call it
// after Submit to Fill, and with busy polling whenever the caller looks for
// frames.
func (s *Socket) WakeRX() KickResult {
	if !s.alwaysWake && !s.queue.fill.NeedWakeup() {
		return KickOK
	}
	_, _, errno := unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(s.fd), 0, 0, unix.MSG_DONTWAIT, 0, 0)
	return KickResult(errno)
}

// maxPollFDs bounds Poll: the socket and its companions.
const maxPollFDs = 8

// Poll sleeps until frames are in RX, one of the extra descriptors is ready, or
// the timeout is over (negative: never). A socket without RX waits for room in TX
// instead. Up to 7 extra descriptors are watched for their Events, and their
// Revents are set. In copy mode the call also sends what is in TX.
//
// It reports whether this socket is ready. Sleeping is no error, nor is being
// woken by an extra descriptor. The wait is a normal blocking system call: other
// goroutines run meanwhile.
func (s *Socket) Poll(timeout time.Duration, extra []unix.PollFd) (ready bool, err error) {
	if len(extra) >= maxPollFDs {
		return false, fmt.Errorf("xsk: poll with %d extra descriptors: %w: at most %d", len(extra), ErrConfig,
			maxPollFDs-1)
	}
	if s.fd < 0 {
		return false, fmt.Errorf("xsk: poll: socket: %w", ErrClosed)
	}
	fds := s.fds[:1+copy(s.fds[1:], extra)]
	fds[0] = unix.PollFd{Fd: int32(s.fd), Events: unix.POLLIN}
	if s.rx.Size() == 0 {
		fds[0].Events = unix.POLLOUT
	}
	deadline := time.Now().Add(timeout)
	for {
		var ts *unix.Timespec
		if timeout >= 0 {
			t := unix.NsecToTimespec(int64(max(0, timeout)))
			ts = &t
		}
		_, err = unix.Ppoll(fds, ts, nil)
		// The runtime's preemption signals interrupt the call, which then has
		// to wait for the rest of the time.
		if !errors.Is(err, unix.EINTR) {
			break
		}
		if timeout >= 0 {
			timeout = max(0, time.Until(deadline))
		}
	}
	copy(extra, fds[1:])
	if err != nil {
		return false, fmt.Errorf("xsk: poll: %w", err)
	}
	return fds[0].Revents != 0, nil
}
