// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Command parts measures what programs build from atomics: locks, counters and writes
// that signal, by package xdpfab/sync and by the servers that are used for them
// otherwise.
//
//	parts xdpfab|etcd|redis|nats locks|handover|adds|vector|put|put-signal|call|message FLAGS
//	parts xdpfab serve-calls|serve-messages FLAGS
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/xdpfab/xdpfab/bench/measure"
	"github.com/xdpfab/xdpfab/internal/histogram"
)

// settings are the flags.
type settings struct {
	ifname, peer, progress string
	clients, depth, size   int
	startUnlock            bool
	duration, warmup       time.Duration
}

// lease is that of all locks: of xdpfab, and of a key in Redis. A lease of etcd is its
// session's, 60 s.
const lease = time.Second

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "parts:", err)
		os.Exit(1)
	}
}

// loop does something again and again until the end, and records how long each took.
type loop func(ctx context.Context, end time.Time, h histogram.Histogram) error

// system makes the loop of a test. What it returns besides checks the result of so many
// operations and closes everything.
type system func(ctx context.Context, s *settings, test string) (loop, func(ops uint64) error, error)

var systems = map[string]system{"xdpfab": ofXdpfab, "etcd": ofEtcd, "redis": ofRedis, "nats": ofNATS}

func run(ctx context.Context, args []string) error {
	if len(args) < 2 || systems[args[0]] == nil {
		return errors.New("want xdpfab, etcd, redis or nats, a test, and flags")
	}
	var s settings
	fs := flag.NewFlagSet(args[0], flag.ContinueOnError)
	fs.StringVar(&s.ifname, "i", "veth0", "interface, of xdpfab")
	fs.StringVar(&s.progress, "progress", "auto", "manual or auto, of xdpfab")
	fs.StringVar(&s.peer, "peer", "", "address of the server, with the port if it has one")
	fs.IntVar(&s.clients, "clients", 1, "clients of a handover")
	fs.BoolVar(&s.startUnlock, "start-unlock", false, "begin to release locks, and do not wait, of xdpfab")
	fs.IntVar(&s.depth, "depth", 1, "additions in flight")
	fs.IntVar(&s.size, "size", 8, "bytes of a put, a request or a message")
	fs.DurationVar(&s.duration, "duration", time.Second, "time to measure")
	fs.DurationVar(&s.warmup, "warmup", 200*time.Millisecond, "time before measuring")
	if err := fs.Parse(args[2:]); err != nil {
		return err
	}
	if s.clients < 1 || s.depth < 1 || s.size < 8 || s.duration <= 0 || fs.NArg() > 0 {
		return errors.New("want at least 1 client, 1 in flight, 8 bytes, some time, and no other words")
	}
	if args[0] == "xdpfab" && strings.HasPrefix(args[1], "serve-") {
		return serve(ctx, &s, args[1])
	}
	do, end, err := systems[args[0]](ctx, &s, args[1])
	if err != nil {
		return err
	}
	ops, err := s.measure(ctx, do)
	return errors.Join(err, end(ops))
}

// measure runs a loop, reports, and returns how many operations there were in all.
func (s *settings) measure(ctx context.Context, do loop) (ops uint64, err error) {
	h := histogram.New()
	if err := do(ctx, time.Now().Add(s.warmup), h); err != nil {
		return uint64(h.Count()), err
	}
	ops = uint64(h.Count())
	h.Reset()
	run := measure.BeginRun(os.Stdout)
	if err := do(ctx, run.Start().Add(s.duration), h); err != nil {
		return ops, err
	}
	p := h.Percentiles()
	return ops + uint64(p.Count), run.End(&measure.Result{Ops: uint64(p.Count), Latency: p})
}

// each is the loop of a call that does n operations at a time.
func each(n int, call func(ctx context.Context) error) loop {
	return func(ctx context.Context, end time.Time, h histogram.Histogram) error {
		for now := time.Now(); now.Before(end); {
			if err := call(ctx); err != nil {
				return err
			}
			before := now
			now = time.Now()
			h.Record(now.Sub(before), int64(n))
		}
		return nil
	}
}

// unknown is the error for a test that a system has not.
func unknown(system, test string) error { return fmt.Errorf("%s has no test %q", system, test) }
