// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

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

// since fills a sample with the difference to an earlier look. A peer's own context
// switches do not count as a disturbance, since its threads share a core.
func (l look) since(before look, s *sample, peer bool) {
	involuntary := s.Involuntary
	if peer {
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
