// SPDX-License-Identifier: Apache-2.0

package share

import (
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// Ferry is one end of a pair of sockets by which a host and the borrower of a queue pass
// each other the packets that arrived on the wrong side. As in a network, packets get
// lost: if the other side does not take them in time. So neither can hold up the other.
type Ferry struct {
	file *os.File
	raw  syscall.RawConn
}

// NewFerry returns one end of a pair, and the other one as a file descriptor.
func NewFerry() (own *Ferry, other int, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, -1, fmt.Errorf("socket pair: %w", err)
	}
	if own, err = FerryOf(fds[0]); err != nil {
		CloseAll(fds[1:])
		return nil, -1, err
	}
	return own, fds[1], nil
}

// FerryOf is the end that came as a file descriptor, which is the ferry's from here on,
// also if there is an error.
func FerryOf(fd int) (*Ferry, error) {
	if kind, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE); err != nil || kind != unix.SOCK_SEQPACKET {
		CloseAll([]int{fd})
		return nil, fmt.Errorf("descriptor %d is no ferry (%v): want a socket for packets", fd, err)
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		CloseAll([]int{fd})
		return nil, err
	}
	f := &Ferry{file: os.NewFile(uintptr(fd), "ferry")}
	var err error
	if f.raw, err = f.file.SyscallConn(); err != nil {
		_ = f.file.Close()
		return nil, err
	}
	return f, nil
}

// Send passes a packet to the other side, if there is room. It does not block. Any thread
// may call it, also after Close.
func (f *Ferry) Send(packet []byte) {
	_ = f.raw.Write(func(fd uintptr) bool {
		_ = unix.Send(int(fd), packet, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
		return true // whatever became of it
	})
}

// longestPacket is more than any packet of an interface that can be used, bytes.
const longestPacket = 4096

// Run hands the packets of the other side to deliver, which must copy them, until either
// side has closed its end.
func (f *Ferry) Run(deliver func(packet []byte)) {
	var buf [longestPacket]byte
	for {
		n, err := f.file.Read(buf[:])
		if err != nil {
			return
		}
		deliver(buf[:n])
	}
}

// Close closes this end. Run returns.
func (f *Ferry) Close() error { return f.file.Close() }
