// SPDX-License-Identifier: Apache-2.0

//go:build linux

package advise

import (
	"errors"
	"fmt"
	"io/fs"

	"golang.org/x/sys/unix"
)

// Verdict is the result of a check.
type Verdict string

// The verdicts.
const (
	OK            Verdict = "ok"
	Advice        Verdict = "advice"
	NotApplicable Verdict = "not applicable"
	Unknown       Verdict = "unknown" // it could not be read
)

// Finding is the outcome of one check.
type Finding struct {
	Check    string  `json:"check"` // a section of docs/tuning.md has this name
	Verdict  Verdict `json:"verdict"`
	Found    string  `json:"found"`    // empty if not applicable or unknown
	Expected string  `json:"expected"` // empty if not applicable
	Command  string  `json:"command"`  // how to change it, if the verdict is "advice"
	Reason   string  `json:"reason"`   // why it does not apply, or is unknown
}

// check is one comparison with the guide.
type check struct {
	name     string
	expected string
	of       scope
	run      func(s *Snapshot) Finding
}

// scope describes which interfaces a check is about.
type scope uint8

const (
	machine  scope = iota
	ethernet       // any Ethernet interface
	hardware       // one with a device behind it
	inSysfs        // as hardware, and shown by /sys
)

// checks are all checks, in the order of the guide.
var checks = []check{
	{"zero-copy", "native XDP with zero-copy", hardware, zeroCopy},
	{"driver", "settings in which the driver takes native XDP", hardware, driver},
	{"queues", "as many to send as to receive, and a CPU for each", ethernet, queues},
	{"steering", "one queue, or ntuple filters", hardware, steering},
	{"mtu", "an MTU whose packets fit into one buffer", ethernet, mtu},
	{"rx-ring", "from 512 to 768 entries", hardware, rxRing},
	{"offloads", "LRO and hardware GRO off", hardware, mergers},
	{"vlan", "frames of 802.1Q interfaces with their tags", ethernet, vlan},
	{"pause", "no pause frames", hardware, pause},
	{"coalescing", "interrupts at once: not adaptive, at most 5 µs", hardware, coalescing},
	{"irq-affinity", "each interrupt on one CPU", inSysfs, irqAffinity},
	{"irqbalance", "not running", machine, irqbalance},
	{"busy-poll", "interrupts not deferred", ethernet, deferral},
	{"numa", "the pollers on the interface's node", inSysfs, numa},
	{"isolated-cpus", "a CPU or more for the pollers alone", machine, isolated},
	{"nohz-full", "no timer tick on isolated CPUs", machine, nohzFull},
	{"cpuset", "isolated CPUs among those that a process may use", machine, cpuset},
	{"gomaxprocs", "a processor for Go for each poller, and one for the program", machine, processors},
	{"smt", "nothing else on the other thread of a poller's core", machine, smt},
	{"cpu-idle", "no idle state of 10 µs or more", machine, cpuIdle},
	{"governor", "performance", machine, governor},
	{"turbo", "on", machine, turbo},
	{"numa-balancing", "off", machine, numaBalancing},
	{"huge-pages", "reserved ones for the packet memory", machine, hugePages},
	{"memlock", "enough locked memory for the packet memory", machine, memlock},
	{"unprivileged-bpf", "disabled", machine, unprivilegedBPF},
	{"bpf-jit", "on", machine, bpfJIT},
	{"mitigations", "a decision on what costs at every system call", machine, mitigations},
	{"kernel", "all that xdpfab makes use of", machine, kernelFeatures},
}

// Check compares a snapshot with the guide.
func Check(s *Snapshot) []Finding {
	list := make([]Finding, 0, len(checks))
	for _, c := range checks {
		f, applies := s.applies(c.of)
		if applies {
			f = c.run(s)
		}
		f.Check = c.name
		if f.Expected == "" && f.Verdict != NotApplicable {
			f.Expected = c.expected
		}
		list = append(list, f)
	}
	return list
}

// Unnamed is the reason of the checks of an interface if none was named.
const Unnamed = "no interface was named"

// applies reports whether checks of a scope apply; if not, the finding has the
// reason.
func (s *Snapshot) applies(of scope) (Finding, bool) {
	i := s.Interface
	switch {
	case of == machine:
		return Finding{}, true
	case i == nil:
		return notApplicable(Unnamed), false
	case !i.Ethernet:
		return notApplicable("%s is not an Ethernet interface", i.Name), false
	case of == ethernet:
		return Finding{}, true
	case i.Kind != "device":
		return notApplicable("%s is a %s, not a NIC", i.Name, i.Kind), false
	case of == inSysfs:
		return s.sysfs()
	}
	return Finding{}, true
}

// sysfs reports whether /sys shows the interface that is meant. It shows the network
// namespace that it was mounted in, where another interface may have the name.
func (s *Snapshot) sysfs() (Finding, bool) {
	index, err := s.number(s.net("ifindex"))
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && index != s.Interface.Index:
		return unknown(
			fmt.Errorf("/sys shows another network namespace; run it where /sys is this one's (ip netns exec)")), false
	case err != nil:
		return unknown(err), false
	}
	return Finding{}, true
}

func ok(found string, args ...any) Finding {
	return Finding{Verdict: OK, Found: fmt.Sprintf(found, args...)}
}

// advice makes a finding that advises a change; how says what to run or do.
func advice(how, found string, args ...any) Finding {
	return Finding{Verdict: Advice, Found: fmt.Sprintf(found, args...), Command: how}
}

func notApplicable(reason string, args ...any) Finding {
	return Finding{Verdict: NotApplicable, Reason: fmt.Sprintf(reason, args...)}
}

// unknown makes a finding about a value that could not be read.
func unknown(err error) Finding { return Finding{Verdict: Unknown, Reason: err.Error()} }

// missing makes a finding of an error in reading a setting: a setting that does
// not exist does not apply, for the reason given.
func missing(err error, reason string, args ...any) Finding {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.EOPNOTSUPP) {
		return notApplicable(reason, args...)
	}
	return unknown(err)
}
