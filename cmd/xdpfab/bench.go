// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/xdpfab/xdpfab/internal/histogram"
	"github.com/xdpfab/xdpfab/internal/load"
	"github.com/xdpfab/xdpfab/xdpfab"
)

const (
	maxWords  = 4096    // words that --spread uses
	maxWindow = 1 << 16 // operations in flight for each endpoint
)

// benchOps are the operations that bench knows. Each addition makes the sum of the
// region's words grow by one, which bench verifies; the others leave the sum alone.
var benchOps = map[string]load.Kind{"fetch_add": load.FetchAdd, "add": load.Add, "read": load.Read,
	"cswap": load.CompareAndSwap}

type benchFlags struct {
	link      linkFlags
	region    regionFlags
	op, mode  string
	window    int
	endpoints int
	count     int
	duration  time.Duration
	warmup    time.Duration
	spread    bool
}

// benchReport is the JSON output of bench.
type benchReport struct {
	Peer         string                `json:"peer"`
	Interface    string                `json:"interface"`
	XDP          string                `json:"xdp"`
	Copy         string                `json:"copy"`
	Progress     string                `json:"progress"`
	Mode         string                `json:"mode"`
	Op           string                `json:"op"`
	Endpoints    int                   `json:"endpoints"`
	Window       int                   `json:"window"` // operations in flight for each endpoint
	Words        int                   `json:"words"`  // words that the operations go to in turn
	Ops          uint64                `json:"ops"`    // measured
	Seconds      float64               `json:"seconds"`
	OpsPerSecond float64               `json:"ops_per_second"`
	Latency      histogram.Percentiles `json:"latency"` // from posting to completion
	Resent       uint64                `json:"frames_resent"`
	OpsPerPacket float64               `json:"ops_per_packet"`
	AllocsPerOp  float64               `json:"allocs_per_op"`     // of the whole process
	Acknowledged uint64                `json:"acknowledged_adds"` // with the warm-up
	Growth       uint64                `json:"growth"`            // of the region's words
	Verified     bool                  `json:"verified"`
}

func (a *app) benchCmd() *cobra.Command {
	var f benchFlags
	c := &cobra.Command{
		Use:   "bench PEER",
		Short: "Measure latency or throughput, and verify the sum",
		Long: `bench runs one operation on uint64 words of a region as often as it can. In mode
latency an endpoint has one operation in flight; in mode throughput it keeps
--window of them in flight, many in one frame. Latency is from posting to
completion, so in mode throughput it includes waiting in the queue.

At the end the words are read: they must have grown by exactly the number of
acknowledged adds, or bench fails. So no other program may write them meanwhile.

Operations: fetch_add, add (no result), read, and cswap with a comparand that no
word ever has.`,
		Example: `  xdpfab bench 10.0.0.2 -i eth0 --region counters
  xdpfab bench 10.0.0.2 -i eth0 --region counters --progress manual --count 100000
  xdpfab bench 10.0.0.2 -i eth0 --region counters --mode throughput --op add --endpoints 4 --spread
  xdpfab bench 10.0.0.2 -i eth0 --region counters --mode throughput --json`,
		Args: exactArgs("PEER"),
		RunE: func(c *cobra.Command, args []string) error { return a.bench(c, &f, args[0]) },
	}
	f.link.register(c)
	f.region.register(c)
	a.jsonFlag(c)
	fs := c.Flags()
	fs.StringVar(&f.op, "op", "fetch_add", "operation: add, cswap, fetch_add or read")
	fs.StringVar(&f.mode, "mode", "latency", "latency or throughput")
	fs.IntVar(&f.window, "window", 0,
		"operations in flight for each endpoint; default 1 for latency, 1024 for throughput")
	fs.IntVar(&f.endpoints, "endpoints", 1, "endpoints, each with a session and a goroutine")
	fs.IntVar(&f.count, "count", 0, "operations to measure, instead of --duration")
	fs.DurationVar(&f.duration, "duration", 3*time.Second, "time to measure")
	fs.DurationVar(&f.warmup, "warmup", 200*time.Millisecond, "time before measuring")
	fs.BoolVar(&f.spread, "spread", false,
		fmt.Sprintf("use the region's words in turn, up to %d, instead of the first only", maxWords))
	complete(c, "op", "add", "cswap", "fetch_add", "read")
	complete(c, "mode", "latency", "throughput")
	return c
}

