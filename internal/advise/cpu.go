// SPDX-License-Identifier: Apache-2.0

//go:build linux

package advise

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
)

// isolated returns the CPUs that the scheduler leaves alone, by isolcpus or by an
// isolated cpuset partition. A missing file means that there are none.
func (s *Snapshot) isolated() (all cpuSet, err error) {
	for _, p := range []string{"sys/devices/system/cpu/isolated", "sys/fs/cgroup/cpuset.cpus.isolated"} {
		set, err := s.cpus(p)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		all = append(all, set.without(all)...)
	}
	slices.Sort(all)
	return all, nil
}

// allowed returns the CPUs that this process may run on.
func (s *Snapshot) allowed() (cpuSet, error) {
	const p = "proc/self/status"
	text, err := s.get(p)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(text) {
		if list, found := strings.CutPrefix(line, "Cpus_allowed_list:"); found {
			return parseCPUs(strings.TrimSpace(list))
		}
	}
	return nil, fmt.Errorf("/%s has no line Cpus_allowed_list", p)
}

// isolated: anything else that runs on a poller's CPU shows in p99.
func isolated(s *Snapshot) Finding {
	online, err := s.cpus("sys/devices/system/cpu/online")
	if err != nil {
		return unknown(err)
	}
	set, err := s.isolated()
	switch {
	case err != nil:
		return unknown(err)
	case len(set) > 0:
		return ok("%v of %v", set, online)
	case len(online) < 3:
		return notApplicable("of %d CPUs none can be spared", len(online))
	}
	last := online[len(online)-1]
	return advice(fmt.Sprintf("on the kernel's command line: isolcpus=managed_irq,domain,%d nohz_full=%d", last, last),
		"none of %v", online)
}

// nohzFull: the timer tick interrupts a poller up to a thousand times a second.
func nohzFull(s *Snapshot) Finding {
	set, err := s.isolated()
	if err != nil {
		return unknown(err)
	}
	if len(set) == 0 {
		return notApplicable("no CPU is isolated")
	}
	quiet, err := s.cpus("sys/devices/system/cpu/nohz_full")
	if err != nil {
		return missing(err, "this kernel cannot stop the tick (CONFIG_NO_HZ_FULL)")
	}
	if rest := set.without(quiet); len(rest) > 0 {
		return advice(fmt.Sprintf("on the kernel's command line: nohz_full=%v", set), "tick on isolated CPUs %v", rest)
	}
	return ok("no tick on %v", quiet)
}

// cpuset: a process does not run on isolated CPUs unless it is moved there, and a
// poller cannot be pinned to a CPU that its process may not use.
func cpuset(s *Snapshot) Finding {
	set, err := s.isolated()
	if err != nil {
		return unknown(err)
	}
	if len(set) == 0 {
		return notApplicable("no CPU is isolated")
	}
	may, err := s.allowed()
	if err != nil {
		return unknown(err)
	}
	if rest := set.without(may); len(rest) > 0 {
		return advice(fmt.Sprintf("taskset -c %v xdpfabd --cores %v …", set, set),
			"this process may use %v, not %v", may, rest)
	}
	return ok("this process may use %v", may)
}

// processors: a poller that works, or has just gone to sleep, has a processor of Go's.
// With none left for the program, its goroutines may wait for up to 20 ms.
func processors(s *Snapshot) Finding {
	pollers := 1
	if s.Interface != nil {
		pollers = max(1, s.Interface.RXQueues)
	}
	if s.Processors > pollers {
		return ok("%d, and %d pollers at most", s.Processors, pollers)
	}
	return advice(fmt.Sprintf("GOMAXPROCS=%d for a program with automatic progress, or fewer queues", pollers+1),
		"%d, and %d pollers if all queues are used", s.Processors, pollers)
}

// smt: two threads of a core share its pipelines and caches.
func smt(s *Snapshot) Finding {
	active, err := s.number("sys/devices/system/cpu/smt/active")
	switch {
	case err != nil:
		return missing(err, "this machine has no such thing")
	case active == 0:
		return ok("one thread a core")
	}
	set, err := s.isolated()
	if err != nil {
		return unknown(err)
	}
	if len(set) == 0 {
		return advice("echo off > /sys/devices/system/cpu/smt/control", "two threads a core, no CPU isolated")
	}
	var shared cpuSet
	for _, c := range set {
		siblings, err := s.cpus(fmt.Sprintf("sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", c))
		if err != nil {
			return unknown(err)
		}
		shared = append(shared, siblings.without(set)...)
	}
	if len(shared) > 0 {
		return advice("isolate them as well, and give them no poller",
			"other threads of isolated cores in use: %v", shared)
	}
	return ok("isolated cores are isolated whole: %v", set)
}

// deepest is the least exit latency of an idle state that is too long, in
// microseconds: more than a round trip.
const deepest = 10

// cpuIdle: a core that sleeps deeply wakes up late. The core of a poller that
// spins never sleeps; that of one that waits does, and so does that of an
// interrupt.
func cpuIdle(s *Snapshot) Finding {
	states := s.match("sys/devices/system/cpu/cpu[0-9]*/cpuidle/state[0-9]*/latency")
	if len(states) == 0 {
		return notApplicable("the kernel does not choose idle states here (a hypervisor may)")
	}
	slow, most := map[string]bool{}, 0
	for _, p := range states {
		latency, err := s.number(p)
		if err != nil {
			return unknown(err)
		}
		dir := path.Dir(p)
		disabled, err := s.number(dir + "/disable")
		if err != nil {
			return unknown(err)
		}
		if latency >= deepest && disabled == 0 {
			slow[path.Base(path.Dir(path.Dir(dir)))] = true
			most = max(most, latency)
		}
	}
	if len(slow) == 0 {
		return ok("none enabled")
	}
	return advice(fmt.Sprintf("cpupower idle-set -D %d", deepest), "up to %d µs on %d CPUs", most, len(slow))
}

// governor: a core that lowers its clock when there is little to do answers
// slowly.
func governor(s *Snapshot) Finding {
	files := s.match("sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor")
	if len(files) == 0 {
		return notApplicable("the kernel does not choose frequencies here (a hypervisor may)")
	}
	count := map[string]int{}
	for _, p := range files {
		g, err := s.get(p)
		if err != nil {
			return unknown(err)
		}
		count[g]++
	}
	var found []string
	for _, g := range slices.Sorted(maps.Keys(count)) {
		found = append(found, fmt.Sprintf("%s on %d CPUs", g, count[g]))
	}
	if count["performance"] == len(files) {
		return ok("%s", found[0])
	}
	return advice("cpupower frequency-set -g performance", "%s", strings.Join(found, ", "))
}

// turbo: with turbo off, a core is slower than it could be.
func turbo(s *Snapshot) Finding {
	off, err := s.number("sys/devices/system/cpu/intel_pstate/no_turbo")
	if err == nil {
		if off == 0 {
			return ok("on")
		}
		return advice("echo 0 > /sys/devices/system/cpu/intel_pstate/no_turbo", "off")
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return unknown(err)
	}
	on, err := s.number("sys/devices/system/cpu/cpufreq/boost")
	switch {
	case err != nil:
		return missing(err, "the kernel does not choose frequencies here (a hypervisor may)")
	case on == 0:
		return advice("echo 1 > /sys/devices/system/cpu/cpufreq/boost", "off")
	}
	return ok("on")
}
