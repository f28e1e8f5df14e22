// SPDX-License-Identifier: Apache-2.0

//go:build linux

package nic

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ethtool makes the SIOCETHTOOL call of ethtool(8) with a structure of linux/ethtool.h,
// which the kernel reads and may write.
func ethtool(fd int, ifname string, data []byte) error {
	var request struct { // struct ifreq
		name [unix.IFNAMSIZ]byte
		data unsafe.Pointer
		_    [16]byte
	}
	if len(data) == 0 || len(ifname) >= len(request.name) {
		return unix.EINVAL
	}
	copy(request.name[:], ifname)
	request.data = unsafe.Pointer(&data[0])
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&request)))
	runtime.KeepAlive(data)
	if errno != 0 {
		return errno
	}
	return nil
}