// check completes the flags.
func (f *benchFlags) check(c *cobra.Command) error {
	if f.window == 0 {
		f.window = 1
		if f.mode == "throughput" {
			f.window = 1024
		}
	}
	_, known := benchOps[f.op]
	switch {
	case !known:
		return usage(c, "operation %q: want add, cswap, fetch_add or read", f.op)
	case !slices.Contains([]string{"latency", "throughput"}, f.mode):
		return usage(c, "mode %q: want latency or throughput", f.mode)
	case f.window < 1 || f.window > maxWindow:
		return usage(c, "window %d: want 1 to %d", f.window, maxWindow)
	case f.mode == "latency" && f.window != 1:
		return usage(c, "window %d: mode latency has one operation in flight; want --mode throughput", f.window)
	case f.endpoints < 1 || f.endpoints > 1024:
		return usage(c, "%d endpoints: want 1 to 1024", f.endpoints)
	case f.count < 0 || f.count > 0 && f.count < f.endpoints:
		return usage(c, "count %d: want at least one operation for each endpoint", f.count)
	case f.duration <= 0 || f.warmup < 0:
		return usage(c, "duration %v and warm-up %v: want more than 0, and not less", f.duration, f.warmup)
	}
	return f.region.check(c)
}

func (a *app) bench(c *cobra.Command, f *benchFlags, peer string) (err error) {
	if err := f.check(c); err != nil {
		return err
	}
	cl, err := a.connect(c, &f.link, peer)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cl.close()) }()
	b, err := newBench(c.Context(), cl, f)
	if err != nil {
		return err
	}
	r := &benchReport{
		Peer: peer, Interface: f.link.ifname, XDP: cl.dom.Interface().XDP, Copy: cl.dom.Interface().Copy,
		Progress: f.link.progress.String(),
		Mode:     f.mode, Op: f.op, Endpoints: f.endpoints, Window: f.window, Words: b.words,
	}
	// The command's context would be wrong here: an interrupted run is verified, too.
	after := context.WithoutCancel(c.Context())
	if err := b.run(c.Context(), a, r); err != nil {
		return b.explain(after, err)
	}
	if err := b.verify(after, r); err != nil {
		return b.explain(after, err)
	}
	return a.print(r, r.text)
}

// bench is a run under way.
type bench struct {
	f       *benchFlags
	cl      *client
	region  xdpfab.RemoteRegion
	words   int
	reader  *load.Generator
	before  uint64 // sum of the words at the beginning, modulo 2^64
	workers []*worker
	phase   phase
}

func newBench(ctx context.Context, cl *client, f *benchFlags) (*bench, error) {
	region, err := f.region.find(ctx, cl.peer)
	if err != nil {
		return nil, err
	}
	b := &bench{f: f, cl: cl, region: region, words: 1}
	if f.spread {
		if f.region.name == "" {
			return nil, errors.New("--spread wants --region: a key alone does not tell the size")
		}
		b.words = int(min(region.Size/load.WordSize, maxWords))
		if b.words == 0 {
			return nil, fmt.Errorf("region %s has %d bytes, less than a word: %w", region.Name, region.Size,
				xdpfab.ErrOutOfBounds)
		}
	}
	if b.reader, err = b.generator(ctx, 1, 0); err != nil {
		return nil, err
	}
	for i := range f.endpoints {
		w, err := newWorker(ctx, b, i)
		if err != nil {
			return nil, err
		}
		b.workers = append(b.workers, w)
	}
	b.before, err = b.reader.Sum(ctx)
	return b, err
}

