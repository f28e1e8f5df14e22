// SPDX-License-Identifier: Apache-2.0

//go:build linux

package advise

import (
	"fmt"
	"io/fs"
	"path"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/xdpfab/xdpfab/internal/nic"
)

// Snapshot is everything that was read from a machine. The checks look at
// nothing else.
type Snapshot struct {
	System    nic.System
	Interface *nic.Interface // nil if none was named
	Settings  nic.Settings   // of the interface
	Plan      nic.Plan       // for the interface, or for one queue of an ordinary one
	// Processors is GOMAXPROCS of this process: a Go program that is started in its
	// place, with its environment, has as many.
	Processors int

	bound *Bound          // nil: the plan is a prediction
	files map[string]file // by path without the leading slash
}

// file is the text of a file, or the error of reading it.
type file struct {
	text string
	err  error
}

// sources are the files that the checks need, as patterns of path.Match. INTERFACE
// and IRQ stand for names.
var sources = []string{
	"proc/[0-9]*/comm",
	"proc/self/status",
	"proc/sys/kernel/numa_balancing",
	"proc/sys/kernel/unprivileged_bpf_disabled",
	"proc/sys/net/core/bpf_jit_enable",
	"sys/devices/system/cpu/online",
	"sys/devices/system/cpu/isolated",
	"sys/devices/system/cpu/nohz_full",
	"sys/devices/system/cpu/smt/active",
	"sys/devices/system/cpu/cpufreq/boost",
	"sys/devices/system/cpu/intel_pstate/no_turbo",
	"sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor",
	"sys/devices/system/cpu/cpu[0-9]*/cpuidle/state[0-9]*/latency",
	"sys/devices/system/cpu/cpu[0-9]*/cpuidle/state[0-9]*/disable",
	"sys/devices/system/cpu/cpu[0-9]*/topology/thread_siblings_list",
	"sys/devices/system/cpu/vulnerabilities/*",
	"sys/devices/system/node/node[0-9]*/cpulist",
	"sys/fs/cgroup/cpuset.cpus.isolated",
	"sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages",
	"sys/kernel/mm/transparent_hugepage/enabled",
}

// interfaceSources are the files about the interface.
var interfaceSources = []string{
	"sys/class/net/INTERFACE/ifindex",
	"sys/class/net/INTERFACE/napi_defer_hard_irqs",
	"sys/class/net/INTERFACE/gro_flush_timeout",
	"sys/class/net/INTERFACE/device/numa_node",
	"sys/class/net/INTERFACE/device/msi_irqs/[0-9]*",
}

// irqFile reports which CPUs may handle an interrupt.
const irqFile = "proc/irq/IRQ/smp_affinity_list"

// Take reads the machine whose root directory is given, as of os.DirFS("/"), and
// the interface, or the machine alone if that is nil.
func Take(root fs.FS, system nic.System, i *nic.Interface, settings nic.Settings) *Snapshot {
	s := &Snapshot{System: system, Interface: i, Settings: settings, Processors: runtime.GOMAXPROCS(0),
		files: map[string]file{}}
	if i == nil {
		s.Plan = system.Plan(&nic.Interface{MTU: 1500, RXQueues: 1}, nic.Want{})
	} else {
		s.Plan = system.Plan(i, nic.Want{})
	}
	for _, p := range sources {
		s.read(root, p)
	}
	if i == nil {
		return s
	}
	for _, p := range interfaceSources {
		s.read(root, strings.Replace(p, "INTERFACE", i.Name, 1))
	}
	for _, irq := range s.irqs() {
		s.read(root, strings.Replace(irqFile, "IRQ", irq, 1))
	}
	return s
}

// read reads the files of a pattern. A missing file whose pattern has no
// wildcard is kept, with its error.
func (s *Snapshot) read(root fs.FS, pattern string) {
	paths := []string{pattern}
	if strings.ContainsAny(pattern, "*[") {
		paths, _ = fs.Glob(root, pattern) // fails only for malformed patterns
	}
	for _, p := range paths {
		b, err := fs.ReadFile(root, p)
		s.files[p] = file{strings.TrimSpace(string(b)), err}
	}
}

// get returns the text of a file.
func (s *Snapshot) get(p string) (string, error) {
	f, read := s.files[p]
	switch {
	case !read:
		return "", fmt.Errorf("/%s was not looked at", p) // an omission in sources
	case f.err != nil:
		return "", fmt.Errorf("cannot read /%s: %w", p, f.err)
	}
	return f.text, nil
}

// match lists the files of a pattern in the natural order of their numbers.
func (s *Snapshot) match(pattern string) (paths []string) {
	for p := range s.files {
		if ok, _ := path.Match(pattern, p); ok {
			paths = append(paths, p)
		}
	}
	slices.SortFunc(paths, func(a, b string) int {
		if len(a) != len(b) {
			return len(a) - len(b)
		}
		return strings.Compare(a, b)
	})
	return paths
}

// number returns the whole number in a file.
func (s *Snapshot) number(p string) (int, error) {
	text, err := s.get(p)
	if err != nil {
		return 0, err
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0, fmt.Errorf("/%s says %q: want a number", p, text)
	}
	return n, nil
}

// cpus returns the list of CPUs in a file.
func (s *Snapshot) cpus(p string) (cpuSet, error) {
	text, err := s.get(p)
	if err != nil {
		return nil, err
	}
	set, err := parseCPUs(text)
	if err != nil {
		return nil, fmt.Errorf("/%s: %w", p, err)
	}
	return set, nil
}

// net is the path of a file of the interface.
func (s *Snapshot) net(name string) string { return "sys/class/net/" + s.Interface.Name + "/" + name }

// irqs lists the message-signalled interrupts of the interface's device.
func (s *Snapshot) irqs() (irqs []string) {
	for _, p := range s.match(s.net("device/msi_irqs/[0-9]*")) {
		irqs = append(irqs, path.Base(p))
	}
	return irqs
}

// Bound is what the queues of an interface have really got, or get when they are bound.
type Bound struct {
	XDP, Copy string   // modes, as in nic.Plan
	Chunk     int      // bytes of a packet buffer
	Refused   []string // what the driver or the kernel refused, with the reason
	By        string   // how it is known, for the findings: "bound for an instant"
}

// Use puts what is known in place of what the driver's features promise.
func (s *Snapshot) Use(b Bound) {
	s.bound = &b
	s.Plan.XDP, s.Plan.Copy, s.Plan.Chunk = b.XDP, b.Copy, b.Chunk
}

// boundMode is the finding about zero-copy where it is known.
func (s *Snapshot) boundMode() Finding {
	b := s.bound
	found := b.XDP + " XDP, " + b.Copy + " (" + b.By + ")"
	if b.XDP == "native" && b.Copy == "zero-copy" {
		return ok("%s", found)
	}
	if len(b.Refused) > 0 {
		found += ": " + strings.Join(b.Refused, "; ")
	}
	return advice("a NIC whose driver has it: see docs/tuning.md", "%s", found)
}
