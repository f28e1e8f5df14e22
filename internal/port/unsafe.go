// SPDX-License-Identifier: Apache-2.0

//go:build linux

package port

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// channels is struct ethtool_channels.
type channels struct {
	cmd                                 uint32
	maxRX, maxTX, maxOther, maxCombined uint32
	rx, tx, other, combined             uint32
}

// ifreq is struct ifreq with the member ifr_data.
type ifreq struct {
	name [unix.IFNAMSIZ]byte
	data unsafe.Pointer
	_    [16]byte // the union's longest member is longer than a pointer
}

// channelsOf asks the driver how many queues the interface has in use
// (ETHTOOL_GCHANNELS). Not every driver knows. fd is any socket of the
// interface's namespace.
func channelsOf(fd int, ifname string) (channels, error) {
	c := channels{cmd: unix.ETHTOOL_GCHANNELS}
	r := ifreq{data: unsafe.Pointer(&c)}
	copy(r.name[:unix.IFNAMSIZ-1], ifname)
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&r)))
	runtime.KeepAlive(&c)
	if errno != 0 {
		return c, errno
	}
	return c, nil
}
