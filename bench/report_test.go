// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// good is a report that meets every aim.
func good() *report {
	ops := map[string]float64{"fetch": 40e6, "fetch_single": 25e6, "fetch_single_domain": 26e6, "mediated_single": 15e6, "mediated_fetch": 26e6, "base": 42e6, "base_single": 26e6, "ucx_rate": 0.3e6, "sockets_fetch": 8e6, "hot": 36e6, "sessions": 36e6, "sessions_busy": 36e6, "regions_rate": 40e6,
		"array4096": 14e3, "floor_payload": 0.4e6, "floor_frames": 0.6e6,
		"msg4k": 200e3, "ucx_msg4k": 75e3, "floor_stream": 500e3, "floor_stream_copied": 400e3, "write": 650,
		"msg4k_large": 300e3, "ucx_msg4k_large": 75e3, "floor_stream_copied_large": 190e3, "write_large": 650,
		"msg4k_jumbo": 500e3, "ucx_msg4k_jumbo": 100e3, "floor_stream_copied_jumbo": 200e3, "write_jumbo": 1700, "ucx_write_jumbo": 800, "libfabric_write_jumbo": 1800}
	ops["resident_fetch"], ops["resident_single"] = 30e6, 22e6
	trips := map[string]float64{"resident_trip": 1300, "floor": 3000, "floor_footprint": 3000, "trip": 3200, "trip_domain": 3200, "mediated_trip": 4000, "trip_udp": 3300, "sockets_trip": 6500, "trip_auto": 3500, "ucx": 7000, "libfabric": 11000, "regions_trip": 3210, "regions_idle": 3200,
		"asleep": 20000, "resident_asleep": 2000, "hogged": 4000, "resident_hogged": 1300,
		"lossy": 9000, "lossy_unordered": 2700, "msg_trip": 3500, "ucx_msg_trip": 10000}
	r := &report{Rounds: 3, results: made(fullPlan(sampleTime), ops, trips, nil), Idle: idleReport{CPUPercent: 0.2, RSS: 20 << 20},
		Shared:       &sharedReport{Programs: 2, Alone: 10e6, Together: []float64{5e6, 5e6}, AttachMS: 2, Attached: 100, CPUPercent: 0.2},
		StartSeconds: []float64{0.05, 0.06, 0.4}, Syscalls: map[string]*perSide{"trip": {Client: 1, Server: 1.001}}}
	for i, load := range []float64{1e4, 1e5, 1e6} {
		p := loadPoint{Offered: load, sample: r.results.samples["trip"][0]}
		p.Ops = uint64(load)
		p.Latency.P99 *= int64(i + 1)
		r.Load = append(r.Load, p)
	}
	for _, samples := range r.results.samples {
		for i := range samples {
			samples[i].State = near
		}
	}
	for _, id := range []string{"resident_trip", "resident_fetch", "resident_single"} {
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

// Making any single figure worse misses an aim, and each aim can be missed.
func TestAimsCanBeMissed(t *testing.T) {
	slow := func(id string, by int64) func(*report) {
		return func(r *report) {
			for i := range r.results.samples[id] {
				l := &r.results.samples[id][i].Latency
				l.P50, l.P99, l.P999 = l.P50*by, l.P99*by, l.P999*by
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
	left := map[int]aim{}
	for i, a := range good().Aims {
		left[i] = a
	}
	tail := func(id string) func(*report) {
		return func(r *report) {
			for i := range r.results.samples[id] {
				r.results.samples[id][i].Latency.P999 = int64(time.Second)
			}
		}
	}
	for name, worsen := range map[string]func(*report){
		"trip": slow("trip_domain", 3), "udp": slow("trip_udp", 3), "sockets": slow("sockets_trip", 3), "sockets' rate": few("sockets_fetch"), "auto": slow("trip_auto", 3), "regions": slow("regions_trip", 3), "idle regions": slow("regions_idle", 3),
		"fetch": few("fetch"), "single of one domain": few("fetch_single_domain"), "single base": few("base_single"), "base": few("base"), "hot": few("hot"), "sessions": few("sessions"), "busy sessions": few("sessions_busy"), "regions' rate": few("regions_rate"),
		"arrays": few("array4096"), "tail without order": slow("lossy_unordered", 3),
		"messages": slow("msg_trip", 3), "messages of 4 KiB": few("msg4k"), "writes": few("write"),
		"large messages": few("msg4k_large"), "large writes": few("write_large"),
		"jumbo messages": few("msg4k_jumbo"), "jumbo writes": few("write_jumbo"),
		"p99": func(r *report) {
			for i := range r.results.samples["trip_domain"] {
				r.results.samples["trip_domain"][i].Latency.P99 *= 10
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
			for id, poller := range map[string]string{"resident_fetch": "fetch", "resident_single": "base_single", "resident_trip": "trip_domain"} {
				r.results.samples[id] = r.results.samples[poller]
			}
		},
		"attached trip": slow("mediated_trip", 3), "attached single": few("mediated_single"), "attached fetch": few("mediated_fetch"),
		"attached tail": slow("mediated_fetch", 100),
		"garbage of the host": func(r *report) {
			for i := range r.results.samples["mediated_fetch"] {
				r.results.samples["mediated_fetch"][i].Extra = map[string]float64{hostAllocs: 2}
			}
		},
		"resident trip": slow("resident_trip", 3), "resident single": few("resident_single"),
		"garbage of an attached program": tail("garbage_attached"),
		"garbage, resident region":       tail("garbage_resident"),
		"programs together":              func(r *report) { r.Shared.Together = []float64{4e6, 4e6} },
		"unfair shares":                  func(r *report) { r.Shared.Together = []float64{9e6, 1e6} },
		"attaching":                      func(r *report) { r.Shared.AttachMS = 6 },
		"idle guests":                    func(r *report) { r.Shared.CPUPercent = 5 },
		"syscalls":                       func(r *report) { r.Syscalls["trip"].Server = 2 },
		"idle":                           func(r *report) { r.Idle.CPUPercent = 5 },
		"rss":                            func(r *report) { r.Idle.RSS = 1 << 30 },
		"start":                          func(r *report) { r.StartSeconds = []float64{1} },
	} {
		r := good()
		worsen(r)
		met := true
		for i, a := range judge(r) {
			if !a.Met {
				met = false
				delete(left, i)
			}
		}
		if met {
			t.Errorf("%s: every aim is still met", name)
		}
	}
	for _, a := range left {
		t.Errorf("nothing misses %q", a.What)
	}
}

// docs/performance.md has each aim, with its limit and the reason for it.
func TestDocumentsHaveTheAims(t *testing.T) {
	b, err := os.ReadFile("../docs/performance.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := strings.Split(string(b), "\n")
	r := good()
	r.Shared.Programs = programs
	for _, a := range judge(r) {
		if a.Why == "" {
			t.Errorf("%q has no reason", a.What)
		}
		cells := strings.Split(a.row(false), "|")
		if !slices.ContainsFunc(rows, func(row string) bool {
			has := strings.Split(row, "|")
			return !slices.ContainsFunc(cells, func(cell string) bool { return !slices.Contains(has, cell) })
		}) {
			t.Errorf("docs/performance.md has no row %s", a.row(false))
		}
	}
}

// The last line of the quick mode has the present aims, and says whether they are met.
func TestQuickResult(t *testing.T) {
	for _, c := range []struct {
		trip, rate float64
		met        [2]bool
	}{{5500, 20e6, [2]bool{true, true}}, {5700, 20e6, [2]bool{false, true}}, {5500, 17e6, [2]bool{true, false}}} {
		plan := pick(fullPlan(sampleTime), quickIDs...)
		r := made(plan, map[string]float64{"fetch": 30e6, "fetch_single_domain": c.rate, "mediated_single": 6e6, "mediated_fetch": 15e6, "resident_fetch": 20e6,
			"write": 450, "floor_stream": 500e3, "floor_stream_copied": 400e3},
			map[string]float64{"floor": 4000, "floor_footprint": 5000, "trip_domain": c.trip, "mediated_trip": 2 * c.trip}, nil)
		for id := range r.samples {
			r.samples[id][0].State, r.samples[id][1].State, r.samples[id][2].State = near, far, near
			r.samples[id][1].Latency.P50 *= 7 // what is not near does not count
		}
		q := quickResult(r)
		if q.RTTVsFloorAim != 1.4 || q.MopsSingleAim != 18 || q.RTTVsFloorMet != c.met[0] || q.MopsSingleMet != c.met[1] || q.MopsSingle != c.rate/1e6 ||
			q.MediatedRTTVsDirect != 2 || q.MediatedMopsSingle != 6 {
			t.Errorf("%+v: %+v", c, q)
		}
		if q.RTTVsFootprint != c.trip/5000 || q.SingleVsBatch != c.rate/30e6 || q.AttachedBatchVsDirect != 0.5 || q.CPURate != 20.0/30 || q.NearShare != 2.0/3 {
			t.Errorf("%+v: %+v", c, q)
		}
		if want := 450.0 * bigAccess / (400e3 * float64(writePart(standardMTU))); math.Abs(q.WriteVsCopy-want) > 1e-9 || q.WriteVsFloor >= q.WriteVsCopy {
			t.Errorf("%+v: write to copy %v, want %v", c, q.WriteVsCopy, want)
		}
		b, err := json.Marshal(q)
		if err != nil {
			t.Fatal(err)
		}
		for _, key := range []string{"near_share", "rtt_vs_footprint", "single_vs_batch", "attached_batch_vs_direct", "write_vs_copy", "resident_cpu_rate_vs_poller"} {
			if !strings.Contains(string(b), `"`+key+`":`) {
				t.Errorf("no %q in %s", key, b)
			}
		}
	}
}

// Without near samples the aim for the floor is that of far and mixed ones.
func TestFloorAimWithoutNearSamples(t *testing.T) {
	r := good()
	for i := range r.results.samples["floor"] {
		r.results.samples["floor"][i].State = far
	}
	if a := tripAims(r.results)[0]; a.Limit != 1.25 || !strings.Contains(a.Note, "near in 0 of 3") {
		t.Errorf("%+v, want a limit of 1.25", a)
	}
	if a := tripAims(good().results)[0]; a.Limit != 1.4 || !strings.Contains(a.Note, "near in 3 of 3") {
		t.Errorf("%+v, want a limit of 1.4", a)
	}
}

func TestTable(t *testing.T) {
	r := good()
	r.results.samples["ucx"][1].Disturbed = "others used 80 % of a core"
	r.results.samples["plain_udp"] = []sample{{Failed: "crashed\nbacktrace"}}
	r.results.samples["plain_tcp"][1] = sample{Failed: "gone"}
	r.Idle.RSS = 1 << 30
	r.Aims = judge(r)
	missed := fmt.Sprintf("%d of %d aims are met", len(r.Aims)-1, len(r.Aims))
	var out bytes.Buffer
	r.print(&out)
	for _, want := range []string{"floor: AF_XDP in C", "3.20", "40.0", "disturbed 1 of 3: others used 80 %", "failed 1 of 1: crashed", "MISSED", "failed 1 of 3: gone", missed, "offered M/s"} {
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
