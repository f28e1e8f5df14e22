// SPDX-License-Identifier: Apache-2.0

//go:build linux

package advise

import (
	"fmt"
	"path"
	"strings"
)

// numaBalancing: the kernel unmaps pages now and then to see which node uses
// them, and each time the poller faults.
func numaBalancing(s *Snapshot) Finding {
	if n := len(s.match("sys/devices/system/node/node[0-9]*/cpulist")); n < 2 {
		return notApplicable("%d NUMA node", n)
	}
	on, err := s.number("proc/sys/kernel/numa_balancing")
	switch {
	case err != nil:
		return missing(err, "this kernel has none")
	case on == 0:
		return ok("off")
	}
	return advice("sysctl -w kernel.numa_balancing=0", "on")
}

// hugePages: on small pages, the packet memory takes a TLB entry for every two
// packets.
func hugePages(s *Snapshot) Finding {
	const page = 2 << 20
	want := (int(s.Plan.Pinned) + page - 1) / page
	expected := fmt.Sprintf("%d reserved, for %d MiB of packet memory; regions on huge pages want more", want,
		s.Plan.Pinned>>20)
	reserved, err := s.number("sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages")
	if err != nil {
		return missing(err, "this kernel has no huge pages of 2 MiB")
	}
	transparent, err := s.get("sys/kernel/mm/transparent_hugepage/enabled")
	if err != nil {
		transparent = "not known"
	} else if _, rest, chosen := strings.Cut(transparent, "["); chosen {
		transparent, _, _ = strings.Cut(rest, "]")
	}
	f := ok("%d reserved; transparent ones: %s", reserved, transparent)
	if reserved < want {
		f.Verdict, f.Command = Advice, fmt.Sprintf("sysctl -w vm.nr_hugepages=%d", want)
	}
	f.Expected = expected
	return f
}

// memlock: the kernel counts packet memory as locked, an old one BPF objects too.
func memlock(s *Snapshot) Finding {
	need, old := s.Plan.Pinned, s.System.ChargesBPF()
	expected := fmt.Sprintf("CAP_IPC_LOCK, or %d KiB", need>>10)
	if old {
		expected = "no limit: this kernel counts BPF objects, too"
	}
	f := ok("no limit")
	switch {
	case s.System.Unlimited():
	case !old && s.System.Can("CAP_IPC_LOCK"):
		f = ok("CAP_IPC_LOCK")
	case !old && s.System.Memlock >= need:
		f = ok("%d KiB", s.System.Memlock>>10)
	default:
		f = advice("ulimit -l unlimited (systemd: LimitMEMLOCK=infinity)", "%d KiB", s.System.Memlock>>10)
	}
	f.Expected = expected
	return f
}

// unprivilegedBPF: xdpfab does not need it, and it has made attacks possible
// before.
func unprivilegedBPF(s *Snapshot) Finding {
	v, err := s.number("proc/sys/kernel/unprivileged_bpf_disabled")
	switch {
	case err != nil:
		return missing(err, "this kernel has no bpf system call")
	case v == 0:
		return advice("sysctl -w kernel.unprivileged_bpf_disabled=2", "allowed")
	}
	return ok("kernel.unprivileged_bpf_disabled = %d", v)
}

// bpfJIT: the XDP program runs for every packet, and is several times slower when
// it is interpreted.
func bpfJIT(s *Snapshot) Finding {
	v, err := s.number("proc/sys/net/core/bpf_jit_enable")
	switch {
	case err != nil:
		return missing(err, "shown in the first network namespace alone, or there is no compiler for this CPU")
	case v == 0:
		return advice("sysctl -w net.core.bpf_jit_enable=1", "off: the XDP program is interpreted")
	}
	return ok("net.core.bpf_jit_enable = %d", v)
}

// costly are the mitigations that work at the border between user space and
// kernel, which each kick crosses: by file, the text that the kernel writes when
// they are in force.
var costly = map[string]string{
	"meltdown": "PTI", "mds": "Clear CPU buffers", "retbleed": "Mitigation",
	"spec_rstack_overflow": "Mitigation", "mmio_stale_data": "Clear CPU buffers",
}

// mitigations: the check only reports those in force, as their cost is the
// operator's decision.
func mitigations(s *Snapshot) Finding {
	files := s.match("sys/devices/system/cpu/vulnerabilities/*")
	if len(files) == 0 {
		return notApplicable("this kernel does not tell them")
	}
	var on []string
	for _, p := range files {
		says, isCostly := costly[path.Base(p)]
		if !isCostly {
			continue
		}
		text, err := s.get(p)
		if err != nil {
			return unknown(err)
		}
		if strings.Contains(text, says) {
			on = append(on, path.Base(p))
		}
	}
	if on == nil {
		return ok("none in force that costs at a system call")
	}
	return advice("where all code is trusted, on the kernel's command line: mitigations=off; measure what it gives",
		"%s", strings.Join(on, ", "))
}

// kernelFeatures: a newer kernel sends more packets for each system call, and
// its completions in copy mode are right.
func kernelFeatures(s *Snapshot) Finding {
	var lacks []string
	for _, f := range s.System.Features {
		if !f.Present {
			lacks = append(lacks, fmt.Sprintf("%s (%s)", f.Name, f.Since))
		}
	}
	if lacks == nil {
		return ok("Linux %s", s.System.Kernel)
	}
	return advice("a newer kernel", "Linux %s lacks: %s", s.System.Kernel, strings.Join(lacks, ", "))
}
