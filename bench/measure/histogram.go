// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Histogram counts durations from 1 ns to 10 s with three digits.
type Histogram struct{ h *hdrhistogram.Histogram }

const longest = 10 * time.Second

// NewHistogram makes an empty one.
func NewHistogram() Histogram {
	return Histogram{hdrhistogram.New(1, int64(longest), 3)}
}

// Record counts n operations that took d. What is off the scale is counted at its
// end, so that no sample is missing.
func (h Histogram) Record(d time.Duration, n int64) {
	_ = h.h.RecordValues(int64(min(max(d, 1), longest)), n)
}

// Reset forgets everything.
func (h Histogram) Reset() { h.h.Reset() }

// Percentiles sums it up.
func (h Histogram) Percentiles() Percentiles {
	if h.h.TotalCount() == 0 {
		return Percentiles{}
	}
	q := h.h.ValueAtQuantile
	return Percentiles{
		Count: h.h.TotalCount(), Min: h.h.Min(), Max: h.h.Max(),
		P50: q(50), P90: q(90), P99: q(99), P999: q(99.9), P9999: q(99.99),
	}
}

// Count is how many operations were recorded.
func (h Histogram) Count() int64 { return h.h.TotalCount() }

// Merge adds what another histogram counted.
func (h Histogram) Merge(other Histogram) { h.h.Merge(other.h) }
