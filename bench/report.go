// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// report has all the results of a full run.
type report struct {
	Machine      machine             `json:"machine"`
	Started      time.Time           `json:"started"`
	Seconds      float64             `json:"seconds"`
	Rounds       int                 `json:"rounds"`
	Aims         []aim               `json:"aims"`
	Load         []loadPoint         `json:"load"` // latency against offered load
	Syscalls     map[string]*perSide `json:"syscalls_per_op"`
	Idle         idleReport          `json:"idle_daemon"`
	Shared       *sharedReport       `json:"shared_interface"` // programs that share one; nil unless measured
	StartSeconds []float64           `json:"start_seconds"`    // of both sides, to the first operation
	results      *results
}

type machine struct {
	CPU    string `json:"cpu"`
	Cores  int    `json:"cores"`
	Kernel string `json:"kernel"`
	Go     string `json:"go"`
	Commit string `json:"commit"` // with "+" if there were changes on top
}

// contestFile is a contest in the JSON file.
type contestFile struct {
	ID      string   `json:"id"`
	Group   string   `json:"group"`
	Name    string   `json:"name"`
	P50     spread   `json:"p50_ns"`
	Rate    spread   `json:"ops_per_second"`
	Samples []sample `json:"samples"`
}

// spread is the distribution of a figure over the rounds.
type spread struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

func spreadOf(v []float64) spread {
	v = known(v)
	if len(v) == 0 {
		return spread{}
	}
	return spread{median(v), slices.Min(v), slices.Max(v)}
}

// file is the report as it is written.
func (r *report) file() any {
	var contests []contestFile
	for _, e := range r.results.plan {
		contests = append(contests,
			contestFile{ID: e.id, Group: e.group, Name: e.name, Samples: r.results.samples[e.id],
				P50: spreadOf(r.results.values(e.id, p50)), Rate: spreadOf(r.results.values(e.id, rate))})
	}
	return struct {
		*report
		Contests []contestFile `json:"contests"`
	}{r, contests}
}

// describe looks at the machine. A field that it cannot find out stays empty.
func describe() machine {
	m := machine{Cores: runtime.NumCPU(), Go: runtime.Version()}
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		m.Kernel = unix.ByteSliceToString(u.Release[:])
	}
	info, _ := os.ReadFile("/proc/cpuinfo")
	m.CPU = cpuModel(string(info))
	if out, err := exec.Command("git", "rev-parse", "--short", "HEAD").Output(); err == nil {
		m.Commit = strings.TrimSpace(string(out))
		if out, err := exec.Command("git", "status", "--porcelain", "--untracked-files=no").Output(); err == nil &&
			len(out) > 0 {
			m.Commit += "+"
		}
	}
	return m
}

// cpuModel finds the model in /proc/cpuinfo.
func cpuModel(info string) string {
	for line := range strings.Lines(info) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
