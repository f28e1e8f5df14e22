// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"fmt"
	"slices"
)

// judge compares a report with the aims. Each aim has the reason for its limit. Rates are
// shares within a round where they can be, since operations a second are the host's as
// much as xdpfab's.
func judge(r *report) []aim {
	m := r.results
	return checked(slices.Concat(tripAims(m), rateAims(m), mediatedAims(m), residentAims(m), transferAims(m),
		jumboAims(m), scaleAims(m), garbageAims(m), r.costAims(), r.Shared.aims()))
}

// judgeRounds compares with the aims that rounds alone decide.
func judgeRounds(m *results) []aim {
	return checked(m.judgeable(slices.Concat(tripAims(m), rateAims(m), mediatedAims(m), residentAims(m),
		transferAims(m), jumboAims(m))))
}

// tripAims are those of a round trip of one fetch-add.
func tripAims(m *results) []aim {
	// p99 and p50 are of the same run.
	spread := func(s *sample) float64 { return p99(s) / max(p50(s), 1) }
	return []aim{
		m.toFloor("fetch-add RTT p50, ThreadDomain: to the floor", "trip_domain", 1.4, 1.25).
			because("the footprint takes 1.27 to 1.30 × by itself; the limit is 1.25 if no samples are near"),
		m.atMost("the same, to the floor with xdpfab's footprint", p50, "trip_domain", "floor_footprint", 1.1).
			because("the protocol's work is a tenth of the kernel's"),
		m.atMost("the same, to UCX", p50, "trip_domain", "ucx", 0.53).
			because("the floor takes 0.43 × by itself"),
		m.atMost("the same, to libfabric tcp;ofi_rxm", p50, "trip_domain", "libfabric", 0.42).
			because("the aim for UCX, times 0.78, which is UCX to libfabric"),
		atMost("the same, p99 to p50", m.median("trip_domain", spread), "x", 2).of(m, "trip_domain").
			because("one operation in a hundred may meet an interrupt, but no stall of xdpfab's"),
		m.atMost("UDP, to raw Ethernet: RTT p50", p50, "trip_udp", "trip", 1.1).
			because("the header is 28 bytes longer"),
		m.atMost("UDP sockets, to UCX: RTT p50", p50, "sockets_trip", "ucx", 1).
			because("both make one system call to send, and one to receive"),
		m.atMost("auto progress, to manual: RTT p50", p50, "trip_auto", "trip", 1.5).
			because("program and poller share a core, which adds one hand-over"),
	}
}

// rateAims are those of operations a second, one thread to one poller.
func rateAims(m *results) []aim {
	fetch := atLeast("fetch-adds, 182 words a post", m.median("fetch", rate)/1e6, "M/s", 35).of(m, "fetch").
		because("at 28 M/s, packing took 40 % of the initiator's time")
	fetch.Note += fmt.Sprintf("; CPU %s+%s s/M", number(m.median("fetch", clientCPU)),
		number(m.median("fetch", serverCPU)))
	return []aim{
		fetch,
		m.atLeast("the same, to UCX with 64 outstanding", rate, "fetch", "ucx_rate", 60).
			because("UCX sends one operation a message, xdpfab 182 a frame"),
		m.atLeast("1 word a post, ThreadDomain, to 182 words a post", rate, "fetch_single_domain", "fetch", 0.6).
			because("21 M/s leave 48 ns a word; kernel, reading and callers take 24"),
		m.atLeast("1 word a post, to UCX with 64 outstanding", rate, "fetch_single_domain", "ucx_rate", 60).
			because("the words of many posts share a frame, too"),
		m.atLeast("base sums to fetch-adds, 182 words a post", rate, "base", "fetch", 1).
			because("the answer of a base sum has no values"),
		m.atLeast("the same, 1 word a post", rate, "base_single", "fetch_single", 1).
			because("the answer of a base sum has no values"),
		m.atLeast("one hot word, to spread words", rate, "hot", "fetch", 0.8).
			because("one thread executes, so nothing competes for the word"),
		m.atLeast("UDP sockets, to UCX with 64 outstanding: 182 words a post", rate, "sockets_fetch", "ucx_rate", 20).
			because("a datagram carries 182 words, and a system call many datagrams"),
		m.atLeast("base sums of arrays of 4096: operands, to the payload of the floor that copies", goodput,
			"array4096", "floor_stream_copied", 0.7).
			because("the floor copies operands, and xdpfab also adds them"),
	}
}

// scaleAims are those of many sessions and regions, and of a network that loses packets.
func scaleAims(m *results) []aim {
	const retransmitted = "2 % of the operations lose a packet of their own, and order makes others wait for them"
	return []aim{
		m.atLeast("1000 sessions in turn, to one: throughput", rate, "sessions", "fetch", 0.8).
			because("the sessions' state competes for the cache"),
		m.atLeast("1000 sessions, a post in flight on each, to one", rate, "sessions_busy", "fetch", 0.8).
			because("the sessions' state competes for the cache"),
		atMost("1000 sessions: target's memory each", perSession(m)/kibi, "KiB", 64).of(m, "sessions_busy", "fetch").
			because("10,000 initiators fit into 640 MiB"),
		m.atMost("one of 100,000 regions, to the only one: RTT p50", p50, "regions_idle", "trip", 1.05).
			because("an unused region costs only memory"),
		m.atMost("100,000 regions in turn, to one: RTT p50", p50, "regions_trip", "trip", 1.05).
			because("a cache miss or two is a twentieth of a round trip"),
		m.atLeast("100,000 regions, to one: throughput", rate, "regions_rate", "fetch", 0.95).
			because("an unused region costs only memory"),
		m.atMost("1 % of the packets lost: p99.9 without order, to p99.9 with it", p999,
			"lossy_unordered", "lossy", 0.33).because(retransmitted),
	}
}

// costAims are what a process costs that uses xdpfab.
func (r *report) costAims() []aim {
	m := r.results
	aims := []aim{
		atMost("allocations an operation, steady state",
			max(m.median("trip_domain", allocs), m.median("fetch", allocs)), "", 0.001).of(m, "trip_domain", "fetch").
			because("only Go's runtime allocates, now and then"),
		atMost("idle daemon: CPU", r.Idle.CPUPercent, "%", 1).because("every node runs a daemon, used or not"),
		atMost("idle daemon: resident memory", float64(r.Idle.RSS)/mebi, "MiB", 40).
			because("this is little on any node"),
	}
	if s := r.Syscalls["trip"]; s != nil {
		// One operation is one burst here. The figure includes the few calls of Go's
		// runtime.
		aims = append(aims, atMost("system calls a burst, the busier side", max(s.Client, s.Server), "", 1.02).
			because("one call sends, none receives, and Go's runtime makes a few"))
	}
	if len(r.StartSeconds) > 0 {
		aims = append(aims, atMost("start of both sides to first operation", 1000*median(r.StartSeconds), "ms", 100).
			because("a restart should be shorter than any time-out of its peers"))
	}
	return aims
}

// perSession is by how much the target's memory is greater for each session after
// the first, in bytes.
func perSession(m *results) float64 {
	rss := func(s *sample) float64 { return float64(s.ServerRSS) }
	return max(0, (m.median("sessions_busy", rss)-m.median("fetch", rss))/(sessions-1))
}
