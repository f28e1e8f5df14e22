// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"fmt"
	"io"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// newHistogram counts durations from 1 ns to a minute with three digits.
func newHistogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(1, int64(time.Minute), 3)
}

// record keeps what is off the scale at its ends, so that no sample is missing.
func record(h *hdrhistogram.Histogram, d time.Duration) {
	_ = h.RecordValue(int64(min(max(d, 1), time.Minute)))
}

// percentiles are of durations, in nanoseconds.
type percentiles struct {
	Count int64   `json:"count"`
	Min   int64   `json:"min_ns"`
	P50   int64   `json:"p50_ns"`
	P90   int64   `json:"p90_ns"`
	P99   int64   `json:"p99_ns"`
	P999  int64   `json:"p99_9_ns"`
	Max   int64   `json:"max_ns"`
	Mean  float64 `json:"mean_ns"`
}

func percentilesOf(h *hdrhistogram.Histogram) percentiles {
	return percentiles{
		Count: h.TotalCount(), Min: h.Min(), Max: h.Max(), Mean: h.Mean(),
		P50: h.ValueAtQuantile(50), P90: h.ValueAtQuantile(90), P99: h.ValueAtQuantile(99), P999: h.ValueAtQuantile(99.9),
	}
}

// text prints two aligned lines; the writer is a tabwriter.
func (p *percentiles) text(w io.Writer) {
	fmt.Fprintln(w, "  min\tp50\tp90\tp99\tp99.9\tmax")
	fmt.Fprintf(w, "  %s\t%s\t%s\t%s\t%s\t%s\n", short(p.Min), short(p.P50), short(p.P90), short(p.P99), short(p.P999), short(p.Max))
}

// short prints nanoseconds with three digits or so, in µs unless they are many.
func short(ns int64) string {
	switch us := float64(ns) / 1e3; {
	case us < 10:
		return fmt.Sprintf("%.2f µs", us)
	case us < 100:
		return fmt.Sprintf("%.1f µs", us)
	case us < 10000:
		return fmt.Sprintf("%.0f µs", us)
	case us < 1e6:
		return fmt.Sprintf("%.1f ms", us/1e3)
	default:
		return fmt.Sprintf("%.2f s", us/1e6)
	}
}
