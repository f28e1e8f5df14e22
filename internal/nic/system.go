// SPDX-License-Identifier: Apache-2.0

//go:build linux

package nic

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/kernel"
)

// System describes what the machine and the caller's privileges allow.
type System struct {
	Kernel       string       `json:"kernel"`
	Features     []Feature    `json:"kernel_features"`
	Capabilities []Capability `json:"capabilities"`
	// Memlock is RLIMIT_MEMLOCK, bytes: it bounds the packet memory of a caller
	// without CAP_IPC_LOCK. 18446744073709551615 (2^64-1) means that there is no limit.
	Memlock uint64 `json:"memlock"`
}

// Feature is a feature of the kernel that xdpfab uses.
type Feature struct {
	Name     string `json:"name"`
	Since    string `json:"since"` // version of Linux
	Required bool   `json:"required"`
	Present  bool   `json:"present"`

	since kernel.Version
}

var features = []Feature{
	{Name: "AF_XDP with need-wakeup rings", since: kernel.NeedWakeup, Required: true},
	{Name: "XDP attached by bpf_link", since: kernel.BPFLink, Required: true},
	{Name: "the oldest kernel that is tested", since: kernel.Oldest, Required: true},
	{Name: "BPF memory without RLIMIT_MEMLOCK", since: kernel.FreeBPFMemory},
	{Name: "busy polling of AF_XDP sockets", since: kernel.BusyPoll},
	{Name: "resident regions: XDP executes operations", since: kernel.Resident},
	{Name: "drivers tell their XDP features", since: kernel.DriverFeatures},
	{Name: "queues lent to other programs", since: kernel.AdoptRings},
	{Name: "interrupts of single queues held back", since: kernel.NAPISettings},
	{Name: "larger bursts for each system call", since: kernel.SendBudget},
	{Name: "correct completions in copy mode", since: kernel.CopiedCompletions},
}

// featuresOf lists the features; a release that cannot be read is taken to have
// all of them.
func featuresOf(release string) []Feature {
	list := make([]Feature, 0, len(features))
	for _, f := range features {
		f.Since, f.Present = f.since.String(), !kernel.Lacks(release, f.since)
		list = append(list, f)
	}
	return list
}

// Machine inspects the machine and the privileges of the calling thread.
func Machine() (System, error) {
	release, err := kernel.Release()
	if err != nil {
		return System{}, err
	}
	s := System{Kernel: release, Features: featuresOf(release)}
	var sets [2]unix.CapUserData // low and high 32 bits
	if err := unix.Capget(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &sets[0]); err != nil {
		return s, fmt.Errorf("reading the capabilities: %w", err)
	}
	s.Capabilities = capabilitiesOf(uint64(sets[1].Effective)<<32 | uint64(sets[0].Effective))
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_MEMLOCK, &limit); err != nil {
		return s, fmt.Errorf("reading RLIMIT_MEMLOCK: %w", err)
	}
	s.Memlock = limit.Cur
	return s, nil
}
