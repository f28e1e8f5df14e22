// SPDX-License-Identifier: Apache-2.0

//go:build linux

package advise

import (
	"fmt"
	"strings"

	"github.com/xdpfab/xdpfab/internal/nic"
)

// zeroCopy: the driver puts packets into the packet memory itself.
func zeroCopy(s *Snapshot) Finding {
	p := s.Plan
	switch {
	case s.bound != nil:
		return s.boundMode()
	case !s.Interface.FeaturesKnown:
		return notApplicable("Linux %s does not tell what a driver can (6.3 does)", s.System.Kernel)
	case p.Copy == "zero-copy":
		return ok("native XDP; the driver %s offers zero-copy", s.Interface.Driver)
	}
	return advice("a NIC whose driver has it: see docs/tuning.md", "%s XDP, copy (%s)", p.XDP, s.Interface.Driver)
}

// queues: one poller drives one queue, and a poller needs a CPU.
func queues(s *Snapshot) Finding {
	i := s.Interface
	online, err := s.cpus("sys/devices/system/cpu/online")
	if err != nil {
		return unknown(err)
	}
	alone, err := s.isolated()
	if err != nil {
		return unknown(err)
	}
	most := min(len(online), nic.MaxQueues)
	if len(alone) > 0 {
		most = min(len(alone), nic.MaxQueues)
	}
	found := fmt.Sprintf("%d to receive, %d to send, %d CPUs for them", i.RXQueues, i.TXQueues, most)
	if i.TXQueues >= i.RXQueues && i.RXQueues <= most {
		return ok("%s", found)
	}
	return advice(i.SetQueues(min(i.RXQueues, i.TXQueues, most)), "%s", found)
}

// mtu: a packet has to fit into one buffer.
func mtu(s *Snapshot) Finding {
	i := s.Interface
	if i.MTU >= nic.MinMTU && i.MTU <= s.Plan.MostMTU() {
		return ok("%d bytes, in buffers of %d", i.MTU, s.Plan.Chunk)
	}
	return advice(fmt.Sprintf("ip link set dev %s mtu %d", i.Name, min(max(i.MTU, 1500), s.Plan.MostMTU())),
		"%d bytes", i.MTU)
}

// rxRing: a zero-copy driver fills its ring from the packet buffers that a queue
// receives into. A ring of more entries than need not wait in RX, or be looked at, runs
// short of them; with few entries it overflows.
func rxRing(s *Snapshot) Finding {
	const (
		buffers = nic.DefaultChunks / 2 // a queue has as many again to send from
		fewest  = buffers / 4
		most    = buffers/4 + buffers/8 // half of the buffers may wait in RX (nic.Plan.RingSize)
	)
	d := s.Settings
	switch {
	case s.Plan.Copy != "zero-copy":
		return notApplicable("matters with zero-copy alone")
	case d.RingErr != nil:
		return missing(d.RingErr, "%s has no ring sizes to set", s.Interface.Driver)
	case d.RXRing >= fewest && d.RXRing <= most:
		return ok("%d of at most %d", d.RXRing, d.RXRingMax)
	}
	want := uint32(fewest)
	if d.RXRingMax > 0 {
		want = min(want, d.RXRingMax)
	}
	if d.RXRing == want {
		return ok("%d, the driver's most", d.RXRing)
	}
	return advice(fmt.Sprintf("ethtool -G %s rx %d", s.Interface.Name, want), "%d of at most %d", d.RXRing, d.RXRingMax)
}

// mergers: offloads that merge packets in the NIC do so before XDP.
func mergers(s *Snapshot) Finding {
	d := s.Settings
	if d.OffloadsErr != nil {
		return missing(d.OffloadsErr, "%s has no offloads to set", s.Interface.Driver)
	}
	var on []string
	for _, o := range [][2]string{{"rx-lro", "lro"}, {"rx-gro-hw", "rx-gro-hw"}} {
		if d.Offloads[o[0]] {
			on = append(on, o[1])
		}
	}
	if on == nil {
		return ok("both off")
	}
	return advice(fmt.Sprintf("ethtool -K %s %s off", s.Interface.Name, strings.Join(on, " off ")), "on: %s",
		strings.Join(on, ", "))
}

// pause: one slow receiver stops everything behind its switch port.
func pause(s *Snapshot) Finding {
	d := s.Settings
	switch {
	case d.PauseErr != nil:
		return missing(d.PauseErr, "%s has no pause frames", s.Interface.Driver)
	case !d.PauseRX && !d.PauseTX:
		return ok("none")
	}
	return advice(fmt.Sprintf("ethtool -A %s autoneg off rx off tx off", s.Interface.Name),
		"obeyed: %s, sent: %s", yesNo(d.PauseRX), yesNo(d.PauseTX))
}

// mostUsecs is how long an interrupt may be held back: a tenth of the round trip
// that congestion control assumes for an idle network.
const mostUsecs = 5

// coalescing: the delay of an interrupt is added to every round trip that finds
// the receiver asleep.
func coalescing(s *Snapshot) Finding {
	d := s.Settings
	switch {
	case d.CoalesceErr != nil:
		return missing(d.CoalesceErr, "%s has no interrupt coalescing to set", s.Interface.Driver)
	case !d.AdaptiveRX && d.RXUsecs <= mostUsecs:
		return ok("not adaptive, %d µs", d.RXUsecs)
	}
	how := "not adaptive"
	if d.AdaptiveRX {
		how = "adaptive"
	}
	return advice(fmt.Sprintf("ethtool -C %s adaptive-rx off rx-usecs 0", s.Interface.Name), "%s, %d µs",
		how, d.RXUsecs)
}

// deferral: with napi_defer_hard_irqs and gro_flush_timeout the kernel leaves all queues
// to applications that poll them, until the timeout. xdpfab does so only when it is told
// to, and then sets it for its own queues, where the kernel can; otherwise each packet
// may wait for that long. A veth has no interrupts, and gets ten times slower.
func deferral(s *Snapshot) Finding {
	if f, shown := s.sysfs(); !shown {
		return f
	}
	polls, err1 := s.number(s.net("napi_defer_hard_irqs"))
	timeout, err2 := s.number(s.net("gro_flush_timeout"))
	switch {
	case err1 != nil:
		return missing(err1, "this kernel cannot defer interrupts")
	case err2 != nil:
		return missing(err2, "this kernel cannot defer interrupts")
	case polls == 0 && timeout == 0 && !s.pollsAlone():
		return ok("napi_defer_hard_irqs 0, gro_flush_timeout 0")
	case polls == 0 && timeout == 0:
		return ok("napi_defer_hard_irqs 0, gro_flush_timeout 0; xdpfabd --busy-poll defers those of its queues, if " +
			"it shall take a core for each")
	}
	dir := "/" + s.net("")
	return advice(fmt.Sprintf("echo 0 > %snapi_defer_hard_irqs; echo 0 > %sgro_flush_timeout", dir, dir),
		"napi_defer_hard_irqs %d, gro_flush_timeout %d ns", polls, timeout)
}

// pollsAlone reports whether busy polling is to be had without these settings.
func (s *Snapshot) pollsAlone() bool {
	return s.Interface.Kind == "device" && s.Plan.XDP == "native" && s.System.DefersQueues()
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
