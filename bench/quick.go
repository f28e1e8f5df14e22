// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
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
	OpsVsUCX       float64 `json:"ops_vs_ucx"`
	Mops           float64 `json:"mops"`        // fetch-adds a second, in millions, 182 words a post
	MopsSingle     float64 `json:"mops_single"` // the same, 1 word a post
	AllocsPerOp    float64 `json:"allocs_per_op"`
	// RTTVsFloorBest is the ratio of the best rounds: on a host that changes between two
	// speeds it varies least.
	RTTVsFloorBest float64 `json:"rtt_vs_floor_best"`
	// The present aims: RTTVsFloor should be at most its aim, MopsSingle at least its
	// own.
	RTTVsFloorAim float64 `json:"rtt_vs_floor_aim"`
	RTTVsFloorMet bool    `json:"rtt_vs_floor_met"`
	MopsSingleAim float64 `json:"mops_single_aim"`
	MopsSingleMet bool    `json:"mops_single_met"`
	// Of messages and writes: left out where the other side failed.
	MsgRTTVsUCX  float64 `json:"msg_rtt_vs_ucx,omitempty"` // 8 bytes; less is better
	WriteVsFloor float64 `json:"write_vs_floor,omitempty"` // payload a second; more is better
	Msg4KVsUCX   float64 `json:"msg4k_vs_ucx,omitempty"`   // messages a second; more is better
	// Of a program that is attached to a host: the ratio of its round trip to direct use
	// (less is better), and fetch-adds a second, in millions, 1 word a post.
	MediatedRTTVsDirect float64 `json:"mediated_rtt_vs_direct"`
	MediatedMopsSingle  float64 `json:"mediated_mops_single"`
	residentReport
}

const (
	quickRounds = 10
	// quickLimit bounds the rounds together: on a busy machine there are fewer.
	quickLimit = 75 * time.Second
)

// quickIDs are its contests; together they take some 70 s.
var quickIDs = []string{"floor", "trip_domain", "mediated_trip", "ucx", "libfabric", "floor_frames", "fetch",
	"fetch_single_domain", "mediated_single", "ucx_rate",
	"resident_trip", "resident_fetch", "resident_single",
	"msg_trip", "ucx_msg_trip", "msg4k", "ucx_msg4k", "write", "floor_stream"}

// quick measures the ratios that matter while the engine is being optimised.
func quick(ctx context.Context, n *network, out io.Writer) error {
	r, err := n.rounds(ctx, pick(fullPlan(sampleTime), quickIDs...), budget{quickRounds, quickLimit})
	if err != nil {
		return err
	}
	r.print(out)
	aims := checked(domainSteps(r))
	printAims(out, slices.Concat(aims, checked(transferAims(r)), checked(mediatedAims(r)[:2]),
		measured(residentAims(r))))
	b, err := json.Marshal(quickResult(r, aims[0], aims[1]))
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, string(b))
	return err
}

// quickResult sums the rounds up, with the aims for the round trip and for one word a
// post.
func quickResult(r *results, trip, single aim) quickReport {
	return quickReport{
		RTTVsFloor: r.ratio("trip_domain", "floor", p50), RTTVsUCX: r.ratio("trip_domain", "ucx", p50),
		RTTVsLibfabric: r.ratio("trip_domain", "libfabric", p50),
		OpsVsUCX:       r.ratio("fetch", "ucx_rate", rate), Mops: r.median("fetch", rate) / 1e6,
		MopsSingle:     r.median("fetch_single_domain", rate) / 1e6,
		AllocsPerOp:    max(r.median("trip_domain", allocs), r.median("fetch", allocs)),
		RTTVsFloorBest: r.ratioOfBest("trip_domain", "floor"),
		RTTVsFloorAim:  trip.Limit, RTTVsFloorMet: trip.Met, MopsSingleAim: single.Limit, MopsSingleMet: single.Met,
		MsgRTTVsUCX: r.ratio("msg_trip", "ucx_msg_trip", p50), WriteVsFloor: r.ratio("write", "floor_stream", goodput),
		Msg4KVsUCX:          r.ratio("msg4k", "ucx_msg4k", rate),
		MediatedRTTVsDirect: r.ratio("mediated_trip", "trip_domain", p50),
		MediatedMopsSingle:  r.median("mediated_single", rate) / 1e6,
		residentReport:      residentResult(r),
	}
}
