// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/xdpfab/xdpfab/bench/measure"
)

// contest is something to be measured: a server, and a client that drives it.
type contest struct {
	name    string
	server  func(n *network) command
	client  func(n *network, ready string) command        // ready: what the server said
	listens int                                           // TCP port by which a server shows that it is ready, when it does not print so
	parse   func(output []string) (measure.Result, error) // for a client that does not speak as ours do
}

// sample is one run of a contest.
type sample struct {
	measure.Result
	ServerCPU float64 `json:"server_cpu_seconds"` // while the client measured
	Disturbed string  `json:"disturbed,omitempty"`
}

// runLimit bounds one run of a contest.
const runLimit = 30 * time.Second

// run takes one sample.
func (n *network) run(ctx context.Context, c *contest) (s sample, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, runLimit, fmt.Errorf("took longer than %v", runLimit))
	defer cancel()
	server, err := n.start(ctx, n.B, n.serverCore, c.server(n))
	if err != nil {
		return s, fmt.Errorf("%s: %w", c.name, err)
	}
	defer server.close()
	ready, err := n.ready(ctx, c, server)
	if err != nil {
		return s, fmt.Errorf("%s: server: %w", c.name, err)
	}
	client, err := n.start(ctx, n.A, n.clientCore, c.client(n, ready))
	if err != nil {
		return s, fmt.Errorf("%s: %w", c.name, err)
	}
	defer client.close()
	if c.parse != nil {
		s, err = foreign(ctx, c, server, client)
	} else {
		s, err = own(ctx, server, client)
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", c.name, err)
	}
	return s, err
}

// ready waits until the server serves, and returns what it says of that.
func (n *network) ready(ctx context.Context, c *contest, server *process) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, startLimit, fmt.Errorf("not ready within %v", startLimit))
	defer cancel()
	if c.listens == 0 {
		return server.line(ctx, measure.Ready)
	}
	for !listening(server.cmd.Process.Pid, c.listens) {
		select {
		case <-server.ended:
			return "", fmt.Errorf("ended at once: %v: %s", server.err, server.said())
		case <-ctx.Done():
			return "", context.Cause(ctx)
		case <-time.After(5 * time.Millisecond):
		}
	}
	return "", nil
}

// own follows a client that says when it begins and ends to measure.
func own(ctx context.Context, server, client *process) (s sample, err error) {
	var looks [2]activity
	var cpu [2]float64
	for i, line := range []string{measure.Begin, measure.End} {
		if _, err := client.line(ctx, line); err != nil {
			return s, err
		}
		if cpu[i], err = cpuOf(server.cmd.Process.Pid); err != nil {
			return s, err
		}
		if looks[i], err = lookAround(); err != nil {
			return s, err
		}
	}
	report, err := client.line(ctx, "")
	if err != nil {
		return s, err
	}
	if err := json.Unmarshal([]byte(report), &s.Result); err != nil {
		return s, fmt.Errorf("report %q: %w", report, err)
	}
	for range client.lines { // until it has checked its results and ended
	}
	<-client.ended
	if client.err != nil {
		return s, fmt.Errorf("client: %w: %s", client.err, client.said())
	}
	s.ServerCPU = cpu[1] - cpu[0]
	s.Disturbed = disturbance(looks[0], looks[1], s.CPUSeconds+s.ServerCPU, s.Involuntary)
	return s, nil
}

// foreign follows a client that only prints figures at its end. What it used counts
// from its start, and so does what the server used.
func foreign(ctx context.Context, c *contest, server, client *process) (s sample, err error) {
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
	s.CPUSeconds, s.Involuntary = used(client)
	s.ServerCPU, _ = used(server)
	s.Disturbed = disturbance(before, after, s.CPUSeconds+s.ServerCPU, s.Involuntary)
	return s, ctx.Err()
}
