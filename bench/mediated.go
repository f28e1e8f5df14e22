// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/xdpfab/xdpfab/bench/measure"
	"github.com/xdpfab/xdpfab/internal/testnet/veth"
)

// Programs that use the interface through another process, on the initiator's side alone.
// There are three parts that poll and two cores: the program has the client's core, and
// on the server's core one thread of one process is host and target in turn.

// hostCommand is a process that is host on the client's side and target on the server's.
func hostCommand(n *network) command {
	return call("worker", "host", "-i", veth.IfName, "-netns", n.A.Name, "-control", n.socket(), "-count", programs)
}

// mediatedAims are the aims of attached programs that the rounds measure.
func mediatedAims(m *results) []aim {
	host := max(m.median("mediated_trip", allocsOfHost), m.median("mediated_single", allocsOfHost),
		m.median("mediated_fetch", allocsOfHost))
	return []aim{
		m.atMost("attached program: fetch-add RTT p50, to direct use", p50, "mediated_trip", "trip_domain", 1.6).
			because("shared memory adds two hand-overs between cores"),
		m.atLeast("attached program: fetch-adds, 1 word a post, to direct use", rate,
			"mediated_single", "fetch_single_domain", 0.5).
			because("host and target share one core"),
		m.atLeast("attached program: fetch-adds, 182 words a post, to direct use", rate,
			"mediated_fetch", "fetch", 0.6).
			because("host and target share one core; their CPU time allows 0.5 to 0.62"),
		atMost("the same, p99", m.median("mediated_fetch", p99)/1e3, "µs", 500).of(m, "mediated_fetch").
			because("32 posts of 182 words take 280 µs at 21 M/s"),
		atMost("allocations of the host for each post", host, "", 0.01).
			of(m, "mediated_trip", "mediated_single", "mediated_fetch").
			because("garbage of a daemon stops the operations of all its programs"),
	}
}

// sharedReport is what programs cost that share an interface.
type sharedReport struct {
	Programs   int       `json:"programs"`
	Alone      float64   `json:"alone"`    // operations a second of one program
	Together   []float64 `json:"together"` // of each of the programs
	AttachMS   float64   `json:"attach_ms"`
	Attached   int       `json:"attached"` // programs that are attached and do nothing
	CPUPercent float64   `json:"cpu_percent"`
}

const (
	programs     = 8
	idlePrograms = 100
	togetherTime = 2 * time.Second
	// togetherStart is how long programs that share a core may take to start.
	togetherStart = 1500 * time.Millisecond
)

// sharing measures programs that share an interface.
func (n *network) sharing(ctx context.Context) (*sharedReport, error) {
	r := &sharedReport{Programs: programs, Attached: idlePrograms}
	alone, err := n.together(ctx, 1)
	if err != nil {
		return nil, fmt.Errorf("an attached program: %w", err)
	}
	r.Alone = alone[0]
	if r.Together, err = n.together(ctx, programs); err != nil {
		return nil, fmt.Errorf("%d attached programs: %w", programs, err)
	}
	if err := n.idleGuests(ctx, r); err != nil {
		return nil, fmt.Errorf("%d idle attached programs: %w", idlePrograms, err)
	}
	return r, nil
}

// together has programs post to one host at the same time, and returns the rate of each.
func (n *network) together(ctx context.Context, count int) (rates []float64, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, runLimit, fmt.Errorf("took longer than %v", runLimit))
	defer cancel()
	c := pick(fullPlan(togetherTime), "mediated_fetch")[0].contest
	server, err := n.start(ctx, n.B, n.serverCore, c.server(n))
	if err != nil {
		return nil, err
	}
	defer server.close()
	if _, err := n.ready(ctx, c, server); err != nil {
		return nil, err
	}
	cmd := c.client(n, "")
	cmd.args = append(cmd.args, "-at", strconv.FormatInt(time.Now().Add(togetherStart).UnixMilli(), 10))
	var clients []*process
	for i := range count {
		// the last one counts
		p, err := n.start(ctx, n.A, n.clientCore, call(cmd.program, cmd.args, "-region", fmt.Sprint("bench", i)))
		if err != nil {
			return nil, err
		}
		defer p.close()
		p.goOn()
		clients = append(clients, p)
	}
	for _, p := range clients {
		var r measure.Result
		if _, err := p.line(ctx, measure.End); err != nil {
			return nil, errors.Join(err, context.Cause(ctx))
		}
		if err := p.report(ctx, &r); err != nil {
			return nil, err
		}
		rates = append(rates, r.OpsPerSecond())
	}
	return rates, nil
}

// idleGuests attaches domains of one program to a daemon, which are as many guests to it,
// and measures how long that takes and what the daemon uses while they do nothing.
func (n *network) idleGuests(ctx context.Context, r *sharedReport) error {
	daemon, err := n.start(ctx, n.B, n.serverCore, daemonCommand(n))
	if err != nil {
		return err
	}
	defer daemon.close()
	if _, err := n.ready(ctx, &contest{serves: func(n *network, _ *process) bool { return answers(n.socket()) }},
		daemon); err != nil {
		return err
	}
	guests, err := n.start(ctx, n.B, n.clientCore, call("worker", "attach", "-i", veth.IfName, "-control", n.socket(),
		"-count", idlePrograms))
	if err != nil {
		return err
	}
	defer guests.close()
	text, err := n.ready(ctx, &contest{}, guests)
	if err != nil {
		return err
	}
	if r.AttachMS, err = strconv.ParseFloat(text, 64); err != nil {
		return err
	}
	r.CPUPercent, err = watchIdle(ctx, daemon)
	return err
}

// aims are those of programs that share an interface.
func (r *sharedReport) aims() []aim {
	if r == nil {
		return nil
	}
	sum := 0.0
	for _, v := range r.Together {
		sum += v
	}
	return []aim{
		atLeast(fmt.Sprintf("%d attached programs together, to one", r.Programs), sum/max(r.Alone, 1), "x", 0.9).
			because("a ring more costs the host only a look"),
		atLeast("the same: Jain's index of their rates", jain(r.Together), "", 0.95).
			because("programs of the same weight get the same share"),
		atMost("time to attach to a daemon, median", r.AttachMS, "ms", 5).
			because("attaching should suit programs that run only for a moment"),
		atMost(fmt.Sprintf("idle daemon with %d attached programs: CPU", r.Attached), r.CPUPercent, "%", 1).
			because("a program that does nothing should cost nothing"),
	}
}

// jain is Jain's index of fairness: 1 if all have the same, 1/n if one has all; 0 if
// no program has any.
func jain(x []float64) float64 {
	sum, squares := 0.0, 0.0
	for _, v := range x {
		sum, squares = sum+v, squares+v*v
	}
	if squares == 0 {
		return 0
	}
	return sum * sum / (float64(len(x)) * squares)
}
