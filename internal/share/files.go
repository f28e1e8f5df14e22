// SPDX-License-Identifier: Apache-2.0

//go:build linux

package share

import (
	"errors"
	"fmt"
	"io"
	"net"

	"golang.org/x/sys/unix"
)

// filesAtOnce is the number of file descriptors that go with one byte. The kernel takes
// at most 253.
const filesAtOnce = 128

// SendFiles sends file descriptors, which stay the caller's.
func SendFiles(c *net.UnixConn, fds []int) error {
	for len(fds) > 0 {
		n := min(len(fds), filesAtOnce)
		if _, _, err := c.WriteMsgUnix([]byte{0}, unix.UnixRights(fds[:n]...), nil); err != nil {
			return err
		}
		fds = fds[n:]
	}
	return nil
}

// ReceiveFiles receives so many file descriptors, which are the caller's.
func ReceiveFiles(c *net.UnixConn, n int) (fds []int, err error) {
	space := make([]byte, unix.CmsgSpace(4*filesAtOnce))
	for err == nil && len(fds) < n {
		var b [1]byte
		got, oob, flags, _, bad := c.ReadMsgUnix(b[:], space)
		more, none := filesIn(space[:oob])
		fds = append(fds, more...)
		switch err = errors.Join(bad, none); {
		case err != nil:
		case got == 0:
			err = io.ErrUnexpectedEOF
		case flags&unix.MSG_CTRUNC != 0:
			err = errors.New("file descriptors were lost: raise the limit of open files")
		}
	}
	if err == nil && len(fds) != n {
		err = fmt.Errorf("%d file descriptors: want %d", len(fds), n)
	}
	if err != nil {
		CloseAll(fds)
		return nil, err
	}
	return fds, nil
}
