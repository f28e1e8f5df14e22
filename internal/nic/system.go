// SPDX-License-Identifier: Apache-2.0

//go:build linux

package nic

import (
	"fmt"
	"math"
	"slices"

	"golang.org/x/sys/unix"
)

// System is what the machine and the caller's privileges allow.
type System struct {
	Kernel       string       `json:"kernel"`
	Features     []Feature    `json:"kernel_features"`
	Capabilities []Capability `json:"capabilities"`
	// Memlock is RLIMIT_MEMLOCK, bytes: it bounds the packet memory of a caller
	// without CAP_IPC_LOCK. math.MaxUint64 is no limit.
	Memlock uint64 `json:"memlock"`
}

// Feature is something of the kernel that xdpfab uses.
type Feature struct {
	Name     string `json:"name"`
	Since    string `json:"since"` // version of Linux
	Required bool   `json:"required"`
	Present  bool   `json:"present"`

	since version
}

// Capability is a privilege that using an interface takes.
type Capability struct {
	Name     string `json:"name"`
	For      string `json:"for"`
	Required bool   `json:"required"`
	Have     bool   `json:"have"`

	bit, or uint // or: another one that the kernel takes in its place
}

var features = []Feature{
	{Name: "AF_XDP with need-wakeup rings", since: version{5, 4}, Required: true},
	{Name: "XDP attached by bpf_link", since: version{5, 9}, Required: true},
	{Name: "the oldest kernel that is tested", since: version{5, 10}, Required: true}, // see package port
	{Name: "BPF memory without RLIMIT_MEMLOCK", since: version{5, 11}},
	{Name: "busy polling of AF_XDP sockets", since: version{5, 11}},
	{Name: "drivers tell their XDP features", since: version{6, 3}},
	{Name: "larger bursts for each system call", since: version{6, 17}},
	{Name: "correct completions in copy mode", since: version{6, 18}},
}

var capabilities = []Capability{
	{Name: "CAP_NET_ADMIN", For: "to attach the XDP program", Required: true, bit: unix.CAP_NET_ADMIN, or: unix.CAP_NET_ADMIN},
	{Name: "CAP_NET_RAW", For: "for AF_XDP sockets", Required: true, bit: unix.CAP_NET_RAW, or: unix.CAP_NET_RAW},
	{Name: "CAP_BPF", For: "to load the XDP program", Required: true, bit: unix.CAP_BPF, or: unix.CAP_SYS_ADMIN},
	{Name: "CAP_PERFMON", For: "for its arithmetic with packet pointers", Required: true, bit: unix.CAP_PERFMON, or: unix.CAP_SYS_ADMIN},
	{Name: "CAP_IPC_LOCK", For: "to pin packet memory beyond RLIMIT_MEMLOCK", bit: unix.CAP_IPC_LOCK, or: unix.CAP_IPC_LOCK},
}

// version is a kernel's, of which the first two numbers matter.
type version [2]int

func (v version) String() string { return fmt.Sprintf("%d.%d", v[0], v[1]) }

func (v version) atLeast(w version) bool { return v[0] > w[0] || v[0] == w[0] && v[1] >= w[1] }

// parseVersion reads the beginning of a release such as "6.8.0-45-generic".
func parseVersion(release string) (v version, err error) {
	if _, err := fmt.Sscanf(release, "%d.%d", &v[0], &v[1]); err != nil {
		return v, fmt.Errorf("nic: kernel release %q: want a version such as 6.8.0", release)
	}
	return v, nil
}

// Machine inspects the machine and of the calling thread's privileges.
func Machine() (System, error) {
	var s System
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return s, fmt.Errorf("nic: uname: %w", err)
	}
	s.Kernel = unix.ByteSliceToString(u.Release[:])
	v, err := parseVersion(s.Kernel)
	if err != nil {
		return s, err
	}
	s.Features = featuresOf(v)
	var sets [2]unix.CapUserData // low and high 32 bits
	if err := unix.Capget(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &sets[0]); err != nil {
		return s, fmt.Errorf("nic: reading the capabilities: %w", err)
	}
	s.Capabilities = capabilitiesOf(uint64(sets[1].Effective)<<32 | uint64(sets[0].Effective))
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_MEMLOCK, &limit); err != nil {
		return s, fmt.Errorf("nic: reading RLIMIT_MEMLOCK: %w", err)
	}
	s.Memlock = limit.Cur
	return s, nil
}

// Unlimited tells whether packet memory is bounded by nothing but the machine.
func (s *System) Unlimited() bool { return s.Memlock == math.MaxUint64 }

func featuresOf(v version) []Feature {
	list := make([]Feature, 0, len(features))
	for _, f := range features {
		f.Since, f.Present = f.since.String(), v.atLeast(f.since)
		list = append(list, f)
	}
	return list
}

func capabilitiesOf(effective uint64) []Capability {
	list := make([]Capability, 0, len(capabilities))
	for _, c := range capabilities {
		c.Have = effective&(1<<c.bit|1<<c.or) != 0
		list = append(list, c)
	}
	return list
}

// Can tells whether the caller has a capability, by name.
func (s *System) Can(capability string) bool {
	return slices.ContainsFunc(s.Capabilities, func(c Capability) bool { return c.Name == capability && c.Have })
}
