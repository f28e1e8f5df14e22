// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	"github.com/xdpfab/xdpfab/bench/measure"
)

// foreign follows a client that prints figures only at its end. CPU time and system
// calls of client and server count from the client's start.
func (n *network) foreign(ctx context.Context, c *contest, server, client *process) (s sample, err error) {
	if err := n.watch(server, client); err != nil {
		return s, err
	}
	defer n.unwatch(server, client)
	before, err := lookAround()
	if err != nil {
		return s, err
	}
	var lines []string
	for l := range client.lines {
		lines = append(lines, l)
	}
	<-client.ended
	after, err := lookAround()
	if err != nil {
		return s, err
	}
	if client.err != nil {
		return s, fmt.Errorf("client: %w: %s: printed %q", client.err, client.said(), lines)
	}
	if s.Result, err = c.parse(lines); err != nil {
		return s, err
	}
	server.close()
	if s.After, err = n.ping(); err != nil {
		return s, err
	}
	if s.Syscalls, err = n.callsOf(server, client, s.Ops); err != nil {
		return s, err
	}
	ofClient, ofServer := used(client), used(server)
	s.CPUSeconds, s.Involuntary, s.ClientRSS = ofClient.cpu, ofClient.involuntary, ofClient.rss
	s.ServerCPU, s.ServerRSS = ofServer.cpu, ofServer.rss
	s.Disturbed = disturbance(before, after, s.CPUSeconds+s.ServerCPU, 0)
	return s, ctx.Err()
}

// usage is what a process used from its start to its end.
type usage struct {
	cpu         float64 // seconds
	involuntary int64   // context switches
	rss         int64   // bytes, at its greatest
}

func used(p *process) usage {
	u, ok := p.cmd.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		return usage{}
	}
	return usage{cpu: float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9, involuntary: u.Nivcsw, rss: u.Maxrss << 10}
}

// listening reports whether a TCP socket listens on the port in a process's
// namespace.
func listening(pid, port int) bool {
	for _, file := range []string{"tcp", "tcp6"} {
		table, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", pid, file))
		if err == nil && listensIn(string(table), port) {
			return true
		}
	}
	return false
}

// listensIn reads a table as in /proc/net/tcp: local address and state are the
// second and the fourth column.
func listensIn(table string, port int) bool {
	const listen = "0A"
	for line := range strings.Lines(table) {
		f := strings.Fields(line)
		if len(f) > 3 && f[3] == listen && strings.HasSuffix(f[1], fmt.Sprintf(":%04X", port)) {
			return true
		}
	}
	return false
}

// parseUCX reads the output of ucx_perftest: the line "Final:", with iterations,
// the median, average and overall latency in µs, two bandwidths in MB/s, and the
// average and overall rate in operations a second. The median is that of the
// average operation when several are outstanding: then it is no latency.
func parseUCX(output []string) (r measure.Result, err error) {
	for _, line := range output {
		rest, ok := strings.CutPrefix(strings.TrimSpace(line), "Final:")
		if !ok {
			continue
		}
		f := strings.Fields(rest)
		if len(f) != 8 {
			return r, fmt.Errorf("ucx_perftest printed %q: want eight numbers, as version 1.13 prints", line)
		}
		var v [8]float64
		for i := range f {
			if v[i], err = strconv.ParseFloat(f[i], 64); err != nil {
				return r, fmt.Errorf("ucx_perftest printed %q: %w", line, err)
			}
		}
		if v[0] <= 0 || v[7] <= 0 {
			return r, fmt.Errorf("ucx_perftest printed %q: want more than no operations", line)
		}
		r.Ops, r.Seconds = uint64(v[0]), v[0]/v[7]
		r.Latency.Count, r.Latency.P50 = int64(v[0]), int64(v[1]*1000)
		return r, nil
	}
	return r, fmt.Errorf("ucx_perftest printed no line that begins with Final:, but %q", output)
}
