// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/xdpfab/xdpfab/bench/measure"
)

// contest is something to be measured: a server, and a client that drives it.
type contest struct {
	name   string
	mtu    int                                    // of both interfaces, in bytes; 0 means standardMTU
	peer   bool                                   // another project's: its failure is a result, too
	hogged bool                                   // another process keeps the server's core busy
	shared bool                                   // threads of the client take turns on its core
	slow   bool                                   // to start: it has every second round alone
	hosted bool                                   // the server hosts the client, and counts its allocations
	words  int                                    // operations of a post; 0 means 1
	server func(n *network) command               // nil: the client needs none
	client func(n *network, ready string) command // ready: the rest of the server's line "ready"
	// serves reports whether a server is ready; nil for one that prints it.
	serves func(n *network, server *process) bool
	parse  func(output []string) (measure.Result, error) // nil for a client that prints a measure.Result
	// payload is the bytes that an operation carries, of contests whose figure is bytes a
	// second; otherwise 0.
	payload uint64
}

// sample is one run of a contest.
type sample struct {
	Round int `json:"round"`
	measure.Result
	pings
	Payload   uint64   `json:"payload_bytes,omitempty"`   // carried by all operations
	ServerCPU float64  `json:"server_cpu_seconds"`        // while the client measured
	ServerRSS int64    `json:"server_rss,omitempty"`      // bytes, at the end
	ClientRSS int64    `json:"client_rss,omitempty"`      // at its greatest
	Syscalls  *perSide `json:"syscalls_per_op,omitempty"` // nil unless they were counted
	Disturbed string   `json:"disturbed,omitempty"`
	Failed    string   `json:"failed,omitempty"` // the reason; then all else is empty
}

// perSide is a figure for client and server.
type perSide struct {
	Client float64 `json:"client"`
	Server float64 `json:"server"`
}

// runLimit bounds one run of a contest.
const runLimit = 30 * time.Second

// run takes one sample.
func (n *network) run(ctx context.Context, c *contest) (s sample, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, runLimit, fmt.Errorf("took longer than %v", runLimit))
	defer cancel()
	if err := n.setMTU(cmp.Or(c.mtu, standardMTU)); err != nil {
		return s, fmt.Errorf("%s: MTU: %w", c.name, err)
	}
	if c.server == nil {
		return n.alone(ctx, c)
	}
	server, err := n.start(ctx, n.B, n.serverCore, c.server(n))
	if err != nil {
		return s, fmt.Errorf("%s: %w", c.name, err)
	}
	defer server.close()
	ready, err := n.ready(ctx, c, server)
	if err != nil {
		return s, fmt.Errorf("%s: server: %w", c.name, err)
	}
	var before float64
	if c.parse != nil { // such a client does not say when it begins
		if before, err = n.ping(server); err != nil {
			return s, fmt.Errorf("%s: %w", c.name, err)
		}
	}
	client, err := n.start(ctx, n.A, n.clientCore, c.client(n, ready))
	if err != nil {
		return s, fmt.Errorf("%s: %w", c.name, err)
	}
	defer client.close()
	others := []*process{server}
	if c.hogged {
		hog, err := n.hog(ctx)
		if err != nil {
			return s, fmt.Errorf("%s: %w", c.name, err)
		}
		defer hog.close()
		others = append(others, hog)
	}
	if c.parse != nil {
		s, err = n.foreign(ctx, c, server, client)
		s.Before = before
	} else {
		s, err = n.own(ctx, c, client, others)
	}
	if err != nil {
		server.close()
		return s, fmt.Errorf("%s: %w; server: %v %s", c.name, err, server.cmd.ProcessState, server.said())
	}
	s.State = stateOf(s.Before, s.After)
	s.Payload = s.Ops * c.payload
	if c.hogged {
		s.Disturbed = "" // as it is meant to be
	}
	return s, nil
}

// alone takes a sample of a contest without a server.
func (n *network) alone(ctx context.Context, c *contest) (s sample, err error) {
	client, err := n.start(ctx, n.A, n.clientCore, c.client(n, ""))
	if err != nil {
		return s, fmt.Errorf("%s: %w", c.name, err)
	}
	defer client.close()
	if _, err := client.line(ctx, measure.Begin); err != nil {
		return s, err
	}
	if s.Before, err = n.ping(client); err != nil {
		return s, err
	}
	client.goOn()
	if _, err := client.line(ctx, measure.End); err != nil {
		return s, err
	}
	if s.After, err = n.ping(client); err != nil {
		return s, err
	}
	s.State = stateOf(s.Before, s.After)
	return s, client.report(ctx, &s.Result)
}

// report takes the result that a client prints last, and waits until the client has
// checked it and ended.
func (p *process) report(ctx context.Context, r *measure.Result) error {
	report, err := p.line(ctx, "")
	if err != nil {
		return err
	}
	if err := json.Unmarshal([]byte(report), r); err != nil {
		return fmt.Errorf("report %q: %w", report, err)
	}
	for range p.lines {
	}
	<-p.ended
	if p.err != nil {
		return fmt.Errorf("client: %w: %s", p.err, p.said())
	}
	return nil
}

// ready waits until the server serves, and returns the rest of its line "ready".
func (n *network) ready(ctx context.Context, c *contest, server *process) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, startLimit, fmt.Errorf("not ready within %v", startLimit))
	defer cancel()
	if c.serves == nil {
		return server.line(ctx, measure.Ready)
	}
	for !c.serves(n, server) {
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

// hostAllocs is the figure of a sample that a host tells: its own allocations for each
// post of the program that it hosts.
const hostAllocs = "host_allocs_per_post"

// mallocs asks a host how many objects it has allocated so far.
func (c *contest) mallocs(ctx context.Context, server *process) (float64, error) {
	if !c.hosted {
		return 0, nil
	}
	server.goOn()
	text, err := server.line(ctx, measure.Mallocs)
	if err != nil {
		return 0, err
	}
	return strconv.ParseFloat(text, 64)
}

// own follows a client that prints when it begins and ends measuring, and waits to be
// told to go on before it begins. Its server is the first of the other processes.
func (n *network) own(ctx context.Context, c *contest, client *process, others []*process) (s sample, err error) {
	server := others[0]
	if err := n.watch(server, client); err != nil {
		return s, err
	}
	defer n.unwatch(server, client)
	var looks [2]look
	if _, err := client.line(ctx, measure.Begin); err != nil {
		return s, err
	}
	if s.Before, err = n.ping(append(others, client)...); err != nil {
		return s, err
	}
	before, err := c.mallocs(ctx, server)
	if err != nil {
		return s, err
	}
	if looks[0], err = n.look(server, client); err != nil {
		return s, err
	}
	client.goOn()
	if _, err := client.line(ctx, measure.End); err != nil {
		return s, err
	}
	if looks[1], err = n.look(server, client); err != nil {
		return s, err
	}
	var after float64
	if err := still([]*process{client}, func() error {
		after, err = c.mallocs(ctx, server)
		return err
	}); err != nil {
		return s, err
	}
	if s.After, err = n.ping(append(others, client)...); err != nil {
		return s, err
	}
	if err := client.report(ctx, &s.Result); err != nil {
		return s, err
	}
	if posts := float64(s.Ops) / float64(max(c.words, 1)); c.hosted && posts > 0 {
		s.Extra[hostAllocs] = (after - before) / posts
	}
	s.ClientRSS = used(client).rss
	looks[1].since(looks[0], &s, c.peer || c.shared)
	return s, nil
}
