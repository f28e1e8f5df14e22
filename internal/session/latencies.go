// SPDX-License-Identifier: Apache-2.0

package session

import "math/bits"

// NumLatencies is the number of buckets of Latencies.
const NumLatencies = 24

// firstLatency is the width of the first bucket, as a power of two of nanoseconds.
const firstLatency = 8

// Latencies counts times in buckets, each twice as wide as all before it. It belongs to
// one thread.
type Latencies struct {
	Buckets [NumLatencies]uint64 // the last one has no end
	Sum     uint64               // nanoseconds
}

// Add counts a time, in nanoseconds. It does nothing if there are none.
func (l *Latencies) Add(ns int64) {
	if l == nil || ns < 0 {
		return
	}
	l.Buckets[min(bits.Len64(uint64(ns)>>firstLatency), NumLatencies-1)]++
	l.Sum += uint64(ns)
}

// Merge adds what others have counted.
func (l *Latencies) Merge(x *Latencies) {
	for i, n := range x.Buckets {
		l.Buckets[i] += n
	}
	l.Sum += x.Sum
}

// LatencyEnd returns where a bucket ends, in nanoseconds: times in it are less.
func LatencyEnd(bucket int) int64 { return 1 << (firstLatency + bucket) }
