// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/bench/measure"
	"github.com/xdpfab/xdpfab/internal/histogram"
)

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		v    []float64
		want float64
	}{{nil, 0}, {[]float64{7}, 7}, {[]float64{9, 1, 5}, 5}, {[]float64{4, 1, 3, 2}, 2.5}} {
		before := append([]float64{}, c.v...)
		if got := median(c.v); got != c.want {
			t.Errorf("median of %v: %v, want %v", c.v, got, c.want)
		}
		for i := range before {
			if c.v[i] != before[i] {
				t.Errorf("median changed its argument: %v, was %v", c.v, before)
			}
		}
	}
}

// The ratio is taken within rounds: a machine that is half as fast in one round does
// not change it, but would change the ratio of the medians.
func TestMedianRatioIsWithinRounds(t *testing.T) {
	a, b := []float64{3, 6, 12}, []float64{2, 4, 8}
	if got := medianRatio(a, b); got != 1.5 {
		t.Errorf("ratio %v, want 1.5", got)
	}
	if got := medianRatio([]float64{3, 5}, []float64{0, 5}); got != 1 {
		t.Errorf("with a zero: %v, want 1", got)
	}
	if got := medianRatio([]float64{3, 5, 4}, []float64{math.NaN(), 5, 2}); got != 1.5 {
		t.Errorf("with a round that failed: %v, want 1.5", got)
	}
	if got := medianRatio(nil, []float64{1}); got != 0 {
		t.Errorf("of nothing: %v, want 0", got)
	}
}

func TestRatioOfBest(t *testing.T) {
	r := made(pick(fullPlan(sampleTime), "trip", "floor"), nil, map[string]float64{"trip": 6000, "floor": 4000}, nil)
	r.samples["trip"][0].Latency.P50, r.samples["floor"][2].Latency.P50 = 12000, 9000
	r.samples["floor"][1] = sample{Failed: "gone"}
	if got := r.ratioOfBest("trip", "floor"); got != 1.5 {
		t.Errorf("%v, want 1.5", got)
	}
	if got := r.ratioOfBest("trip", "nobody"); got != 0 {
		t.Errorf("to nobody: %v, want 0", got)
	}
}

func TestParseActivity(t *testing.T) {
	got, err := parseActivity("cpu  100 20 300 9999 77 5 6 50 0 0\ncpu0 1 2 3\n")
	if want := (activity{busy: 4.31, stolen: 0.5}); err != nil || math.Abs(got.busy-want.busy) > 1e-9 || got.stolen != want.stolen {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
	for _, bad := range []string{"", "cpu 1 2 3", "intr 1 2 3 4 5 6 7 8", "cpu 1 2 3 4 5 6 7 x"} {
		if _, err := parseActivity(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

func TestDisturbance(t *testing.T) {
	start := activity{busy: 10, stolen: 1, at: time.Unix(0, 0)}
	for _, c := range []struct {
		name         string
		busy, stolen float64 // in a second
		involuntary  int64
		want         string // part of what is said; "" for nothing
	}{
		{"quiet", 2.0, 0, 150, ""},
		{"a tick or two more", 2.03, 0.02, 0, ""},
		{"another process", 2.5, 0, 0, "others used 46 %"},
		{"the hypervisor", 2.0, 0.3, 0, "13 % stolen"},
		{"preempted", 2.0, 0, 5000, "5000 involuntary"},
	} {
		end := activity{busy: start.busy + c.busy, stolen: start.stolen + c.stolen, at: time.Unix(1, 0)}
		got := disturbance(start, end, 2.0, c.involuntary)
		if c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestParseUCX(t *testing.T) {
	out := strings.Split(`+--------------+--------------+------------------------------+---------------------+-----------------------+
|    Stage     | # iterations | 50.0%ile | average | overall |  average |  overall |  average  |  overall  |
[thread 0]             30000      1.000     1.000     1.000        1.00       1.00           1           1
Final:                 50000     11.421    12.803    12.803        0.60       0.60       78109       80000`, "\n")
	r, err := parseUCX(out)
	if err != nil || r.Ops != 50000 || r.Latency.P50 != 11421 || math.Abs(r.Seconds-0.625) > 1e-9 || r.OpsPerSecond() != 80000 {
		t.Errorf("%+v, %v", r, err)
	}
	for name, bad := range map[string][]string{
		"no result":      {"Waiting for connection..."},
		"other columns":  {"Final: 50000 1 2 3"},
		"not a number":   {"Final: 50000 a 12.8 12.8 0.6 0.6 78109 78109"},
		"no operations":  {"Final: 0 1 1 1 1 1 1 1"},
		"nothing at all": nil,
	} {
		if _, err := parseUCX(bad); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}

func TestListensIn(t *testing.T) {
	const table = `  sl  local_address rem_address   st tx_queue rx_queue
   0: 0100007F:3419 00000000:0000 0A 00000000:00000000
   1: 0100007F:1F90 0100007F:9999 01 00000000:00000000
`
	if !listensIn(table, 0x3419) {
		t.Error("a listening socket is not found")
	}
	for _, port := range []int{0x1F90, 0x9999, 0x341} {
		if listensIn(table, port) {
			t.Errorf("port %#x does not listen", port)
		}
	}
}

func TestCPUModel(t *testing.T) {
	if got := cpuModel("processor\t: 0\nmodel\t\t: 1\nmodel name\t: AMD EPYC 7\n"); got != "AMD EPYC 7" {
		t.Errorf("%q", got)
	}
	if got := cpuModel("nothing"); got != "" {
		t.Errorf("%q", got)
	}
}

func TestNumber(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 1234.5: "1234", 43.21: "43.2", 6.014: "6.01", 0.5094: "0.509", 0.00001: "0.0000", -3.14159: "-3.14"} {
		if got := number(v); got != want {
			t.Errorf("number(%v) = %q, want %q", v, got, want)
		}
	}
}

// made returns results of a plan with given medians.
func made(plan []entry, ops, p50, p99 map[string]float64) *results {
	r := &results{plan: plan, rounds: 3, samples: map[string][]sample{}}
	for _, e := range plan {
		o := ops[e.id]
		if o == 0 {
			o = 1e6
		}
		p := p50[e.id]
		if p == 0 {
			p = 5000
		}
		q := p99[e.id]
		if q == 0 {
			q = 1.5 * p
		}
		s := sample{Result: measure.Result{Ops: uint64(o), Seconds: 1, CPUSeconds: 1,
			Latency: histogram.Percentiles{Count: int64(o), P50: int64(p), P99: int64(q), P999: int64(2 * q), P9999: int64(3 * q)}}, ServerCPU: 1, Payload: uint64(o) * e.payload}
		for s.Round = range r.rounds {
			r.samples[e.id] = append(r.samples[e.id], s)
		}
	}
	return r
}

func TestBudget(t *testing.T) {
	for _, c := range []struct {
		budget budget
		rounds int
		took   time.Duration
		left   bool
	}{
		{budget{rounds: 5}, 0, 0, true},
		{budget{rounds: 5}, 4, time.Hour, true},
		{budget{rounds: 5}, 5, 0, false},
		{budget{5, time.Minute}, 0, 0, true},
		{budget{5, time.Minute}, 2, 40 * time.Second, true},
		{budget{5, time.Minute}, 2, 41 * time.Second, false},
		{budget{5, time.Minute}, 1, time.Hour, false},
		{budget{5, time.Minute}, 5, time.Second, false},
	} {
		if got := c.budget.left(c.rounds, c.took); got != c.left {
			t.Errorf("%+v: another round: %t", c, got)
		}
	}
}
