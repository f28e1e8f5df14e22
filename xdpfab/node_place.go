// SPDX-License-Identifier: Apache-2.0

package xdpfab

import "golang.org/x/sys/unix"

// place is an interface of the machine.
type place struct {
	namespace uint64 // inode of the network namespace
	index     int
}

// here returns the place of an interface in the network namespace of the calling thread.
func here(index int) place {
	var s unix.Stat_t
	_ = unix.Stat("/proc/thread-self/ns/net", &s) // without /proc all namespaces are taken for one
	return place{s.Ino, index}
}
