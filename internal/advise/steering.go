// SPDX-License-Identifier: Apache-2.0

//go:build linux

package advise

import (
	"fmt"
	"path"
	"strings"
)

// steering: a NIC spreads UDP over its queues by hash, and puts raw Ethernet into
// one queue unless a filter says otherwise. A session whose frames arrive on
// another queue than its hello works, but its frames are handed over from poller
// to poller.
func steering(s *Snapshot) Finding {
	i, d := s.Interface, s.Settings
	if i.RXQueues == 1 {
		return ok("one queue: everything comes there")
	}
	if d.OffloadsErr != nil {
		return missing(d.OffloadsErr, "%s has no filters to set", i.Driver)
	}
	on, there := d.Offloads["rx-ntuple-filter"]
	switch {
	case on:
		return ok("%d queues, ntuple filters on; the rules: ethtool -n %s", i.RXQueues, i.Name)
	case there:
		return advice(fmt.Sprintf("ethtool -K %s ntuple on", i.Name), "%d queues, ntuple filters off", i.RXQueues)
	}
	return advice(i.SetQueues(1), "%d queues, and the driver has no ntuple filters", i.RXQueues)
}

// irqAffinity: an interrupt that moves between CPUs finds cold caches, and
// disturbs the pollers' CPUs.
func irqAffinity(s *Snapshot) Finding {
	irqs := s.irqs()
	if len(irqs) == 0 {
		return notApplicable("%s shows no interrupts of its own", s.Interface.Name)
	}
	online, err := s.cpus("sys/devices/system/cpu/online")
	if err != nil {
		return unknown(err)
	}
	if len(online) == 1 {
		return notApplicable("there is one CPU")
	}
	var loose []string
	for _, irq := range irqs {
		on, err := s.cpus(strings.Replace(irqFile, "IRQ", irq, 1))
		if err != nil {
			return unknown(err)
		}
		if len(on.and(online)) > 1 {
			loose = append(loose, irq)
		}
	}
	if loose == nil {
		return ok("%d interrupts, each on one CPU", len(irqs))
	}
	return advice(fmt.Sprintf("echo CPU > /proc/irq/IRQ/smp_affinity_list  # IRQ: %s", strings.Join(loose, " ")),
		"%d of %d interrupts on several CPUs", len(loose), len(irqs))
}

// irqbalance moves interrupts every ten seconds, whatever the administrator has
// set.
func irqbalance(s *Snapshot) Finding {
	processes := s.match("proc/[0-9]*/comm")
	readable := 0
	for _, p := range processes {
		name, err := s.get(p)
		if err != nil {
			continue // it has ended since
		}
		readable++
		if name == "irqbalance" {
			return advice("systemctl disable --now irqbalance", "running, process %s", path.Base(path.Dir(p)))
		}
	}
	if readable == 0 {
		return unknown(fmt.Errorf("/proc shows no processes"))
	}
	return ok("not among %d processes", readable)
}

// numa: memory and PCI slots belong to a NUMA node; from another node each access
// takes about twice as long.
func numa(s *Snapshot) Finding {
	if n := len(s.match("sys/devices/system/node/node[0-9]*/cpulist")); n < 2 {
		return notApplicable("%d NUMA node", n)
	}
	node, err := s.number(s.net("device/numa_node"))
	if err != nil {
		return missing(err, "the device does not tell its node")
	}
	if node < 0 {
		return notApplicable("the firmware does not tell the device's node")
	}
	local, err := s.cpus(fmt.Sprintf("sys/devices/system/node/node%d/cpulist", node))
	if err != nil {
		return unknown(err)
	}
	pollers, err := s.isolated()
	whose := "isolated"
	if err == nil && len(pollers) == 0 {
		pollers, err = s.allowed()
		whose = "usable"
	}
	if err != nil {
		return unknown(err)
	}
	if far := pollers.without(local); len(far) > 0 {
		return advice(fmt.Sprintf("xdpfabd --cores from %v", local), "node %d is CPUs %v; %s elsewhere: %v", node,
			local, whose, far)
	}
	return ok("node %d, CPUs %v; %s: %v", node, local, whose, pollers)
}
