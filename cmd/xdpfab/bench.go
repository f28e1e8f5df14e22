// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/xdpfab/xdpfab/cmd/xdpfab/bench"
	"github.com/xdpfab/xdpfab/cmd/xdpfab/show"
	"github.com/xdpfab/xdpfab/internal/calls"
	"github.com/xdpfab/xdpfab/mr"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

type benchFlags struct {
	bench.Config
	link        linkFlags
	region      regionFlags
	mode        string
	datatype    string
	sizes       string
	percentiles string
	csv         bool
}

const benchHelp = `bench runs one operation as often as it can. In mode latency an endpoint has one
operation in flight; in mode throughput it keeps --window posts in flight, many in
one frame. Latency is from posting to completion, so in mode throughput it includes
waiting in the queue. With several peers, each has --endpoints endpoints, and bench
prints the figures for all of them together.

Operations, with --op:
  fetch_add, add    fetch-and-add, or an addition without a result, of 1
  read, cswap       atomic read; compare-and-swap with a comparand that no word has
  sum, fetch_max …  any operation of fi_atomic(3), with 1 as its operand
  put, get          bytes to the region, or from it: remote writes and reads
  put-signal        put, each with a signal: it adds 1 to a word behind the bytes
  send, tagged      messages without a tag or with one, to ` + "`xdpfab bench serve`" + `: there
                    and back in mode latency, one way in mode throughput, and
                    both ways with --both

add, put and others change the region: use one that no other program uses.
--size is the length of an operation: an array of elements, bytes or a message.
--words sets how many words one post changes.

At the end bench checks the result, and fails if it is wrong. The words must have grown
by the number of acknowledged adds or signals, the region must have the bytes that were
written, and each message must have arrived once and in order. Sums of floating-point
numbers round, and operations such as max leave nothing to count; bench says that it
could not verify these.`

func (a *app) benchCmd() *cobra.Command {
	var f benchFlags
	c := &cobra.Command{
		Use:   "bench PEER...",
		Short: "Measure latency or throughput, and verify the result",
		Long:  benchHelp,
		Example: `  xdpfab bench 10.0.0.2 --region counters --progress manual
  xdpfab bench 10.0.0.2 --region counters --progress manual --mode throughput --spread --words 182
  xdpfab bench 10.0.0.2 10.0.0.3 --region counters --mode throughput --op add --endpoints 4 --spread
  xdpfab bench 10.0.0.2 --region sums --op fetch_sum --datatype double --count 100000
  xdpfab bench 10.0.0.2 --region bulk --mode throughput --op put --size all --csv
  xdpfab bench 10.0.0.2 --region bulk --mode throughput --op put --size 1MiB --both --endpoints 2
  xdpfab bench 10.0.0.2 --mode throughput --op send --size 4KiB --both --endpoints 2
  xdpfab bench 10.0.0.2 --op tagged --size 8,64,4KiB --percentiles 50,99,99.99 --json`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return missingArgs(c, "PEER")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error { return a.bench(c, &f, args) },
	}
	f.link.register(c)
	f.region.register(c)
	a.jsonFlag(c)
	fs := c.Flags()
	fs.StringVar(&f.Op, "op", "fetch_add", "operation: "+strings.Join(bench.Ops(), ", ")+", or one of fi_atomic(3)")
	fs.StringVar(&f.datatype, "datatype", "uint64", "datatype of atomic operations")
	fs.StringVar(&f.mode, "mode", "latency", "latency or throughput")
	fs.StringVar(&f.sizes, "size", "", "bytes of an operation, such as 8,4KiB or all (powers of two up to 1MiB); "+
		"default: one element, or 8")
	fs.IntVar(&f.Words, "words", 1, fmt.Sprintf("words that one post changes, up to %d", bench.MaxWords))
	fs.IntVar(&f.Window, "window", 0,
		"posts in flight for each endpoint; default 1 for latency, and for throughput as many as fill some frames")
	fs.IntVar(&f.Endpoints, "endpoints", 1, "endpoints for each peer, each with a session and a goroutine")
	fs.BoolVar(&f.Both, "both", false,
		"both directions: half of the endpoints put and half get, or half send and half receive")
	fs.IntVar(&f.Count, "count", 0, "operations to measure, instead of --duration")
	fs.DurationVar(&f.Duration, "duration", 3*time.Second, "time to measure, for each size")
	fs.DurationVar(&f.Warmup, "warmup", 200*time.Millisecond, "time before measuring")
	fs.BoolVar(&f.Spread, "spread", false,
		fmt.Sprintf("use the region's words in turn, up to %d, instead of the first only", bench.MaxWords))
	fs.StringVar(&f.percentiles, "percentiles", "", "percentiles of the latency, such as 50,99,99.99")
	fs.BoolVar(&f.csv, "csv", false, "print the result as CSV, a line for each size")
	complete(c, "op", bench.Ops()...)
	complete(c, "datatype", datatypeNames()...)
	complete(c, "mode", "latency", "throughput")
	c.AddCommand(a.benchServeCmd())
	return c
}

