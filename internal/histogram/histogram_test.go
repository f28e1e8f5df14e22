// SPDX-License-Identifier: Apache-2.0

package histogram

import (
	"testing"
	"time"
)

func TestHistogram(t *testing.T) {
	h := New()
	if p := h.Percentiles(); p != (Percentiles{}) {
		t.Errorf("nothing recorded: %+v", p)
	}
	h.Record(1000, 90)
	h.Record(5000, 9)
	other := New()
	other.Record(time.Hour, 1) // off the scale: kept at its end
	h.Merge(other)
	p := h.Percentiles()
	near := func(v, want int64) bool { return v >= want-want/500 && v <= want+want/500 }
	if p.Count != 100 || !near(p.P50, 1000) || !near(p.P90, 1000) || !near(p.P99, 5000) || !near(p.P9999, int64(Longest)) || !near(p.Max, int64(Longest)) {
		t.Errorf("%+v", p)
	}
	h.Reset()
	if h.Count() != 0 {
		t.Error("Reset leaves something")
	}
}

func TestRecordingAllocatesNothing(t *testing.T) {
	h := New()
	if n := testing.AllocsPerRun(100, func() { h.Record(time.Microsecond, 3) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
