// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
)

// aim is something that the project wants to be true, and whether it is.
type aim struct {
	What   string  `json:"what"`
	Value  float64 `json:"value"`
	Unit   string  `json:"unit"` // "x" for a ratio
	Limit  float64 `json:"limit"`
	AtMost bool    `json:"at_most"` // else at least
	Met    bool    `json:"met"`
	Note   string  `json:"note,omitempty"`
}

const (
	kibi = 1 << 10
	mebi = 1 << 20
)

func atMost(what string, value float64, unit string, limit float64) aim {
	return aim{What: what, Value: value, Unit: unit, Limit: limit, AtMost: true, Met: value <= limit}
}

func atLeast(what string, value float64, unit string, limit float64) aim {
	return aim{What: what, Value: value, Unit: unit, Limit: limit, Met: value >= limit}
}

// judge compares a report with the aims.
func judge(r *report) []aim {
	m := r.results
	// p99 and p50 are of the same run.
	spread := func(s *sample) float64 { return p99(s) / max(p50(s), 1) }
	aims := []aim{
		atMost("fetch-add RTT p50, manual, raw: to the floor", m.ratio("trip", "floor", p50), "x", 1.15),
		atMost("the same, to UCX", m.ratio("trip", "ucx", p50), "x", 0.5),
		atMost("the same, to libfabric tcp;ofi_rxm", m.ratio("trip", "libfabric", p50), "x", 0.33),
		atMost("the same, p99 to p50", m.median("trip", spread), "x", 2),
		atLeast("fetch-add throughput, 1 thread to 1 poller, 182 words a post", m.median("fetch", rate)/1e6, "M/s", 20),
		atLeast("the same, to UCX with 64 outstanding", m.ratio("fetch", "ucx_rate", rate), "x", 60),
		atLeast("fetch-add throughput, 1 thread to 1 poller, 1 word a post",
			m.median("fetch_single", rate)/1e6, "M/s", 20),
		atLeast("the same, to UCX with 64 outstanding", m.ratio("fetch_single", "ucx_rate", rate), "x", 60),
		atLeast("base sum throughput, 182 words a post", m.median("base", rate)/1e6, "M/s", 25),
		atLeast("base sum throughput, 1 word a post", m.median("base_single", rate)/1e6, "M/s", 25),
		atLeast("one hot word, to spread words", m.ratio("hot", "fetch", rate), "x", 0.8),
		atMost("UDP, to raw Ethernet: RTT p50", m.ratio("trip_udp", "trip", p50), "x", 1.1),
		atMost("UDP sockets, to UCX: RTT p50", m.ratio("sockets_trip", "ucx", p50), "x", 1),
		atLeast("UDP sockets, to UCX with 64 outstanding: throughput, 182 words a post",
			m.ratio("sockets_fetch", "ucx_rate", rate), "x", 20),
		atMost("auto progress, to manual: RTT p50", m.ratio("trip_auto", "trip", p50), "x", 1.5),
		atMost("idle daemon: CPU", r.Idle.CPUPercent, "%", 1),
		payloadAim(m),
		atLeast("1000 sessions in turn, to one: throughput", m.ratio("sessions", "fetch", rate), "x", 0.8),
		atLeast("1000 sessions, a post in flight on each, to one", m.ratio("sessions_busy", "fetch", rate), "x", 0.8),
		atMost("1000 sessions: target's memory each", perSession(m)/kibi, "KiB", 64),
		atMost("one of 100,000 regions, to the only one: RTT p50", m.ratio("regions_idle", "trip", p50), "x", 1.05),
		atMost("100,000 regions in turn, to one: RTT p50", m.ratio("regions_trip", "trip", p50), "x", 1.05),
		atLeast("100,000 regions, to one: throughput", m.ratio("regions_rate", "fetch", rate), "x", 0.95),
		atMost("allocations an operation, steady state",
			max(m.median("trip", allocs), m.median("fetch", allocs)), "", 0.001),
	}
	if s := r.Syscalls["trip"]; s != nil {
		// One operation is one burst here. The figure includes the few calls of Go's
		// runtime.
		aims = append(aims, atMost("system calls a burst, the busier side", max(s.Client, s.Server), "", 1.02))
	}
	aims = append(aims, atMost("idle daemon: resident memory", float64(r.Idle.RSS)/mebi, "MiB", 40))
	if len(r.StartSeconds) > 0 {
		aims = append(aims, atMost("start of both sides to first operation", 1000*median(r.StartSeconds), "ms", 100))
	}
	tail := atMost("1 % of the packets lost: p99 without order, to p99 with it",
		m.ratio("lossy_unordered", "lossy", p99), "x", 0.5)
	tail.Note = fmt.Sprintf("p99.9: %s x", number(m.ratio("lossy_unordered", "lossy", p999)))
	aims = append(append(append(aims, tail), transferAims(m)...), steps(m)...)
	aims = append(append(append(aims, mediatedAims(m)...), r.Shared.aims()...), residentAims(m)...)
	for i, peer := range []string{"floor", "ucx", "libfabric"} {
		aims[i].Note = fmt.Sprintf("best rounds: %s x", number(m.ratioOfBest("trip", peer)))
	}
	return checked(aims)
}