// check completes the flags, and returns a configuration for each size. The region, which
// is not known yet, may be too small for some.
func (f *benchFlags) check(c *cobra.Command, csv, json bool) (all []*bench.Config, err error) {
	switch {
	case !slices.Contains([]string{"latency", "throughput"}, f.mode):
		return nil, usage(c, "--mode %q: want latency or throughput", f.mode)
	case f.Count > 0 && c.Flags().Changed("duration"):
		return nil, usage(c, "--count with --duration: want one of them")
	case csv && json:
		return nil, usage(c, "--csv with --json: want one of them")
	case c.Flags().Changed("count") && f.Count == 0:
		return nil, usage(c, "--count 0: want 1 or more, or --duration in its place")
	case f.Window < 0 || c.Flags().Changed("window") && f.Window == 0:
		return nil, usage(c, "--window %d: want 1 to %d", f.Window, bench.MaxWindow)
	case c.Flags().Changed("words") && f.Words < 1:
		return nil, usage(c, "--words %d: want 1 to %d", f.Words, bench.MaxWords)
	}
	f.Stream, f.Manual = f.mode == "throughput", f.link.progress == fi.ProgressManual
	if f.Datatype, err = parseDatatype(f.datatype); err != nil {
		return nil, usage(c, "%v", err)
	}
	if f.percentiles != "" {
		if f.Percentiles, err = bench.ParsePercentiles(f.percentiles); err != nil {
			return nil, usage(c, "%v", err)
		}
	}
	sizes := []uint64{0}
	if f.sizes != "" {
		if sizes, err = bench.Sizes(f.sizes, uint64(f.Datatype.Size()), 1<<20); err != nil {
			return nil, usage(c, "%v", err)
		}
	}
	for _, s := range sizes {
		one := f.Config
		one.Size = s
		if err := one.Check(); err != nil {
			return nil, usage(c, "%v", err)
		}
		all = append(all, &one)
	}
	if !f.Atomic() {
		for _, name := range []string{"datatype", "spread"} {
			if c.Flags().Changed(name) {
				return nil, usage(c, "--%s is for atomic operations, which --op %s is not: leave it out", name, f.Op)
			}
		}
	}
	if f.Messages() {
		if f.region != (regionFlags{}) {
			return nil, usage(c, "--op %s sends messages: want no --region and no --key", f.Op)
		}
		return all, nil
	}
	peer := c.Flags().Arg(0)
	if like := suggestion(c, peer); f.region == (regionFlags{}) && like != "" {
		return nil, usage(c, "unknown command %q%s", peer, like)
	}
	return all, f.region.check(c)
}

func (a *app) bench(c *cobra.Command, f *benchFlags, addrs []string) (err error) {
	configs, err := f.check(c, f.csv, a.json)
	if err != nil {
		return err
	}
	if f.Messages() {
		for i, addr := range addrs {
			if bench.NodeOf(addr) == addr {
				addrs[i] = fmt.Sprintf("%s/%d", addr, bench.Mailbox)
			}
		}
	}
	f.link.mailbox, f.link.bench = f.Messages(), true
	defer a.whileRead()()
	cl, err := a.connect(c, &f.link, addrs[0])
	if err != nil {
		return f.unserved(err, addrs[0])
	}
	defer func() { err = errors.Join(err, cl.close()) }()
	peers, known, err := a.benchPeers(c, f, cl, addrs)
	if err != nil {
		return err
	}
	if f.sizes != "" && strings.Contains(f.sizes, "all") {
		configs = slices.DeleteFunc(configs, func(c *bench.Config) bool { return c.Size > least(peers) })
	}
	for i, config := range configs {
		r, err := bench.Run(c.Context(), cl.dom, peers, config, a.progress)
		a.endProgress()
		if err != nil {
			// not with the command's context: an interrupted run is explained, too
			return f.explain(context.WithoutCancel(c.Context()), known, peers, err)
		}
		r.Peer, r.Interface, r.Progress = strings.Join(addrs, ","), f.link.ifname, f.link.progress.String()
		r.XDP, r.Copy = cl.dom.Interface().XDP, cl.dom.Interface().Copy
		if len(peers) == 1 {
			r.Peers = nil
		}
		if err := a.printBench(f, r, i, len(configs)); err != nil || c.Context().Err() != nil {
			return err
		}
	}
	return nil
}

// unserved adds to the error of a dial that nobody takes the messages which to run.
func (f *benchFlags) unserved(err error, addr string) error {
	if !f.Messages() || !errors.Is(err, xdpfab.ErrRefused) || errors.Is(err, fi.ErrAuthKey) {
		return err
	}
	return fmt.Errorf("run `xdpfab bench serve` at %s: %w", bench.NodeOf(addr), err)
}

