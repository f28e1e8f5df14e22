// SPDX-License-Identifier: Apache-2.0

package session

import (
	"math"
	"testing"
)

// Each time is in the bucket that ends behind it and begins before it.
func TestLatencies(t *testing.T) {
	for _, ns := range []int64{0, 1, 255, 256, 257, 511, 512, 1e3, 1e6, LatencyEnd(NumLatencies-2) - 1, LatencyEnd(NumLatencies - 2), math.MaxInt64} {
		var l Latencies
		l.Add(ns)
		for i, n := range l.Buckets {
			begins, ends := i == 0 || ns >= LatencyEnd(i-1), i == NumLatencies-1 || ns < LatencyEnd(i)
			if (n == 1) != (begins && ends) {
				t.Errorf("%d ns: %d in bucket %d, which ends at %d", ns, n, i, LatencyEnd(i))
			}
		}
	}
	var l Latencies
	if l.Add(-1); l != (Latencies{}) {
		t.Errorf("a clock that steps back: %+v", l)
	}
	(*Latencies)(nil).Add(1)
	if n := testing.AllocsPerRun(100, func() { l.Add(1000) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkLatencies(b *testing.B) {
	var l Latencies
	for i := range b.N {
		l.Add(int64(i))
	}
}
