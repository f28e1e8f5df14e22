// SPDX-License-Identifier: Apache-2.0

// Package measure has the parts that the benchmark's contestants in Go share: the clock
// and the report they print. c/measure.h is the same for those in C.
package measure

import "github.com/xdpfab/xdpfab/internal/histogram"

// Result is one measurement: what a contestant reports.
type Result struct {
	Ops         uint64                `json:"ops"`
	Lost        uint64                `json:"lost"` // requests that were given up
	Seconds     float64               `json:"seconds"`
	CPUSeconds  float64               `json:"cpu_seconds"` // of the client, while it measured
	Involuntary int64                 `json:"involuntary"` // context switches of the client
	Latency     histogram.Percentiles `json:"latency"`
	Extra       map[string]float64    `json:"extra,omitempty"` // figures that only some report
}

// OpsPerSecond is the throughput.
func (r *Result) OpsPerSecond() float64 {
	if r.Seconds <= 0 {
		return 0
	}
	return float64(r.Ops) / r.Seconds
}

// The lines around a measurement on a contestant's standard output.
const (
	Ready = "ready" // a server serves; what a client has to know follows
	Begin = "begin" // a client's warm-up is over; it waits for a line, or the end, of its input
	End   = "end"   // a client has measured; its Result follows on a line
	// Mallocs is how many objects a host has allocated since it began, which it tells for
	// each line of its input.
	Mallocs = "mallocs"
)
