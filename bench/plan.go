// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"slices"
	"strconv"
	"time"
)

// entry is a contest of a plan. The id names it in results, aims and limits.
type entry struct {
	id, group string
	*contest
}

// Groups of the full plan, in the order of the table.
const (
	roundTrips   = "Round trips, one operation in flight"
	throughputs  = "Throughput, window full"
	tails        = "Round trips when the poller has to be woken first"
	arrays       = "Base sums of arrays of uint64"
	messageTrips = "Round trips of messages and reads of 8 bytes, one at a time"
	messageRates = "Messages of 4 KiB, one way, MTU 1500 unless it is said"
	streams      = "Writes and reads of 1 MiB, one way, MTU 1500 unless it is said"
	losses       = "Open loop of one word, 1 % of the packets lost in either direction"
)

const (
	// Samples are short and rounds many: the speed of a virtual machine changes from
	// second to second, and whether its cores are near to each other within a fifth of
	// one. Both sides of a ratio should be measured in the same state.
	sampleTime   = 125 * time.Millisecond
	sessions     = 1000
	manyRegions  = 100_000
	smallFrame   = 64   // bytes of the floor's frame without counters
	fullFrame    = 1514 // bytes with the Ethernet header, at the MTU of 1500
	perFrame     = 60   // counters that the floor increments for a full frame
	fullWindow   = 4096 // posts of one word, or of a short array
	singleWindow = 1024 // posts of one word, as many as fill six frames; the state of many more would not fit the cache
	scattered    = 182  // words of a post that fill a frame
	manyPosts    = 32   // posts in flight of that many words each
	spreadWords  = 4096 // words that operations go to in turn; together 32 KiB
	ucxTrips     = 10_000
	ucxRate      = 20_000 // operations of a run with 64 outstanding
	ucxWarmUp    = 4000   // operations
	arraysFlight = 64 << 10
	lossyRate    = 200_000 // operations a second: some ten in flight
)

// fullPlan has all contests of the rounds, each measured for t. Contests that are
// compared stand side by side, so that they are measured one after the other.
func fullPlan(t time.Duration) []entry {
	p := append(tripPlan(t), residentTrip(t))
	p = append(append(p, throughputPlan(t)...), residentRates(t)...)
	p = slices.Concat(p, residentTails(t), garbagePlan(t), transferPlan(t), jumboPlan(t))
	for _, n := range []int{1, 16, 128, 4096} {
		window := max(arraysFlight/n, 16)
		p = append(p, entry{"array" + strconv.Itoa(n), arrays, fab(strconv.Itoa(n)+" elements",
			fabRun{op: "base", window: min(window, fullWindow), elements: n, words: max(spreadWords/n, 1),
				seconds: t})})
	}
	lost := fabRun{window: fullWindow, words: spreadWords, rate: lossyRate, seconds: t}
	p = append(p, entry{"lossy", losses, lossy("xdpfab fetch-add", lost)})
	lost.unordered = true
	return append(p, entry{"lossy_unordered", losses, lossy("xdpfab fetch-add, without order", lost)})
}

func tripPlan(t time.Duration) []entry {
	g := roundTrips
	return []entry{
		{"floor", g, floor("floor: AF_XDP in C, no protocol",
			floorRun{window: 1, size: smallFrame, reply: smallFrame, seconds: t})},
		{"floor_footprint", g, floor("floor with xdpfab's footprint, no protocol",
			floorRun{window: 1, size: smallFrame, reply: smallFrame, footprint: true, seconds: t})},
		{"trip", g, fab("xdpfab fetch-add, manual", fabRun{seconds: t})},
		{"trip_domain", g, fab("xdpfab fetch-add, manual, ThreadDomain",
			fabRun{threading: "domain", targetThreading: "domain", seconds: t})},
		{"mediated_trip", g, fab("xdpfab fetch-add, attached, ThreadDomain",
			fabRun{threading: "domain", attached: true, seconds: t})},
		{"trip_udp", g, fab("xdpfab fetch-add, manual, UDP", fabRun{udp: true, seconds: t})},
		{"regions_trip", g, fab("xdpfab fetch-add, 100,000 regions in turn",
			fabRun{regions: manyRegions, seconds: t})},
		{"regions_idle", g, fab("xdpfab fetch-add, one of 100,000 regions", fabRun{idle: manyRegions, seconds: t})},
		{"trip_auto", g, fab("xdpfab fetch-add, auto",
			fabRun{progress: "auto", targetProgress: "auto", seconds: t})},
		{"trip_daemon", g, fab("xdpfab fetch-add, xdpfabd as target", fabRun{daemon: true, seconds: t})},
		{"trip_compare", g, fab("xdpfab compare-and-swap, manual", fabRun{op: "compare", seconds: t})},
		{"sockets_trip", g, fab("xdpfab fetch-add, manual, UDP sockets",
			fabRun{sockets: true, seconds: t})},
		{"ucx", g, ucx("UCX/TCP fadd", "ucp_fadd", 1, ucxTrips)},
		{"libfabric", g, libfabric("libfabric tcp;ofi_rxm fetch-add", "tcp;ofi_rxm", "fetch", 1, t)},
		{"ucx_cswap", g, ucx("UCX/TCP cswap", "ucp_cswap", 1, ucxTrips)},
		{"libfabric_udp", g, libfabric("libfabric udp;ofi_rxd base sum", "udp;ofi_rxd", "base", 1, t)},
		{"plain_tcp", g, plain("plain Go over TCP", "tcp", 1, t)},
		{"plain_udp", g, plain("plain Go over UDP", "udp", 1, t)},
	}
}

