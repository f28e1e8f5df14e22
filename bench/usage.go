// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// userHZ is the unit of the times in /proc/stat, 1/100 s on every Linux that Go
// runs on.
const userHZ = 100

// activity is the use of the machine's CPUs since its start, in seconds.
type activity struct {
	busy, stolen float64
	at           time.Time
}

// parseActivity reads the first line of /proc/stat.
func parseActivity(stat string) (activity, error) {
	line, _, _ := strings.Cut(stat, "\n")
	f := strings.Fields(line)
	if len(f) < 9 || f[0] != "cpu" {
		return activity{}, fmt.Errorf("/proc/stat begins with %q: want cpu and eight numbers", line)
	}
	var v [8]float64
	for i := range v {
		n, err := strconv.ParseUint(f[i+1], 10, 64)
		if err != nil {
			return activity{}, fmt.Errorf("/proc/stat: %w", err)
		}
		v[i] = float64(n) / userHZ
	}
	// user, nice, system, idle, iowait, irq, softirq, steal
	return activity{busy: v[0] + v[1] + v[2] + v[5] + v[6], stolen: v[7]}, nil
}

func lookAround() (activity, error) {
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return activity{}, err
	}
	a, err := parseActivity(string(b))
	a.at = time.Now()
	return a, err
}

// cpuOf returns the CPU seconds that a process has used, from the scheduler's
// account of its threads, which is exact.
func cpuOf(pid int) (float64, error) {
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil || len(files) == 0 {
		return 0, fmt.Errorf("process %d has no /proc/%d/task/*/schedstat (%v)", pid, pid, err)
	}
	var total float64
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			continue // the thread has ended
		}
		first, _, _ := strings.Cut(string(b), " ")
		ns, err := strconv.ParseUint(first, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", f, err)
		}
		total += float64(ns) / 1e9
	}
	return total, nil
}

// Beyond these a run counts as disturbed.
const (
	mostStolen      = 0.02 // of the two cores' time, by the hypervisor
	mostOthers      = 0.10 // of the run's time on a core, by other processes
	mostInvoluntary = 1000 // switches a second of the client; Go's own threads make some 200
	tickNoise       = 0.04 // seconds: /proc/stat counts in ticks of 10 ms
)

// disturbance reports what disturbed the time between two looks, in which the contestants
// used own seconds of CPU; "" if nothing did.
func disturbance(before, after activity, own float64, involuntary int64) string {
	seconds := after.at.Sub(before.at).Seconds()
	var why []string
	if v := after.stolen - before.stolen - tickNoise; v > mostStolen*2*seconds {
		why = append(why, fmt.Sprintf("%.0f %% stolen", 100*v/(2*seconds)))
	}
	if v := after.busy - before.busy - own - tickNoise; v > mostOthers*seconds {
		why = append(why, fmt.Sprintf("others used %.0f %% of a core", 100*v/seconds))
	}
	if v := float64(involuntary) / seconds; v > mostInvoluntary {
		why = append(why, fmt.Sprintf("%.0f involuntary switches a second", v))
	}
	return strings.Join(why, ", ")
}

// look is the state of a run at one time. It reads nothing from the client, which may
// have ended by then: the client's system calls are counted outside it.
type look struct {
	machine          activity
	serverCPU        float64 // seconds
	serverRSS        int64   // bytes
	serverSyscalls   uint64  // 0 unless they are counted
	clientSyscalls   uint64
	syscallsAreKnown bool
}

func (n *network) look(server, client *process) (l look, err error) {
	s, c := server.cmd.Process.Pid, client.cmd.Process.Pid
	if l.serverCPU, err = cpuOf(s); err != nil {
		return l, err
	}
	if l.serverRSS, err = residentOf(s); err != nil {
		return l, err
	}
	if n.syscalls != nil {
		l.syscallsAreKnown = true
		if l.serverSyscalls, err = n.syscalls.count(s); err != nil {
			return l, err
		}
		if l.clientSyscalls, err = n.syscalls.count(c); err != nil {
			return l, err
		}
	}
	l.machine, err = lookAround()
	return l, err
}

// since fills a sample with the difference to an earlier look. If threads of the client
// take turns on its core, its own context switches do not count as a disturbance.
func (l look) since(before look, s *sample, shared bool) {
	involuntary := s.Involuntary
	if shared {
		involuntary = 0
	}
	s.ServerCPU = l.serverCPU - before.serverCPU
	s.ServerRSS = l.serverRSS
	s.Disturbed = disturbance(before.machine, l.machine, s.CPUSeconds+s.ServerCPU, involuntary)
	if l.syscallsAreKnown && s.Ops > 0 {
		s.Syscalls = &perSide{
			Client: float64(l.clientSyscalls-before.clientSyscalls) / float64(s.Ops),
			Server: float64(l.serverSyscalls-before.serverSyscalls) / float64(s.Ops),
		}
	}
}

// residentOf is the resident memory of a process, in bytes.
func residentOf(pid int) (int64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0, err
	}
	f := strings.Fields(string(b))
	if len(f) < 2 {
		return 0, fmt.Errorf("/proc/%d/statm is %q: want at least two numbers", pid, b)
	}
	pages, err := strconv.ParseInt(f[1], 10, 64)
	return pages * int64(os.Getpagesize()), err
}