// printBench prints the report of one of several sizes as soon as it is there.
func (a *app) printBench(f *benchFlags, r *bench.Report, i, of int) error {
	if r.Interrupted && !a.json && (f.csv || of > 1) { // whose rows have no room for it
		fmt.Fprintln(a.err, "xdpfab: interrupted: the last row is of a part of its run")
	}
	if f.csv {
		w := csv.NewWriter(a.out)
		names, values := r.CSV()
		if i == 0 {
			_ = w.Write(names) // the error is that of Flush
		}
		_ = w.Write(values)
		w.Flush()
		return errors.Join(w.Error(), a.flush())
	}
	if !a.json && of > 1 {
		return errors.Join(r.Row(a.out, i == 0), a.flush())
	}
	return errors.Join(a.print(r, r.Text), a.flush())
}

// least returns the size of the smallest region, as far as it is known.
func least(peers []bench.Peer) uint64 {
	n := uint64(1 << 20)
	for _, p := range peers {
		if p.Region.Size > 0 {
			n = min(n, p.Region.Size)
		}
	}
	return n
}

// benchPeers dials the peers, of which the first has been dialled, and finds their
// regions.
func (a *app) benchPeers(c *cobra.Command, f *benchFlags, cl *client, addrs []string) (all []bench.Peer,
	known []*xdpfab.Peer, err error) {
	s, err := a.settings()
	if err != nil {
		return nil, nil, err
	}
	for i, addr := range addrs {
		p, one := cl.peer, bench.Peer{Addr: cl.addr}
		if i > 0 {
			list, err := f.link.peerAddresses(c, s, addr)
			if err != nil {
				return nil, nil, err
			}
			one.Addr = list[0].String()
			if p, err = cl.dom.Dial(c.Context(), one.Addr); err != nil {
				return nil, nil, f.unserved(err, addr)
			}
		}
		if !f.Messages() {
			if one.Region, err = f.region.find(c.Context(), p); err != nil {
				return nil, nil, err
			}
		}
		if err := once(c, all, one); err != nil {
			return nil, nil, err
		}
		all, known = append(all, one), append(known, p)
	}
	return all, known, nil
}

// once refuses a peer that is among others already, by the same address or another one of
// it: each would count the other's operations as a stranger's.
func once(c *cobra.Command, others []bench.Peer, p bench.Peer) error {
	const remedy = "want each node once; --endpoints 2 has more sessions"
	r := p.Region
	for _, o := range others {
		same := r.Incarnation != 0 && r.Incarnation == o.Region.Incarnation && r.Key == o.Region.Key
		switch {
		case p.Addr == o.Addr:
			return usage(c, "%s is named twice: %s", p.Addr, remedy)
		case same:
			return usage(c, "%s and %s are one node, with the same region %s: %s", o.Addr, p.Addr, r.Name, remedy)
		}
	}
	return nil
}

// explain adds to the error of a run what the region does not grant, and says so if a
// region that was given by name is not the same registration any more. Operations name
// the key alone: with the incarnation each would be longer.
func (f *benchFlags) explain(ctx context.Context, known []*xdpfab.Peer, peers []bench.Peer, err error) error {
	calls.HeardBefore(err) // all have been dialled
	if f.rights() == mr.RemoteRead {
		err = withoutEffect(err)
	}
	if errors.Is(err, xdpfab.ErrAccess) && len(peers) == 1 {
		return f.link.denied(unadvised(err), peers[0].Region, "--op "+f.Op, f.rights())
	}
	if f.region.name == "" && errors.Is(err, xdpfab.ErrNoKey) {
		return unknownKey(err)
	}
	if f.region.name == "" || exitCode(err) != exitFailed {
		return err
	}
	for i, p := range known {
		now, gone := p.Lookup(ctx, f.region.name)
		if errors.Is(gone, xdpfab.ErrNoRegion) || gone == nil && now.Incarnation != peers[i].Region.Incarnation {
			return fmt.Errorf("region %s has been withdrawn or registered anew during the run: %w: %w",
				f.region.name, xdpfab.ErrPeerRestarted, err)
		}
	}
	return err
}

// showProgress reports whether a person is likely to watch the run.
func (a *app) showProgress() bool { return a.tty && !a.json }

func (a *app) progress(elapsed time.Duration, ops uint64) {
	if a.showProgress() {
		fmt.Fprintf(a.err, "\r\x1b[K%.1f s  %d operations  %s/s", elapsed.Seconds(), ops,
			show.Count(float64(ops)/elapsed.Seconds()))
	}
}

func (a *app) endProgress() {
	if a.showProgress() {
		fmt.Fprint(a.err, "\r\x1b[K")
	}
}
