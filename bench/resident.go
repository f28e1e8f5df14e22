// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"time"
)

// A resident region: the XDP program executes, and the target's process sleeps.

// residentTrip is the contest of its round trip.
func residentTrip(t time.Duration) entry {
	return entry{"resident_trip", roundTrips, inXDP("xdpfab fetch-add, manual, ThreadDomain, resident region",
		fabRun{threading: "domain", seconds: t})}
}

// residentRates are those of its throughput.
func residentRates(t time.Duration) []entry {
	full := fabRun{window: manyPosts, scatter: scattered, words: spreadWords, seconds: t}
	single := fabRun{window: singleWindow, words: spreadWords, threading: "domain", seconds: t}
	pair := func(words int) fabRun { r := full; r.endpoints, r.words = 2, words; return r }
	return []entry{
		{"resident_fetch", throughputs, inXDP("xdpfab fetch-add, 182 words a post, resident region", full)},
		{"resident_single", throughputs,
			inXDP("xdpfab fetch-add, 1 word a post, ThreadDomain, resident region", single)},
		{"resident_pair", throughputs, inXDP("the same with two sessions in turn", pair(spreadWords))},
		{"resident_hot", throughputs, inXDP("the same on one word", pair(1))},
	}
}

// seldom is a rate, in operations a second, at which a poller has fallen asleep before
// the next one arrives.
const seldom = 1000

// residentTails are contests of the slowest operations, when the target's poller sleeps,
// and when another process wants its core.
func residentTails(t time.Duration) []entry {
	asleep := fabRun{window: manyPosts, rate: seldom, threading: "domain", targetProgress: "auto", seconds: 3 * t}
	busy := fabRun{threading: "domain", seconds: t, hogged: true}
	return []entry{
		{"asleep", tails, fab("1000 operations a second, poller asleep", asleep)},
		{"resident_asleep", tails, inXDP("the same, resident region", asleep)},
		{"hogged", tails, fab("one operation in flight, the target's core busy", busy)},
		{"resident_hogged", tails, inXDP("the same, resident region", busy)},
	}
}

// inXDP is xdpfab with a resident region, whose target sleeps.
func inXDP(name string, r fabRun) *contest {
	r.resident, r.targetProgress = true, "auto"
	return fab(name, r)
}

// hog starts a process that keeps the target's core busy.
func (n *network) hog(ctx context.Context) (*process, error) {
	return n.start(ctx, n.B, n.serverCore, command{program: "sh", args: []string{"-c", "while :; do :; done"}})
}

// residentAims are the aims of resident regions. On veth one core does both sides, since
// the target's XDP program runs within the system call by which the initiator sends. So
// rates are compared for each second of CPU.
func residentAims(m *results) []aim {
	return []aim{
		m.atMost("resident region: fetch-add RTT p50, to the floor", p50, "resident_trip", "floor", 0.75).
			because("one `sendto` takes 0.50 to 0.54 × by itself"),
		m.atMost("the same, to UCX", p50, "resident_trip", "ucx", 0.33).
			because("the aim for the floor, times 0.43, which is floor to UCX"),
		m.atMost("the same, CPU of both sides, to the poller's", bothCPU, "resident_trip", "trip_domain", 0.6).
			because("the target does not poll, which saves almost half"),
		// The poller's seconds a word by the resident region's are the latter's rate by
		// the former's, for each second.
		atLeast("resident region: 182 words a post, rate for each CPU-second, to the poller's",
			m.ratio("fetch", "resident_fetch", bothCPU), "x", 1.4).of(m, "fetch", "resident_fetch").
			because("nobody polls; but a word takes 19 ns, and a poller needs 3 to 4"),
		atLeast("the same, 1 word a post", m.ratio("fetch_single_domain", "resident_single", bothCPU), "x", 1).
			of(m, "fetch_single_domain", "resident_single").
			because("most of the work is the initiator's, which stays the same"),
		m.atLeast("resident region: one hot word of two sessions, to spread words", rate,
			"resident_hot", "resident_pair", 0.8).
			because("XDP programs of a queue run in turn, so nothing competes for the word"),
		m.atMost("resident region: p99, nobody awake, to the poller's", p99, "resident_asleep", "asleep", 0.5).
			because("nobody has to be woken"),
		m.atMost("the same, the target's core busy", p99, "resident_hogged", "hogged", 0.5).
			because("the program runs in the kernel, without a scheduler"),
	}
}

// residentReport is what the last line of the quick mode says of them; the ratios are as
// those of quickReport.
type residentReport struct {
	RTTVsFloor float64 `json:"resident_rtt_vs_floor,omitempty"`
	RTTVsUCX   float64 `json:"resident_rtt_vs_ucx,omitempty"`
	Mops       float64 `json:"resident_mops,omitempty"`        // 182 words a post
	MopsSingle float64 `json:"resident_mops_single,omitempty"` // 1 word a post
	// CPURate is 182 words a post, the rate for each CPU-second, to the poller's.
	CPURate float64 `json:"resident_cpu_rate_vs_poller,omitempty"`
}

func residentResult(r *results) residentReport {
	return residentReport{
		RTTVsFloor: r.ratio("resident_trip", "floor", p50), RTTVsUCX: r.ratio("resident_trip", "ucx", p50),
		Mops: r.median("resident_fetch", rate) / 1e6, MopsSingle: r.median("resident_single", rate) / 1e6,
		CPURate: r.ratio("fetch", "resident_fetch", bothCPU),
	}
}
