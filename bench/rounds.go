// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"slices"
	"time"
)

// results are the samples of a plan.
type results struct {
	plan    []entry
	samples map[string][]sample // by id, one for each round but those that a slow contest left out
	rounds  int
	retaken int
}

// budget is how many rounds there are to be, and how long they may take together; 0 is
// without a limit. There is one round at least.
type budget struct {
	rounds int
	limit  time.Duration
}

// left reports whether there is another round after some that took so long together: if
// it takes as long as those on average, it ends within the limit.
func (b budget) left(rounds int, took time.Duration) bool {
	if rounds == 0 || rounds >= b.rounds {
		return rounds < b.rounds
	}
	return b.limit == 0 || took+took/time.Duration(rounds) <= b.limit
}

// rounds takes a sample of each contest, then of each again, and so on, so that changes
// of the machine's speed affect all contests alike. A disturbed sample is taken once
// more, and flagged if the second one is disturbed, too.
func (n *network) rounds(ctx context.Context, plan []entry, b budget) (*results, error) {
	r := &results{plan: plan, samples: map[string][]sample{}}
	start := time.Now()
	for round := 0; b.left(round, time.Since(start)); round++ {
		r.rounds++
		for _, e := range plan {
			if e.slow && round%2 == 1 {
				continue
			}
			fmt.Fprintf(os.Stderr, "round %d of %d: %s\n", round+1, b.rounds, e.name)
			s, err := n.run(ctx, e.contest)
			if err == nil && s.Disturbed != "" && r.retaken < len(plan)*b.rounds/4 {
				r.retaken++
				s, err = n.run(ctx, e.contest)
			}
			if err != nil && e.peer && ctx.Err() == nil {
				fmt.Fprintln(os.Stderr, err)
				s, err = sample{Failed: err.Error()}, nil
			}
			if err != nil {
				return nil, err
			}
			s.Round = round
			r.samples[e.id] = append(r.samples[e.id], s)
		}
	}
	return r, nil
}

// The figures of a sample that are compared.
func p50(s *sample) float64    { return float64(s.Latency.P50) }
func p99(s *sample) float64    { return float64(s.Latency.P99) }
func p999(s *sample) float64   { return float64(s.Latency.P999) }
func p9999(s *sample) float64  { return float64(s.Latency.P9999) }
func rate(s *sample) float64   { return s.OpsPerSecond() }
func allocs(s *sample) float64 { return s.Extra["allocs_per_op"] }

// allocsOfHost is for each post, not for each operation: see hostAllocs.
func allocsOfHost(s *sample) float64 { return s.Extra[hostAllocs] }

// goodput is the payload that was carried, in bytes a second.
func goodput(s *sample) float64 {
	if s.Seconds <= 0 {
		return 0
	}
	return float64(s.Payload) / s.Seconds
}

// clientCPU and serverCPU return the CPU time of a million operations, in seconds.
func clientCPU(s *sample) float64 { return s.CPUSeconds / (float64(max(s.Ops, 1)) / 1e6) }
func serverCPU(s *sample) float64 { return s.ServerCPU / (float64(max(s.Ops, 1)) / 1e6) }
func bothCPU(s *sample) float64   { return clientCPU(s) + serverCPU(s) }

// sample returns that of a round; nil if there is none, or it failed.
func (r *results) sample(id string, round int) *sample {
	for i := range r.samples[id] {
		if s := &r.samples[id][i]; s.Round == round && s.Failed == "" {
			return s
		}
	}
	return nil
}

// values returns a figure of a contest's samples, one for each round; NaN for rounds
// without one.
func (r *results) values(id string, of func(*sample) float64) []float64 {
	v := make([]float64, r.rounds)
	for i := range v {
		if s := r.sample(id, i); s != nil {
			v[i] = of(s)
		} else {
			v[i] = math.NaN()
		}
	}
	return v
}

// known returns the values that are not NaN.
func known(v []float64) []float64 { return slices.DeleteFunc(slices.Clone(v), math.IsNaN) }

// median returns the median of a figure: of samples with near cores, if there are any.
func (r *results) median(id string, of func(*sample) float64) float64 {
	return median(chosen(r.values(id, of), r.nearRounds(id)))
}

// ratio returns the median of the rounds' ratios of two contests: within a round the
// machine was most alike for both. Rounds count in which the cores were near in both
// samples, if there are any. It is 0 if there is none.
func (r *results) ratio(a, b string, of func(*sample) float64) float64 {
	both := r.nearRounds(a, b)
	return medianRatio(chosen(r.values(a, of), both), chosen(r.values(b, of), both))
}

// ratioOfBest returns the ratio of the least p50 of each contest; 0 if there is none.
func (r *results) ratioOfBest(a, b string) float64 {
	va, vb := known(r.values(a, p50)), known(r.values(b, p50))
	if len(va) == 0 || len(vb) == 0 || slices.Min(vb) == 0 {
		return 0
	}
	return slices.Min(va) / slices.Min(vb)
}

// median returns the middle value, or the mean of the two in the middle; 0 for no
// values. NaNs do not count.
func median(v []float64) float64 {
	v = known(v)
	slices.Sort(v)
	n := len(v)
	if n == 0 {
		return 0
	}
	return (v[(n-1)/2] + v[n/2]) / 2
}

// medianRatio returns the median of a[i]/b[i]; pairs with b[i] = 0 do not count.
func medianRatio(a, b []float64) float64 {
	var v []float64
	for i := range min(len(a), len(b)) {
		if b[i] > 0 {
			v = append(v, a[i]/b[i])
		}
	}
	return median(v)
}
