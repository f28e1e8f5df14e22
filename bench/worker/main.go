// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Command worker is xdpfab's part in the benchmark, by the public API alone: a target
// that serves memory to atomics, and an initiator that measures them; lossy is both in
// one process, with packets that get lost in between. A host is a target that other
// programs attach to as well; attach attaches, and does nothing more. Server and client
// are the two sides of messages, writes and reads.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/xdpfab/xdpfab/internal/load"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// settings are the flags of all parts.
type settings struct {
	ifname    string
	progress  fi.ProgressMode
	threads   fi.Threading
	transport fi.Transport

	control string // socket of the daemon to attach to; of a host, its own
	netns   string // of a host: the namespace of the interface that it shares
	count   int    // of attach: how many times; of a host: how many regions

	regions  int  // number of the target's regions, which the initiator addresses in turn
	size     int  // bytes of the target's region
	resident bool // the target's region is

	peer string

	// Those of server and client.
	test   string
	length int // bytes of a message, a write or a read
	flight int

	// The initiator's; the client has some of them.
	first     bool
	op        string
	window    int
	endpoints int
	words     int
	elements  int
	scatter   int
	region    string
	key       uint64 // of the region, in place of its name, or 0
	garbage   int64  // bytes a second, also of a target
	rate      float64
	loss      float64
	unordered bool
	duration  time.Duration
	warmup    time.Duration
	at        int64 // when to begin to measure, Unix time in milliseconds; 0: after the warm-up
}

// regionSize is the size of the target's region, unless the flag says otherwise.
const regionSize = 64 << 10

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "worker:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errors.New("want target, host, attach, initiator, lossy, server or client, and flags")
	}
	var s settings
	fs := flag.NewFlagSet(args[0], flag.ContinueOnError)
	fs.StringVar(&s.ifname, "i", "veth0", "interface")
	fs.TextVar(&s.progress, "progress", fi.ProgressManual, "manual or auto")
	fs.TextVar(&s.threads, "threading", fi.ThreadSafe, "safe, or domain, which all calls of this program keep to")
	fs.TextVar(&s.transport, "transport", fi.TransportXDP, "xdp or udp")
	fs.IntVar(&s.regions, "regions", 1, "regions")
	fs.StringVar(&s.control, "control", "", "control socket of the daemon to attach to; of a host, its own")
	var part func(context.Context, *xdpfab.Domain, *settings) error
	switch args[0] {
	case "target":
		part = target
		fs.IntVar(&s.size, "size", regionSize, "bytes of the region")
		fs.BoolVar(&s.resident, "resident", false, "a resident region")
		s.ofGarbage(fs)
	case "host":
		part = host
		fs.StringVar(&s.netns, "netns", "", "namespace of the interface that programs share")
		fs.IntVar(&s.size, "size", regionSize, "bytes of each region")
		fs.IntVar(&s.count, "count", 1, "regions")
	case "attach":
		fs.IntVar(&s.count, "count", 1, "how many times to attach")
	case "server":
		part = server
		s.ofTransfers(fs)
	case "client":
		part = client
		s.ofTransfers(fs)
		s.ofMeasurements(fs)
	case "initiator", "lossy":
		part = initiate
		s.ofMeasurements(fs)
		s.ofGarbage(fs)
		fs.StringVar(&s.peer, "peer", "", "MAC or IP address of the target")
		fs.Uint64Var(&s.key, "key", 0, "key of the target's region, in place of its name")
		fs.StringVar(&s.op, "op", "fetch", "base, fetch or compare")
		fs.IntVar(&s.window, "window", 1, "posts in flight, over all endpoints")
		fs.IntVar(&s.endpoints, "endpoints", 1, "endpoints, each with a session")
		fs.IntVar(&s.words, "words", 1, "number of words that the operations go to in turn")
		fs.IntVar(&s.elements, "elements", 1, "elements of an operation")
		fs.IntVar(&s.scatter, "scatter", 1, "words of a post, each an operation of one element")
		fs.BoolVar(&s.first, "first", false, "only report when the first operation has completed")
		fs.Float64Var(&s.rate, "rate", 0, "operations a second to offer; 0: as many as the window lets through")
		fs.BoolVar(&s.unordered, "unordered", false, "endpoints that need no order")
		fs.Float64Var(&s.loss, "loss", 0.01, "of lossy: share of the packets that are lost, either way")
	default:
		return fmt.Errorf("part %q: want target, host, attach, initiator, lossy, server or client", args[0])
	}
	if err := fs.Parse(args[1:]); err != nil {
		return err
	}
	switch args[0] {
	case "lossy":
		s.size = regionSize
		return lossy(ctx, &s)
	case "attach":
		return attach(ctx, &s)
	}
	attr := s.attr()
	if args[0] == "host" {
		attr.Attach = fi.AttachNever
	}
	dom, err := xdpfab.Open(ctx, s.ifname, attr)
	if err != nil {
		return err
	}
	return errors.Join(part(ctx, dom, &s), dom.CloseAll())
}

// ofMeasurements adds the flags of the parts that measure.
func (s *settings) ofMeasurements(fs *flag.FlagSet) {
	fs.StringVar(&s.region, "region", "bench", "region of the target")
	fs.DurationVar(&s.duration, "duration", time.Second, "time to measure")
	fs.DurationVar(&s.warmup, "warmup", 200*time.Millisecond, "time before measuring")
	fs.Int64Var(&s.at, "at", 0,
		"Unix time in milliseconds at which to begin to measure, in place of a warm-up of fixed length")
}

// ofTransfers adds the flags of the sides of messages, writes and reads.
func (s *settings) ofTransfers(fs *flag.FlagSet) {
	fs.StringVar(&s.peer, "peer", "", "MAC or IP address of the other side")
	fs.StringVar(&s.test, "test", "trip", "trip, stream, write or read")
	fs.IntVar(&s.length, "size", load.WordSize, "bytes of a message, a write or a read")
	fs.IntVar(&s.flight, "flight", 1, "messages without a credit, or writes or reads under way")
}

func (s *settings) open(ctx context.Context) (*xdpfab.Domain, error) {
	return xdpfab.Open(ctx, s.ifname, s.attr())
}
