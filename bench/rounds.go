// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"fmt"
	"io"
	"slices"
)

// rounds takes a sample of each contest, then of each again, and so on: what the
// machine does meanwhile meets all alike. It returns the samples by contest.
func (n *network) rounds(ctx context.Context, plan []*contest, rounds int, progress io.Writer) ([][]sample, error) {
	samples := make([][]sample, len(plan))
	for r := range rounds {
		for i, c := range plan {
			fmt.Fprintf(progress, "round %d of %d: %s\n", r+1, rounds, c.name)
			s, err := n.run(ctx, c)
			if err != nil {
				return nil, err
			}
			samples[i] = append(samples[i], s)
		}
	}
	return samples, nil
}

// What is compared of a sample.
func p50(s *sample) float64    { return float64(s.Latency.P50) }
func p99(s *sample) float64    { return float64(s.Latency.P99) }
func rate(s *sample) float64   { return s.OpsPerSecond() }
func allocs(s *sample) float64 { return s.Extra["allocs_per_op"] }

func values(samples []sample, of func(*sample) float64) []float64 {
	v := make([]float64, len(samples))
	for i := range samples {
		v[i] = of(&samples[i])
	}
	return v
}

// median is the middle value, or the mean of the two in the middle; 0 of none.
func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	n := len(v)
	if n == 0 {
		return 0
	}
	return (v[(n-1)/2] + v[n/2]) / 2
}

// ratio is the median of the rounds' ratios: within a round the machine was most
// alike for both.
func ratio(a, b []sample, of func(*sample) float64) float64 {
	var v []float64
	for i := range min(len(a), len(b)) {
		if d := of(&b[i]); d > 0 {
			v = append(v, of(&a[i])/d)
		}
	}
	return median(v)
}

func printSummary(w io.Writer, name string, s []sample) {
	lat, ops := values(s, p50), values(s, rate)
	fmt.Fprintf(w, "%-28s p50 %7.2f µs (%.2f–%.2f)  p99 %7.2f µs  %8.3f M/s (%.3f–%.3f)", name,
		median(lat)/1e3, slices.Min(lat)/1e3, slices.Max(lat)/1e3, median(values(s, p99))/1e3,
		median(ops)/1e6, slices.Min(ops)/1e6, slices.Max(ops)/1e6)
	for _, x := range s {
		if x.Disturbed != "" {
			fmt.Fprintf(w, "  [disturbed: %s]", x.Disturbed)
		}
	}
	fmt.Fprintln(w)
}
