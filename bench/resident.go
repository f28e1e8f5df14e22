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

// residentAims are the aims of resident regions.
func residentAims(m *results) []aim {
	return []aim{
		atMost("resident region: fetch-add RTT p50, to the floor", m.ratio("resident_trip", "floor", p50), "x", 0.45),
		atMost("the same, to UCX", m.ratio("resident_trip", "ucx", p50), "x", 0.2),
		atLeast("resident region: fetch-add throughput, 182 words a post, to the poller's",
			m.ratio("resident_fetch", "fetch", rate), "x", 1),
		atLeast("the same, 1 word a post", m.ratio("resident_single", "fetch_single_domain", rate), "x", 1),
		atLeast("resident region: one hot word of two sessions, to spread words",
			m.ratio("resident_hot", "resident_pair", rate), "x", 0.8),
		atMost("resident region: CPU of both sides, 182 words a post, to the poller's",
			m.ratio("resident_fetch", "fetch", bothCPU), "x", 0.6),
		atMost("the same, one operation in flight", m.ratio("resident_trip", "trip_domain", bothCPU), "x", 0.6),
		atMost("resident region: p99, nobody awake, to the poller's",
			m.ratio("resident_asleep", "asleep", p99), "x", 0.5),
		atMost("the same, the target's core busy", m.ratio("resident_hogged", "hogged", p99), "x", 0.5),
	}
}

// residentReport is what the last line of the quick mode says of them; the ratios are as
// those of quickReport.
type residentReport struct {
	RTTVsFloor float64 `json:"resident_rtt_vs_floor,omitempty"`
	RTTVsUCX   float64 `json:"resident_rtt_vs_ucx,omitempty"`
	Mops       float64 `json:"resident_mops,omitempty"`        // 182 words a post
	MopsSingle float64 `json:"resident_mops_single,omitempty"` // 1 word a post
}

func residentResult(r *results) residentReport {
	return residentReport{
		RTTVsFloor: r.ratio("resident_trip", "floor", p50), RTTVsUCX: r.ratio("resident_trip", "ucx", p50),
		Mops: r.median("resident_fetch", rate) / 1e6, MopsSingle: r.median("resident_single", rate) / 1e6,
	}
}