// generator posts the operation with an endpoint of its own.
func (b *bench) generator(ctx context.Context, window, first int) (*load.Generator, error) {
	return load.New(ctx, b.cl.dom, b.cl.addr, load.Config{
		Kind: benchOps[b.f.op], Region: b.region, Window: window, Endpoints: 1, Words: b.words, First: first,
		Elements: 1, Scatter: 1,
	})
}

// verify compares the growth of the words with the additions that were acknowledged.
func (b *bench) verify(ctx context.Context, r *benchReport) error {
	after, err := b.reader.Sum(ctx)
	if err != nil {
		return fmt.Errorf("reading the sum: %w", err)
	}
	r.Growth = after - b.before
	for _, w := range b.workers {
		if benchOps[b.f.op].Adds() {
			r.Acknowledged += w.Done
		}
	}
	if r.Verified = r.Growth == r.Acknowledged; !r.Verified {
		return fmt.Errorf("verification failed: the words of %v grew by %d, but %d adds were acknowledged; does "+
			"another program write there?",
			&b.f.region, r.Growth, r.Acknowledged)
	}
	return nil
}

// explain says so if a run on a region by name failed because that registration is gone.
// Operations name the key alone: with the incarnation each would be longer.
func (b *bench) explain(ctx context.Context, err error) error {
	if b.f.region.name == "" || exitCode(err) != exitFailed {
		return err
	}
	now, gone := b.cl.peer.Lookup(ctx, b.f.region.name)
	if errors.Is(gone, xdpfab.ErrNoRegion) || gone == nil && now.Incarnation != b.region.Incarnation {
		return fmt.Errorf("region %s has been withdrawn or registered anew during the run: %w: %w",
			b.f.region.name, xdpfab.ErrPeerRestarted, err)
	}
	return err
}

func (r *benchReport) text(w io.Writer) {
	fmt.Fprintf(w, "%s of %s on %s over %s (%s XDP, %s, %s progress)\n", r.Mode, r.Op, r.Peer, r.Interface,
		orDash(r.XDP), orDash(r.Copy), r.Progress)
	fmt.Fprintf(w, "%d endpoints, window %d, %d words\n", r.Endpoints, r.Window, r.Words)
	fmt.Fprintf(w, "%d operations in %.2f s: %s/s\n", r.Ops, r.Seconds, magnitude(r.OpsPerSecond))
	latencyText(w, &r.Latency)
	fmt.Fprintf(w, "%.1f operations a packet, %d frames resent, %.2f allocations an operation\n", r.OpsPerPacket,
		r.Resent, r.AllocsPerOp)
	fmt.Fprintf(w, "verified: the words grew by %d, as many adds were acknowledged\n", r.Growth)
}

// magnitude prints a number with three digits.
func magnitude(v float64) string {
	for _, m := range []struct {
		unit string
		size float64
	}{{" M", 1e6}, {" k", 1e3}} {
		if v >= m.size {
			return fmt.Sprintf("%.*f%s", digitsAfter(v/m.size), v/m.size, m.unit)
		}
	}
	return fmt.Sprintf("%.0f", v)
}

func digitsAfter(v float64) int { return max(2-int(math.Log10(max(v, 1))), 0) }

// latencyText prints two aligned lines; the writer is a tabwriter.
func latencyText(w io.Writer, p *histogram.Percentiles) {
	fmt.Fprintln(w, "  min\tp50\tp90\tp99\tp99.9\tmax")
	fmt.Fprintf(w, "  %s\t%s\t%s\t%s\t%s\t%s\n", short(p.Min), short(p.P50), short(p.P90), short(p.P99), short(p.P999),
		short(p.Max))
}

// short prints nanoseconds with three digits or so, in µs unless they are many.
func short(ns int64) string {
	switch us := float64(ns) / 1e3; {
	case us < 10:
		return fmt.Sprintf("%.2f µs", us)
	case us < 100:
		return fmt.Sprintf("%.1f µs", us)
	case us < 10000:
		return fmt.Sprintf("%.0f µs", us)
	case us < 1e6:
		return fmt.Sprintf("%.1f ms", us/1e3)
	default:
		return fmt.Sprintf("%.2f s", us/1e6)
	}
}
