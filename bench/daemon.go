// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/xdpfab/xdpfab/bench/measure"
	"github.com/xdpfab/xdpfab/internal/control"
	"github.com/xdpfab/xdpfab/internal/testnet/veth"
)

// daemonCommand is xdpfabd with a region as the worker's target has it.
func daemonCommand(n *network) command {
	return call("xdpfabd", "--interface", veth.IfName, "--control", n.socket(), "--region", "bench=64KiB")
}

func (n *network) socket() string { return filepath.Join(n.tmp, "control.sock") }

// answers reports whether a daemon serves a control socket.
func answers(socket string) bool {
	c, err := control.Dial(socket)
	if err != nil {
		return false
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_, err = c.Status(ctx)
	return err == nil
}

// idleReport is the cost of a daemon without clients.
type idleReport struct {
	CPUPercent float64 `json:"cpu_percent"` // of a core
	RSS        int64   `json:"rss"`         // bytes
}

// idle runs a daemon without clients for a while, and measures what it uses.
func (n *network) idle(ctx context.Context) (r idleReport, err error) {
	c := &contest{name: "idle daemon", serves: func(n *network, _ *process) bool { return answers(n.socket()) }}
	p, err := n.start(ctx, n.B, n.serverCore, daemonCommand(n))
	if err != nil {
		return r, err
	}
	defer p.close()
	if _, err := n.ready(ctx, c, p); err != nil {
		return r, err
	}
	if r.CPUPercent, err = watchIdle(ctx, p); err != nil {
		return r, err
	}
	r.RSS, err = residentOf(p.cmd.Process.Pid)
	return r, err
}

// watchIdle returns how much of a core a process uses that has nothing to do, in percent.
func watchIdle(ctx context.Context, p *process) (percent float64, err error) {
	const settle, watch = 500 * time.Millisecond, 3 * time.Second
	if err := sleep(ctx, settle); err != nil {
		return 0, err
	}
	before, err := cpuOf(p.cmd.Process.Pid)
	if err != nil {
		return 0, err
	}
	start := time.Now()
	if err := sleep(ctx, watch); err != nil {
		return 0, err
	}
	after, err := cpuOf(p.cmd.Process.Pid)
	return 100 * (after - before) / time.Since(start).Seconds(), err
}

// firstOperation starts a daemon and an initiator at the same time, and returns
// how many seconds later the first operation has completed.
func (n *network) firstOperation(ctx context.Context) (seconds float64, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, startLimit, fmt.Errorf("no operation within %v", startLimit))
	defer cancel()
	start := time.Now()
	server, err := n.start(ctx, n.B, n.serverCore, daemonCommand(n))
	if err != nil {
		return 0, err
	}
	defer server.close()
	client, err := n.start(ctx, n.A, n.clientCore,
		call("worker", "initiator", "-first", "-i", veth.IfName, "-peer", n.B.MAC))
	if err != nil {
		return 0, err
	}
	defer client.close()
	if _, err := client.line(ctx, measure.End); err != nil {
		return 0, errors.Join(err, context.Cause(ctx))
	}
	return time.Since(start).Seconds(), nil
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}
