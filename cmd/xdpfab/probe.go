// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"fmt"
	"io"

	"github.com/xdpfab/xdpfab/internal/control"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// probed is what binding an interface gave: at this moment, or to the daemon that has it.
type probed struct {
	fi.Probe
	Daemon int `json:"daemon_pid,omitempty"` // of the daemon that was asked instead
}

// probeInterface probes an interface, or asks its daemon what it has got.
func probeInterface(ctx context.Context, ifname, socket string) (*probed, error) {
	found := statusOf(ctx, ifname, socket, probeLimit)
	s, silent := found.status, found.err
	if s != nil {
		return &probed{Probe: fi.Probe{InterfaceInfo: fi.InterfaceInfo(s.Interface), Refused: []string{}},
			Daemon: s.PID}, nil
	}
	if socket != "" && silent != nil {
		return nil, silent
	}
	if socket != "" { // by which the caller wants a daemon asked, and nothing bound
		return nil,
			fmt.Errorf(
				"--control %s: %w there that serves %s and answers; leave --control out to bind the interface itself",
				socket, control.ErrNoDaemon, ifname)
	}
	p, err := fi.ProbeInterface(ctx, ifname)
	if err != nil && silent != nil {
		err = fmt.Errorf("%w; %w", err, silent)
	}
	if err != nil {
		return nil, interfaceError(err)
	}
	return &probed{Probe: p}, nil
}

// by reports how it is known.
func (p *probed) by() string {
	if p.Daemon != 0 {
		return fmt.Sprintf("xdpfabd, process %d, has it", p.Daemon)
	}
	return "bound for an instant"
}

func (p *probed) text(w io.Writer) {
	fmt.Fprintf(w, "probed\t%s XDP, %s, %d queues, buffers of %d bytes%s: %s\n", p.XDP, p.Copy, p.Queues, p.Chunk,
		ifThen(p.HugeUMEM, " on huge pages"), p.by())
	if p.OpeningSeconds > 0 {
		fmt.Fprintf(w, "  opening took\t%.1f s\n", p.OpeningSeconds)
	}
	for _, r := range p.Refused {
		fmt.Fprintf(w, "  refused\t%s\n", r)
	}
}

// buffering describes packet buffers and rings, xdpfab's and the NIC's.
func (i *interfaceEntry) buffering() string {
	s := fmt.Sprintf("%d of %d bytes for each queue, in rings of %d entries", i.Plan.Buffers, i.Plan.Chunk,
		i.Plan.RingSize())
	if i.NICRing > 0 {
		s += fmt.Sprintf("; the NIC's ring has %d of at most %d", i.NICRing, i.NICRingMax)
	}
	return s
}
