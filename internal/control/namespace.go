// SPDX-License-Identifier: Apache-2.0

//go:build linux

package control

import "golang.org/x/sys/unix"

// Namespace identifies the network namespace of this process, as the number that
// `readlink /proc/self/ns/net` shows; 0 if the kernel does not tell. Interfaces of
// one name in different namespaces have nothing to do with each other.
func Namespace() uint64 {
	var st unix.Stat_t
	if unix.Stat("/proc/self/ns/net", &st) != nil {
		return 0
	}
	return st.Ino
}

// Elsewhere reports whether a daemon's interface is in another network namespace
// than this process.
func (s *Status) Elsewhere() bool { return s.NetNS != 0 && s.NetNS != Namespace() }
