// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// good is a report that meets every aim.
func good() *report {
	ops := map[string]float64{"fetch": 24e6, "fetch_single": 21e6, "fetch_single_domain": 21e6, "mediated_single": 6e6, "mediated_fetch": 21e6, "base": 30e6, "base_single": 26e6, "ucx_rate": 0.3e6, "sockets_fetch": 8e6, "hot": 22e6, "sessions": 23e6, "sessions_busy": 22e6, "regions_rate": 24e6,
		"array4096": 0.1e6, "floor_payload": 3e6, "floor_frames": 0.6e6,
		"msg4k": 200e3, "ucx_msg4k": 75e3, "floor_stream": 500e3, "floor_stream_copied": 400e3, "write": 650}
	ops["resident_fetch"], ops["resident_single"] = 25e6, 22e6
	trips := map[string]float64{"resident_trip": 1300, "floor": 3000, "trip": 3200, "trip_domain": 3200, "mediated_trip": 4000, "trip_udp": 3300, "sockets_trip": 6500, "trip_auto": 3500, "ucx": 7000, "libfabric": 11000, "regions_trip": 3210, "regions_idle": 3200,
		"asleep": 20000, "resident_asleep": 2000, "hogged": 4000, "resident_hogged": 1300,
		"lossy": 9000, "lossy_unordered": 4000, "msg_trip": 3500, "ucx_msg_trip": 10000}
	r := &report{Rounds: 3, results: made(fullPlan(sampleTime), ops, trips, nil), Idle: idleReport{CPUPercent: 0.2, RSS: 20 << 20},
		Shared:       &sharedReport{Programs: 2, Alone: 10e6, Together: []float64{5e6, 5e6}, AttachMS: 2, Attached: 100, CPUPercent: 0.2},
		StartSeconds: []float64{0.05, 0.06, 0.4}, Syscalls: map[string]*perSide{"trip": {Client: 1, Server: 1.001}}}
	for i, load := range []float64{1e4, 1e5, 1e6} {
		p := loadPoint{Offered: load, sample: r.results.samples["trip"][0]}
		p.Ops = uint64(load)
		p.Latency.P99 *= int64(i + 1)
		r.Load = append(r.Load, p)
	}
	for _, id := range []string{"resident_trip", "resident_fetch"} {
		for i := range r.results.samples[id] {
			r.results.samples[id][i].ServerCPU = 0
		}
	}
	r.Aims = judge(r)
	return r
}

func TestAimsCanBeMet(t *testing.T) {
	for _, a := range good().Aims {
		if !a.Met {
			t.Errorf("%s: %v %s, limit %v", a.What, a.Value, a.Unit, a.Limit)
		}
	}
}

// Making any single figure worse misses an aim.
func TestAimsCanBeMissed(t *testing.T) {
	slow := func(id string, by int64) func(*report) {
		return func(r *report) {
			for i := range r.results.samples[id] {
				l := &r.results.samples[id][i].Latency
				l.P50, l.P99 = l.P50*by, l.P99*by
			}
		}
	}
	few := func(id string) func(*report) {
		return func(r *report) {
			for i := range r.results.samples[id] {
				s := &r.results.samples[id][i]
				s.Ops, s.Payload = s.Ops/3, s.Payload/3
			}
		}
	}
	for name, worsen := range map[string]func(*report){
		"trip": slow("trip", 3), "trip of one domain": slow("trip_domain", 3), "udp": slow("trip_udp", 3), "sockets": slow("sockets_trip", 3), "sockets' rate": few("sockets_fetch"), "auto": slow("trip_auto", 3), "regions": slow("regions_trip", 3), "idle regions": slow("regions_idle", 3),
		"fetch": few("fetch"), "single": few("fetch_single"), "single of one domain": few("fetch_single_domain"), "single base": few("base_single"), "base": few("base"), "hot": few("hot"), "sessions": few("sessions"), "busy sessions": few("sessions_busy"), "regions' rate": few("regions_rate"),
		"arrays": few("array4096"), "tail without order": slow("lossy_unordered", 3),
		"messages": slow("msg_trip", 3), "messages of 4 KiB": few("msg4k"), "writes": few("write"),
		"p99": func(r *report) {
			for i := range r.results.samples["trip"] {
				r.results.samples["trip"][i].Latency.P99 *= 10
			}
		},
		"memory of sessions": func(r *report) {
			for i := range r.results.samples["sessions_busy"] {
				r.results.samples["sessions_busy"][i].ServerRSS = 1 << 30
			}
		},
		"allocations": func(r *report) {
			for i := range r.results.samples["fetch"] {
				r.results.samples["fetch"][i].Extra = map[string]float64{"allocs_per_op": 1}
			}
		},
		"a peer that fails": func(r *report) {
			for i := range r.results.samples["ucx"] {
				r.results.samples["ucx"][i] = sample{Failed: "crashed"}
			}
		},
		"resident pair": few("resident_hot"), "resident asleep": slow("resident_asleep", 6), "resident hogged": slow("resident_hogged", 3),
		"resident CPU": func(r *report) {
			r.results.samples["resident_fetch"], r.results.samples["resident_trip"] = r.results.samples["fetch"], r.results.samples["trip_domain"]
		},
		"attached trip": slow("mediated_trip", 3), "attached single": few("mediated_single"), "attached fetch": few("mediated_fetch"),
		"programs together": func(r *report) { r.Shared.Together = []float64{4e6, 4e6} },
		"unfair shares":     func(r *report) { r.Shared.Together = []float64{9e6, 1e6} },
		"attaching":         func(r *report) { r.Shared.AttachMS = 6 },
		"idle guests":       func(r *report) { r.Shared.CPUPercent = 5 },
		"syscalls":          func(r *report) { r.Syscalls["trip"].Server = 2 },
		"idle":              func(r *report) { r.Idle.CPUPercent = 5 },
		"rss":               func(r *report) { r.Idle.RSS = 1 << 30 },
		"start":             func(r *report) { r.StartSeconds = []float64{1} },
	} {
		r := good()
		worsen(r)
		if !slices.ContainsFunc(judge(r), func(a aim) bool { return !a.Met }) {
			t.Errorf("%s: every aim is still met", name)
		}
	}
}

