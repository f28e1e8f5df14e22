// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package kernel says which Linux runs, and since which version Linux has the
// features that xdpfab uses. It is the only place that reads kernel releases, or
// names the version that a feature takes.
package kernel

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Version is the version of a kernel: the first two numbers, which are all that
// matters.
type Version struct{ Major, Minor int }

// The versions since which Linux has a feature.
var (
	NeedWakeup        = Version{5, 4}  // AF_XDP rings say when a system call is needed
	BPFLink           = Version{5, 9}  // XDP programs attached by bpf_link
	Oldest            = Version{5, 10} // the oldest that the project is tested with
	FreeBPFMemory     = Version{5, 11} // BPF memory does not count against RLIMIT_MEMLOCK
	BusyPoll          = Version{5, 11} // busy polling of AF_XDP sockets
	Resident          = Version{5, 18} // what the program of internal/resident calls
	DriverFeatures    = Version{6, 3}  // drivers report their XDP features
	AdoptRings        = Version{6, 4}  // all rings of a bound AF_XDP socket can be mapped by another process
	MultiBuffer       = Version{6, 6}  // packets of several AF_XDP chunks
	NAPISettings      = Version{6, 13} // each queue can hold its interrupts back by itself
	SendBudget        = Version{6, 17} // XDP_MAX_TX_SKB_BUDGET
	CopiedCompletions = Version{6, 18} // completions in copy mode are always right
)

// String is the version as Linux writes it, such as "6.3".
func (v Version) String() string { return fmt.Sprintf("%d.%d", v.Major, v.Minor) }

// AtLeast reports whether v is w or newer.
func (v Version) AtLeast(w Version) bool {
	return v.Major > w.Major || v.Major == w.Major && v.Minor >= w.Minor
}

// Parse reads the version at the beginning of a release such as
// "6.8.0-45-generic".
func Parse(release string) (v Version, err error) {
	if _, err := fmt.Sscanf(release, "%d.%d", &v.Major, &v.Minor); err != nil {
		return Version{}, fmt.Errorf("kernel release %q: want a version such as 6.8.0", release)
	}
	return v, nil
}

// Release returns the release of the running kernel, as uname(2) has it.
func Release() (string, error) {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return "", fmt.Errorf("uname: %w", err)
	}
	return unix.ByteSliceToString(u.Release[:]), nil
}

// Lacks reports whether a release says that it is older than a version. A
// release that cannot be read is taken for new enough.
func Lacks(release string, since Version) bool {
	v, err := Parse(release)
	return err == nil && !v.AtLeast(since)
}

// Before reports whether the release of the running kernel is older than a
// version.
func Before(since Version) bool {
	release, err := Release()
	return err == nil && Lacks(release, since)
}
