// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime"

	"github.com/xdpfab/xdpfab/bench/measure"
	"github.com/xdpfab/xdpfab/internal/load"
	"github.com/xdpfab/xdpfab/mr"
	"github.com/xdpfab/xdpfab/xdpfab"
)

// line makes the endpoint with number 0, which sends tagged messages as the peers' do.
func (s *settings) line(ctx context.Context, dom *xdpfab.Domain) (*load.Line, error) {
	l, err := load.NewLine(dom, load.LineAttr{Flight: s.flight})
	if err != nil {
		return nil, err
	}
	return l, l.Reach(ctx, s.peer)
}

// transfer returns what is measured.
func (s *settings) transfer() load.TransferConfig {
	return load.TransferConfig{Test: load.Test(s.test), Size: s.length, Flight: s.flight}
}

// server is the side that answers; see serve.
func server(ctx context.Context, dom *xdpfab.Domain, s *settings) error {
	runtime.LockOSThread()
	return s.serve(ctx, dom, os.Stdout)
}

// serve answers messages, or has memory that the client writes and reads, until it is
// told to stop. It says on out when it is ready.
func (s *settings) serve(ctx context.Context, dom *xdpfab.Domain, out io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, targetLimit)
	defer cancel()
	c := s.transfer()
	s.size = max(c.Memory(), regionSize) // messages need none
	memory, err := mr.Alloc(s.size, mr.AllocOptions{})
	if err != nil {
		return err
	}
	defer memory.Close()
	if err := register(dom, memory, s); err != nil {
		return err
	}
	t, err := s.line(ctx, dom)
	if err != nil {
		return err
	}
	x, err := load.NewTransfer(t, c, true)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, measure.Ready, dom.Name(0))
	return x.Serve(ctx)
}

// client is the side that measures; see drive.
func client(ctx context.Context, dom *xdpfab.Domain, s *settings) error {
	runtime.LockOSThread()
	return s.drive(ctx, dom, os.Stdout)
}

// drive sends messages, or writes or reads the server's memory, and reports on out.
func (s *settings) drive(ctx context.Context, dom *xdpfab.Domain, out io.Writer) error {
	c := s.transfer()
	t, err := s.line(ctx, dom)
	if err == nil && c.Memory() > 0 {
		err = t.Find(ctx, s.region)
	}
	if err != nil {
		return err
	}
	x, err := load.NewTransfer(t, c, false)
	if err != nil {
		return err
	}
	if s.warmup > 0 {
		if err := x.Run(ctx, s.warmup); err != nil {
			return err
		}
	}
	x.Latency.Reset()
	done := x.Done
	run := measure.BeginRun(out)
	if err := x.Run(ctx, s.duration); err != nil {
		return err
	}
	return run.End(&measure.Result{Ops: x.Done - done, Latency: x.Latency.Percentiles()})
}
