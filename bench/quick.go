// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"
)

// quickReport is the last line that the quick mode prints. The ratios of round
// trips are ours by theirs (less is better), those of operations a second too
// (more is better).
type quickReport struct {
	RTTVsFloor     float64 `json:"rtt_vs_floor"`
	RTTVsUCX       float64 `json:"rtt_vs_ucx"`
	RTTVsLibfabric float64 `json:"rtt_vs_libfabric"`
	OpsVsUCX       float64 `json:"ops_vs_ucx"`
	Mops           float64 `json:"mops"` // fetch-adds a second, in millions
	AllocsPerOp    float64 `json:"allocs_per_op"`
}

const quickRounds = 3

// quickPlan takes some 20 s.
func quickPlan() []*contest {
	const t = 500 * time.Millisecond
	return []*contest{
		floor("floor, window 1", floorRun{window: 1, size: 64, reply: 64, seconds: t}),
		fab("fetch-add, window 1", fabRun{op: "fetch", window: 1, seconds: t}),
		ucx("UCX fadd, window 1", "ucp_fadd", 1, 30000),
		libfabric("libfabric tcp;ofi_rxm, window 1", "tcp;ofi_rxm", "fetch", 1, t),
		fab("fetch-add, full window", fabRun{op: "fetch", window: fullWindow, words: spreadWords, seconds: t}),
		ucx("UCX fadd, 64 outstanding", "ucp_fadd", 64, 100000),
		floor("floor, window 32", floorRun{window: 32, size: 64, reply: 64, seconds: t}),
	}
}

// quick measures what the optimiser of the engine wants to know at once.
func quick(ctx context.Context, n *network, out io.Writer) error {
	plan := quickPlan()
	samples, err := n.rounds(ctx, plan, quickRounds, os.Stderr)
	if err != nil {
		return err
	}
	for i, c := range plan {
		printSummary(out, c.name, samples[i])
	}
	trip, full := samples[1], samples[4]
	r := quickReport{
		RTTVsFloor: ratio(trip, samples[0], p50), RTTVsUCX: ratio(trip, samples[2], p50), RTTVsLibfabric: ratio(trip, samples[3], p50),
		OpsVsUCX: ratio(full, samples[5], rate), Mops: median(values(full, rate)) / 1e6,
		AllocsPerOp: max(median(values(trip, allocs)), median(values(full, allocs))),
	}
	b, err := json.Marshal(r)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, string(b))
	return err
}
