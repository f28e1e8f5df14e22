// SPDX-License-Identifier: Apache-2.0

//go:build linux

package udpport

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// This file has the calls for many messages at once, which golang.org/x/sys/unix lacks,
// and the control messages that go with them.

// message is the kernel's struct mmsghdr.
type message struct {
	hdr unix.Msghdr
	n   uint32 // bytes received or sent
}

// receiveMany receives what is there, without waiting. It is a raw call: it does not
// wait, so the scheduler need not know.
func receiveMany(fd int, m []message) (int, unix.Errno) {
	n, _, errno := unix.RawSyscall6(unix.SYS_RECVMMSG, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(m))),
		uintptr(len(m)), unix.MSG_DONTWAIT, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(n), 0
}

// sendMany sends messages in order, without waiting. If it stops early, the next call
// tells why.
func sendMany(fd int, m []message) (int, unix.Errno) {
	n, _, errno := unix.RawSyscall6(unix.SYS_SENDMMSG, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(m))),
		uintptr(len(m)), unix.MSG_DONTWAIT, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(n), 0
}

// putControl writes a control message to the beginning of b, and returns the bytes that
// it takes. The value is as long as size, 2 or 4 bytes.
func putControl(b []byte, level, kind int32, size, value int) int {
	h := (*unix.Cmsghdr)(unsafe.Pointer(unsafe.SliceData(b)))
	h.Level, h.Type = level, kind
	h.SetLen(unix.CmsgLen(size))
	data := unsafe.Pointer(&b[unix.CmsgLen(0)])
	if size == 2 {
		*(*uint16)(data) = uint16(value)
	} else {
		*(*int32)(data) = int32(value)
	}
	return unix.CmsgSpace(size)
}

// control returns the value of 4 bytes of a control message among those in b, or 0.
func control(b []byte, level, kind int32) int {
	for len(b) >= unix.CmsgSpace(4) {
		h := (*unix.Cmsghdr)(unsafe.Pointer(unsafe.SliceData(b)))
		if h.Level == level && h.Type == kind && int(h.Len) >= unix.CmsgLen(4) {
			return int(*(*int32)(unsafe.Pointer(&b[unix.CmsgLen(0)])))
		}
		next := unix.CmsgSpace(int(h.Len) - unix.CmsgLen(0))
		if int(h.Len) < unix.CmsgLen(0) || next > len(b) {
			return 0
		}
		b = b[next:]
	}
	return 0
}

// disconnect lets a connected socket choose its own address anew.
func disconnect(fd int) {
	var none unix.RawSockaddr // AF_UNSPEC
	_, _, _ = unix.RawSyscall(unix.SYS_CONNECT, uintptr(fd), uintptr(unsafe.Pointer(&none)), unsafe.Sizeof(none))
}
