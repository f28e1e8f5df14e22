// SPDX-License-Identifier: Apache-2.0

//go:build linux

package bpf

import (
	"errors"
	"fmt"
	"strings"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/kernel"
)

// needed are the capabilities without which the kernel refuses this package. It accepts
// or in place of bit.
var needed = []struct {
	bit, or uint
	name    string
}{
	{unix.CAP_BPF, unix.CAP_SYS_ADMIN, "CAP_BPF"},
	{unix.CAP_PERFMON, unix.CAP_SYS_ADMIN, "CAP_PERFMON"},
	{unix.CAP_NET_ADMIN, unix.CAP_NET_ADMIN, "CAP_NET_ADMIN"},
}

// explain wraps an error of the kernel, and names the permission that is
// missing.
func explain(doing string, err error) error { return standing().explain(doing, err) }

// explain is that of a thread with these privileges.
func (p privileges) explain(doing string, err error) error {
	var verifier *ebpf.VerifierError
	switch {
	case errors.As(err, &verifier) && len(p.missing()) == 0:
		// Whatever the errno: a thread without these privileges does not get so far.
		return fmt.Errorf("bpf: %s: the verifier of this kernel refuses the program: %w", doing, err)
	case errors.Is(err, unix.EPERM):
		// The errno alone: the library's text suspects a limit, whatever the kernel.
		return fmt.Errorf("bpf: %s: %s: %w", doing, p.remedy(), unix.EPERM)
	case errors.Is(err, unix.EACCES):
		// The verifier's error for a program that needs CAP_PERFMON.
		return fmt.Errorf("bpf: %s: %s: %w", doing, p.remedy(), err)
	}
	return fmt.Errorf("bpf: %s: %w", doing, err)
}

// privileges are what the kernel looks at before it gives BPF objects to a thread.
type privileges struct {
	effective uint64 // capabilities, a bit each
	memlock   uint64 // RLIMIT_MEMLOCK in bytes; RLIM_INFINITY is no limit
	charged   bool   // memory of BPF objects counts against memlock, whatever the capabilities
}

// standing returns the privileges of this thread; those that it cannot read are taken to
// be there.
func standing() privileges {
	p := privileges{effective: ^uint64(0), memlock: unix.RLIM_INFINITY, charged: kernel.Before(kernel.FreeBPFMemory)}
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData // low and high 32 bits
	if unix.Capget(&hdr, &data[0]) == nil {
		p.effective = uint64(data[1].Effective)<<32 | uint64(data[0].Effective)
	}
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_MEMLOCK, &limit) == nil {
		p.memlock = limit.Cur
	}
	return p
}

// missing lists the capabilities that a thread lacks.
func (p privileges) missing() (names []string) {
	for _, c := range needed {
		if p.effective&(1<<c.bit|1<<c.or) == 0 {
			names = append(names, c.name)
		}
	}
	return names
}

// remedy reports what is in the way of a thread that was refused.
func (p privileges) remedy() string {
	missing := p.missing()
	switch {
	case missing != nil:
		return "missing " + strings.Join(missing, " and ")
	case p.charged && p.memlock != unix.RLIM_INFINITY:
		return fmt.Sprintf("RLIMIT_MEMLOCK is %d KiB, and before Linux %v the memory of BPF programs and maps "+
			"counts against it; raise it as root, with `ulimit -l unlimited` (systemd: LimitMEMLOCK=infinity)",
			p.memlock>>10, kernel.FreeBPFMemory)
	}
	return "capabilities are there but do not count: in a user namespace, or kernel lockdown or seccomp is in the way"
}
