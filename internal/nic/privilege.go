// SPDX-License-Identifier: Apache-2.0

//go:build linux

package nic

import (
	"fmt"
	"io/fs"
	"math"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/kernel"
)

// Capability is a privilege that using an interface takes.
type Capability struct {
	Name     string `json:"name"`
	For      string `json:"for"`
	Required bool   `json:"required"`
	Have     bool   `json:"have"`

	bit, or uint // or is another one that the kernel accepts in its place
}

var capabilities = []Capability{
	{Name: "CAP_NET_ADMIN", For: "to attach the XDP program", Required: true, bit: unix.CAP_NET_ADMIN,
		or: unix.CAP_NET_ADMIN},
	{Name: "CAP_NET_RAW", For: "for AF_XDP sockets", Required: true, bit: unix.CAP_NET_RAW, or: unix.CAP_NET_RAW},
	{Name: "CAP_BPF", For: "to load the XDP program", Required: true, bit: unix.CAP_BPF, or: unix.CAP_SYS_ADMIN},
	{Name: "CAP_PERFMON", For: "for its arithmetic with packet pointers", Required: true, bit: unix.CAP_PERFMON,
		or: unix.CAP_SYS_ADMIN},
	{Name: lockMemory, For: "to pin packet memory beyond RLIMIT_MEMLOCK", bit: unix.CAP_IPC_LOCK,
		or: unix.CAP_IPC_LOCK},
}

const lockMemory = "CAP_IPC_LOCK"

func capabilitiesOf(effective uint64) []Capability {
	list := make([]Capability, 0, len(capabilities))
	for _, c := range capabilities {
		c.Have = effective&(1<<c.bit|1<<c.or) != 0
		list = append(list, c)
	}
	return list
}

// Can reports whether the caller has the capability of a name.
func (s *System) Can(capability string) bool {
	return slices.ContainsFunc(s.Capabilities, func(c Capability) bool { return c.Name == capability && c.Have })
}

// Unlimited reports whether only the machine bounds packet memory.
func (s *System) Unlimited() bool { return s.Memlock == math.MaxUint64 }

// ChargesBPF reports whether BPF objects count against RLIMIT_MEMLOCK, like packet
// memory, but whatever the capabilities. How much they take only the kernel knows.
func (s *System) ChargesBPF() bool { return kernel.Lacks(s.Kernel, kernel.FreeBPFMemory) }

// limitFor returns the argument of ulimit -l that lets a caller pin packet memory in
// bytes.
func (s *System) limitFor(pinned uint64) string {
	if s.ChargesBPF() {
		return "unlimited"
	}
	return fmt.Sprint(pinned >> 10)
}

// lacking names every privilege that the caller lacks, in a line. pinned is the packet
// memory in bytes, which counts against RLIMIT_MEMLOCK. In a user namespace all of them
// together are still not enough; the kernel then says so.
func (s *System) lacking(pinned uint64) error {
	var missing, caps []string
	for _, c := range s.Capabilities {
		name := c.Name
		if name == lockMemory {
			if s.Memlock >= pinned {
				continue
			}
			name += fmt.Sprintf(" (to pin %d KiB of packet memory, or `ulimit -l %s`)", pinned>>10, s.limitFor(pinned))
		}
		// The remedy names everything that is needed, since setcap replaces the
		// capabilities that the file had.
		caps = append(caps, strings.ToLower(c.Name))
		if !c.Have {
			missing = append(missing, name)
		}
	}
	if missing == nil {
		return nil
	}
	return errno.Refuse(fs.ErrPermission, "missing %s: run as root, or `setcap %s+ep` on the program",
		strings.Join(missing, ", "), strings.Join(caps, ","))
}
