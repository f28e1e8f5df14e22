// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"
)

// quickReport is the last line that the quick mode prints. The ratios of round
// trips are ours by theirs (less is better), those of operations a second too
// (more is better). What one thread does by itself is measured the best way that an
// application can ask for: manual progress and ThreadDomain.
type quickReport struct {
	RTTVsFloor     float64 `json:"rtt_vs_floor"`
	RTTVsUCX       float64 `json:"rtt_vs_ucx"`
	RTTVsLibfabric float64 `json:"rtt_vs_libfabric"`
	RTTVsFootprint float64 `json:"rtt_vs_footprint"` // the floor with xdpfab's footprint
	OpsVsUCX       float64 `json:"ops_vs_ucx"`
	Mops           float64 `json:"mops"`        // fetch-adds a second, in millions, 182 words a post
	MopsSingle     float64 `json:"mops_single"` // the same, 1 word a post
	AllocsPerOp    float64 `json:"allocs_per_op"`
	// RTTVsFloorBest is the ratio of the best rounds: on a host that changes between two
	// speeds it varies least.
	RTTVsFloorBest float64 `json:"rtt_vs_floor_best"`
	// The present aims: RTTVsFloor should be at most its aim, and MopsSingle at least its
	// own, which is a share of the rate of 182 words a post.
	RTTVsFloorAim float64 `json:"rtt_vs_floor_aim"`
	RTTVsFloorMet bool    `json:"rtt_vs_floor_met"`
	MopsSingleAim float64 `json:"mops_single_aim"`
	MopsSingleMet bool    `json:"mops_single_met"`
	SingleVsBatch float64 `json:"single_vs_batch"` // operations a second, 1 word a post to 182
	// Of messages and writes: left out where the other side failed.
	MsgRTTVsUCX  float64 `json:"msg_rtt_vs_ucx,omitempty"` // 8 bytes; less is better
	WriteVsFloor float64 `json:"write_vs_floor,omitempty"` // payload a second; more is better
	WriteVsCopy  float64 `json:"write_vs_copy,omitempty"`  // the same, to the floor that copies
	Msg4KVsUCX   float64 `json:"msg4k_vs_ucx,omitempty"`   // messages a second; more is better
	// Of a program that is attached to a host: the ratio of its round trip to direct use
	// (less is better), and fetch-adds a second, in millions, 1 word a post.
	MediatedRTTVsDirect float64 `json:"mediated_rtt_vs_direct"`
	MediatedMopsSingle  float64 `json:"mediated_mops_single"`
	// AttachedBatchVsDirect is the rate of 182 words a post, to direct use.
	AttachedBatchVsDirect float64 `json:"attached_batch_vs_direct"`
	residentReport
	// NearShare is the share of the samples with near cores: all figures are of these,
	// and ratios of rounds in which both samples are, where there are any.
	NearShare float64 `json:"near_share"`
}

const (
	quickRounds = 10
	// quickLimit bounds the rounds together: on a busy machine there are fewer.
	quickLimit = 75 * time.Second
)

// quickIDs are its contests.
var quickIDs = []string{"floor", "floor_footprint", "trip_domain", "resident_trip", "mediated_trip", "ucx",
	"libfabric", "fetch", "fetch_single_domain", "mediated_single", "mediated_fetch", "resident_fetch",
	"resident_single", "ucx_rate", "msg_trip", "ucx_msg_trip", "msg4k", "ucx_msg4k", "floor_stream",
	"write", "floor_stream_copied"}

// quick measures the ratios that matter while the engine is being optimised.
func quick(ctx context.Context, n *network, out io.Writer) error {
	r, err := n.rounds(ctx, pick(fullPlan(sampleTime), quickIDs...), budget{quickRounds, quickLimit})
	if err != nil {
		return err
	}
	r.print(out)
	printAims(out, judgeRounds(r))
	b, err := json.Marshal(quickResult(r))
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, string(b))
	return err
}

// quickResult sums the rounds up.
func quickResult(r *results) quickReport {
	trip, single := tripAims(r)[0], rateAims(r)[2]
	batch := r.median("fetch", rate) / 1e6
	return quickReport{
		RTTVsFloor: r.ratio("trip_domain", "floor", p50), RTTVsUCX: r.ratio("trip_domain", "ucx", p50),
		RTTVsLibfabric: r.ratio("trip_domain", "libfabric", p50),
		RTTVsFootprint: r.ratio("trip_domain", "floor_footprint", p50),
		OpsVsUCX:       r.ratio("fetch", "ucx_rate", rate), Mops: batch,
		MopsSingle:     r.median("fetch_single_domain", rate) / 1e6,
		AllocsPerOp:    max(r.median("trip_domain", allocs), r.median("fetch", allocs)),
		RTTVsFloorBest: r.ratioOfBest("trip_domain", "floor"),
		RTTVsFloorAim:  trip.Limit, RTTVsFloorMet: trip.Met,
		MopsSingleAim: single.Limit * batch, MopsSingleMet: single.Met, SingleVsBatch: single.Value,
		MsgRTTVsUCX: r.ratio("msg_trip", "ucx_msg_trip", p50), Msg4KVsUCX: r.ratio("msg4k", "ucx_msg4k", rate),
		WriteVsFloor:          r.ratio("write", "floor_stream", goodput),
		WriteVsCopy:           r.ratio("write", "floor_stream_copied", goodput),
		MediatedRTTVsDirect:   r.ratio("mediated_trip", "trip_domain", p50),
		MediatedMopsSingle:    r.median("mediated_single", rate) / 1e6,
		AttachedBatchVsDirect: r.ratio("mediated_fetch", "fetch", rate),
		residentReport:        residentResult(r), NearShare: r.shares()[near],
	}
}