// The last line of the quick mode has the present aims, and says whether they are met.
func TestQuickResult(t *testing.T) {
	for _, c := range []struct {
		trip, rate float64
		met        [2]bool
	}{{4700, 20e6, [2]bool{true, true}}, {4900, 20e6, [2]bool{false, true}}, {4700, 19e6, [2]bool{true, false}}} {
		plan := pick(fullPlan(sampleTime), quickIDs...)
		r := made(plan, map[string]float64{"fetch_single_domain": c.rate, "mediated_single": 6e6}, map[string]float64{"floor": 4000, "trip_domain": c.trip, "mediated_trip": 2 * c.trip}, nil)
		aims := checked(domainSteps(r))
		q := quickResult(r, aims[0], aims[1])
		if q.RTTVsFloorAim != 1.2 || q.MopsSingleAim != 20 || q.RTTVsFloorMet != c.met[0] || q.MopsSingleMet != c.met[1] || q.MopsSingle != c.rate/1e6 ||
			q.MediatedRTTVsDirect != 2 || q.MediatedMopsSingle != 6 {
			t.Errorf("%+v: %+v", c, q)
		}
	}
}

func TestTable(t *testing.T) {
	r := good()
	r.results.samples["ucx"][1].Disturbed = "others used 80 % of a core"
	r.results.samples["plain_udp"] = []sample{{Failed: "crashed\nbacktrace"}}
	r.results.samples["plain_tcp"][1] = sample{Failed: "gone"}
	r.Idle.RSS = 1 << 30
	r.Aims = judge(r)
	var out bytes.Buffer
	r.print(&out)
	for _, want := range []string{"floor: AF_XDP in C", "3.20", "24.0", "disturbed 1 of 3: others used 80 %", "failed 1 of 1: crashed", "MISSED", "failed 1 of 3: gone", "50 of 51 aims are met", "offered M/s"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in the table:\n%s", want, out.String())
		}
	}
}

func TestFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "results")
	if err := good().write(dir, filepath.Join(dir, "bin", "samples.json")); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(dir, "bin", "samples.json"))
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Aims     []aim         `json:"aims"`
		Contests []contestFile `json:"contests"`
		Load     []loadPoint   `json:"load"`
	}
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Aims) == 0 || len(got.Contests) != len(fullPlan(sampleTime)) || len(got.Load) != 3 || got.Contests[0].P50.Median != 3000 || got.Load[2].Ops != 1e6 {
		t.Errorf("%d aims, %d contests, %+v", len(got.Aims), len(got.Contests), got.Load)
	}
	tables, err := os.ReadFile(filepath.Join(dir, "latest.txt"))
	if err != nil || !strings.Contains(string(tables), "aims are met") || strings.Contains(string(tables), " \n") {
		t.Errorf("latest.txt: %v\n%s", err, tables)
	}
}

func TestPlanHasNoDoubles(t *testing.T) {
	seen := map[string]bool{}
	for _, e := range fullPlan(sampleTime) {
		if seen[e.id] {
			t.Errorf("two contests are called %s", e.id)
		}
		seen[e.id] = true
	}
	for _, ids := range [][]string{quickIDs, syscallIDs} {
		if got := len(pick(fullPlan(sampleTime), ids...)); got != len(ids) {
			t.Errorf("%d of %v are in the plan", got, ids)
		}
	}
}

func TestLimits(t *testing.T) {
	b, err := os.ReadFile("limits.json")
	if err != nil {
		t.Fatal(err)
	}
	limits, err := parseLimits(b, fullPlan(sampleTime))
	if err != nil {
		t.Fatal(err)
	}
	r := good().results
	for _, l := range limits {
		if v, kept := l.check(r); !kept && l.Of != "allocs" {
			t.Errorf("%s: %v is not within %+v", l.Name, v, l)
		}
	}
	for i := range r.samples["trip"] {
		r.samples["trip"][i].Latency.P50 *= 4
	}
	if left := exceeded(io.Discard, limits, r); len(left) == 0 || left[0].Contest != "trip" {
		t.Errorf("a trip of four times the time exceeds %+v", left)
	}
	for _, bad := range []string{
		`[]`, `{}`, `[{"name":"x","of":"p50","contest":"trip","to":"nobody","at_most":1}]`,
		`[{"name":"x","of":"p77","contest":"trip","to":"floor","at_most":1}]`,
		`[{"name":"x","of":"p50","contest":"trip","at_most":1}]`,
		`[{"name":"x","of":"p50","contest":"trip","to":"floor"}]`,
		`[{"name":"x","of":"p50","contest":"trip","to":"floor","at_most":1,"at_least":1}]`,
		`[{"name":"x","of":"p50","contest":"trip","to":"floor","atmost":1}]`,
	} {
		if _, err := parseLimits([]byte(bad), fullPlan(sampleTime)); err == nil {
			t.Errorf("%s is taken", bad)
		}
	}
}
