// SPDX-License-Identifier: Apache-2.0

// Package histogram counts durations, for the commands and the benchmark alike.
package histogram

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Longest is the greatest duration that can be told from longer ones.
const Longest = time.Minute

// Histogram counts durations from 1 ns to Longest with three digits. One goroutine
// uses it at a time; recording allocates nothing.
type Histogram struct{ h *hdrhistogram.Histogram }

// New makes an empty one.
func New() Histogram { return Histogram{hdrhistogram.New(1, int64(Longest), 3)} }

// Record counts n operations that took d. Durations off the scale are counted at
// its end, so that no sample is missing.
func (h Histogram) Record(d time.Duration, n int64) {
	_ = h.h.RecordValues(int64(min(max(d, 1), Longest)), n)
}

// Reset forgets everything.
func (h Histogram) Reset() { h.h.Reset() }

// Count returns how many operations were recorded.
func (h Histogram) Count() int64 { return h.h.TotalCount() }

// Merge adds the counts of another histogram.
func (h Histogram) Merge(other Histogram) { h.h.Merge(other.h) }

// Percentiles are of durations, in nanoseconds.
type Percentiles struct {
	Count int64   `json:"count"`
	Min   int64   `json:"min_ns"`
	P50   int64   `json:"p50_ns"`
	P90   int64   `json:"p90_ns"`
	P99   int64   `json:"p99_ns"`
	P999  int64   `json:"p99_9_ns"`
	P9999 int64   `json:"p99_99_ns"`
	Max   int64   `json:"max_ns"`
	Mean  float64 `json:"mean_ns"`
}

// Percentiles returns the percentiles of the histogram; those of an empty one
// are 0.
func (h Histogram) Percentiles() Percentiles {
	if h.h.TotalCount() == 0 {
		return Percentiles{}
	}
	q := h.h.ValueAtQuantile
	return Percentiles{
		Count: h.h.TotalCount(), Min: h.h.Min(), Max: h.h.Max(), Mean: h.h.Mean(),
		P50: q(50), P90: q(90), P99: q(99), P999: q(99.9), P9999: q(99.99),
	}
}

// At returns the duration below which a share of the operations lies, in percent; 0 of an
// empty histogram.
func (h Histogram) At(percent float64) time.Duration {
	return time.Duration(h.h.ValueAtQuantile(percent))
}