func throughputPlan(t time.Duration) []entry {
	g := throughputs
	full := fabRun{window: manyPosts, scatter: scattered, words: spreadWords, seconds: t}
	single := fabRun{window: singleWindow, words: spreadWords, seconds: t}
	with := func(change func(*fabRun)) fabRun { r := full; change(&r); return r }
	p := []entry{
		{"floor_frames", g, floor("floor: frames of 64 bytes, window 32",
			floorRun{window: 32, size: smallFrame, reply: smallFrame, seconds: t})},
		{"floor_counters", g, floor("floor: counters, 60 a frame, window 32",
			floorRun{window: 32, size: fullFrame, counters: perFrame, reply: fullFrame, seconds: t})},
		{"floor_payload", g, floor("floor: frames of 1514 bytes, answers of 64",
			floorRun{window: 32, size: fullFrame, reply: smallFrame, seconds: t})},
		{"fetch", g, fab("xdpfab fetch-add, 182 words a post", full)},
		{"fetch_single", g, fab("xdpfab fetch-add, 1 word a post", single)},
		{"fetch_single_domain", g, fab("xdpfab fetch-add, 1 word a post, ThreadDomain", fabRun{window: singleWindow,
			words: spreadWords, threading: "domain", targetThreading: "domain", seconds: t})},
		{"mediated_single", g, fab("xdpfab fetch-add, attached, 1 word a post, ThreadDomain", fabRun{
			window: singleWindow, words: spreadWords, threading: "domain", attached: true, seconds: t})},
		{"mediated_fetch", g, fab("xdpfab fetch-add, attached, 182 words a post",
			with(func(r *fabRun) { r.attached = true }))},
		{"hot", g, fab("xdpfab fetch-add, one word", with(func(r *fabRun) { r.words = 1 }))},
		{"regions_rate", g, fab("xdpfab fetch-add, one of 100,000 regions",
			with(func(r *fabRun) { r.idle = manyRegions }))},
		{"sessions", g,
			fab("xdpfab fetch-add, 1000 sessions in turn", with(func(r *fabRun) { r.endpoints = sessions }))},
		{"sessions_busy", g, fab("xdpfab fetch-add, 1000 sessions, a post on each",
			with(func(r *fabRun) { r.endpoints, r.window = sessions, sessions }))},
		{"fetch_udp", g, fab("xdpfab fetch-add, UDP", with(func(r *fabRun) { r.udp = true }))},
		{"sockets_fetch", g, fab("xdpfab fetch-add, UDP sockets, 182 words a post",
			with(func(r *fabRun) { r.sockets = true }))},
		{"base", g, fab("xdpfab base sum", with(func(r *fabRun) { r.op = "base" }))},
		{"base_single", g, fab("xdpfab base sum, 1 word a post",
			fabRun{op: "base", window: singleWindow, words: spreadWords, seconds: t})},
		{"compare", g, fab("xdpfab compare-and-swap", with(func(r *fabRun) { r.op = "compare" }))},
		{"fetch_auto", g,
			fab("xdpfab fetch-add, auto", with(func(r *fabRun) { r.progress, r.targetProgress = "auto", "auto" }))},
		{"fetch_daemon", g, fab("xdpfab fetch-add, xdpfabd as target", with(func(r *fabRun) { r.daemon = true }))},
	}
	for _, n := range []int{4, 16, 64} {
		p = append(p, entry{"endpoints" + strconv.Itoa(n), g, fab("xdpfab fetch-add, "+strconv.Itoa(n)+" endpoints",
			with(func(r *fabRun) { r.endpoints, r.window = n, max(n, manyPosts) }))})
	}
	return append(p,
		entry{"ucx_rate", g, ucx("UCX/TCP fadd, 64 outstanding", "ucp_fadd", 64, ucxRate)},
		entry{"ucx_cswap_rate", g, ucx("UCX/TCP cswap, 64 outstanding", "ucp_cswap", 64, ucxRate)},
		entry{"libfabric_rate", g, libfabric("libfabric tcp;ofi_rxm, 64 outstanding", "tcp;ofi_rxm", "fetch", 64, t)},
		entry{"libfabric_udp_rate", g, libfabric("libfabric udp;ofi_rxd base, 64 outstanding", "udp;ofi_rxd",
			"base", 64, t)},
		entry{"plain_tcp_rate", g, plain("plain Go over TCP, 64 connections", "tcp", 64, t)},
		entry{"plain_udp_rate", g, plain("plain Go over UDP, 64 sockets", "udp", 64, t)},
	)
}

// pick takes entries from a plan by id.
func pick(p []entry, ids ...string) []entry {
	var picked []entry
	for _, id := range ids {
		for _, e := range p {
			if e.id == id {
				picked = append(picked, e)
			}
		}
	}
	return picked
}