// checked marks aims as missed whose ratios were not measured.
func checked(aims []aim) []aim {
	for i := range aims {
		if aims[i].Unit == "x" && aims[i].Value == 0 {
			aims[i].Met, aims[i].Note = false, "not measured"
		}
	}
	return aims
}

// measured leaves out the aims whose ratios were not measured: a quick run has not all of
// the contests.
func measured(aims []aim) []aim {
	return slices.DeleteFunc(aims, func(a aim) bool { return a.Unit == "x" && a.Value == 0 })
}

// steps are intermediate aims on the way to those of the project: for one word a post,
// and for the ratio of a round trip to the floor's.
func steps(m *results) []aim {
	return append([]aim{
		atMost("on the way: fetch-add RTT p50, manual, raw: to the floor", m.ratio("trip", "floor", p50), "x", 1.25),
		atLeast("on the way: fetch-add throughput, 1 thread to 1 poller, 1 word a post",
			m.median("fetch_single", rate)/1e6, "M/s", 14),
	}, domainSteps(m)...)
}

// domainSteps are those for an application that keeps its calls apart itself.
func domainSteps(m *results) []aim {
	return []aim{
		atMost("on the way, ThreadDomain: fetch-add RTT p50 to the floor",
			m.ratio("trip_domain", "floor", p50), "x", 1.2),
		atLeast("on the way, ThreadDomain: fetch-add throughput, 1 word a post",
			m.median("fetch_single_domain", rate)/1e6, "M/s", 20),
	}
}

// payloadAim is 3 GB/s of operands, or 70 % of what the floor carries, whichever is
// lower.
func payloadAim(m *results) aim {
	const elements, share, most = 4096, 0.7, 3.0
	ours := m.median("array4096", rate) * elements * 8 / 1e9
	floor := m.median("floor_payload", rate) * fullFrame / 1e9
	a := atLeast("arrays of 4096: operands", ours, "GB/s", min(most, share*floor))
	a.Note = fmt.Sprintf("floor: %.2f GB/s", floor)
	return a
}

// perSession is by how much the target's memory is greater for each session after
// the first, in bytes.
func perSession(m *results) float64 {
	rss := func(s *sample) float64 { return float64(s.ServerRSS) }
	return max(0, (m.median("sessions_busy", rss)-m.median("fetch", rss))/(sessions-1))
}

func printAims(out io.Writer, aims []aim) {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "\nAims\n  \tmeasured\taim\t\t")
	for _, a := range aims {
		sign, met := "≥", "MISSED"
		if a.AtMost {
			sign = "≤"
		}
		if a.Met {
			met = "met"
		}
		fmt.Fprintf(w, "  %s\t%s %s\t%s %s %s\t%s\t%s\n", a.What, number(a.Value), a.Unit, sign, number(a.Limit),
			a.Unit, met, a.Note)
	}
	w.Flush()
	met := len(aims) - len(slices.DeleteFunc(slices.Clone(aims), func(a aim) bool { return a.Met }))
	fmt.Fprintf(out, "\n%d of %d aims are met.\n", met, len(aims))
}
